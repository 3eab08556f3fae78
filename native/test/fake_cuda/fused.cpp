/// Operators that only CUDA has, computed in float32 on the host.
#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/native/ConvUtils.h>
#include <ATen/native/DispatchStub.h>
#include <ATen/native/transformers/attention.h>
#include <torch/library.h>

#include <mutex>
#include <set>
#include <sstream>

#include "counters.h"
#include "graph.h"
#include "kernels.h"

namespace fake_cuda {
namespace {

const int64_t kComputeCapability = setting("FAKE_CUDA_SM", 90);

void require_same_device(const char* name, std::initializer_list<at::Tensor> tensors) {
  for (const at::Tensor& tensor : tensors) {
    TORCH_CHECK(!tensor.defined() || tensor.is_cuda(),
                "Expected all tensors to be on the same device, but found cpu (in ", name, ")");
  }
}

at::Tensor wide(const at::Tensor& tensor) { return host_alias(tensor).to(at::kFloat); }

/// Copies `result` to the device and dtype of `like`.
at::Tensor returned(const at::Tensor& result, const at::Tensor& like) {
  return to_device(result.to(like.scalar_type()), like.device().index());
}

/// Counts a launch of an operator with several results. Only training uses such operators. Graphs do not support them.
void count_training_launch(const char* name) {
  refuse_in_graph(name);
  count_launch(name);
}

// rms_norm

using OptionalTensor = std::optional<at::Tensor>;

bool is_given(const OptionalTensor& tensor) { return tensor && tensor->defined(); }

std::tuple<at::Tensor, at::Tensor> rms_norm(const at::Tensor& input, at::IntArrayRef shape,
                                            const OptionalTensor& weight, std::optional<double> epsilon) {
  require_same_device("_fused_rms_norm", {input, weight.value_or(at::Tensor())});
  TORCH_CHECK(shape.size() == 1, "fake_cuda: rms_norm is simulated over one dimension only");
  const auto scale_of = [=](const at::Tensor& x) {
    return (x.square().mean(-1, true) + epsilon.value_or(std::numeric_limits<float>::epsilon())).rsqrt();
  };
  const at::Tensor y = launch("aten::_fused_rms_norm", input, [=] {
    const at::Tensor x = wide(input), unit = x * scale_of(x);
    return is_given(weight) ? unit * host_alias(*weight) : unit;
  });
  if (is_capturing()) return {y, at::Tensor()};  // only gradients need the scale
  const at::AutoDispatchBelowADInplaceOrView below;
  return {y, to_device(scale_of(wide(input)), input.device().index())};
}

std::tuple<at::Tensor, at::Tensor> rms_norm_backward(const at::Tensor& gradient, const at::Tensor& input,
                                                     at::IntArrayRef, const at::Tensor& scale,
                                                     const OptionalTensor& weight, std::array<bool, 2> wanted) {
  count_training_launch("aten::_fused_rms_norm_backward");
  const at::AutoDispatchBelowADInplaceOrView below;
  const at::Tensor r = host_alias(scale), unit = wide(input) * r, g = wide(gradient);
  const at::Tensor weighted = is_given(weight) ? g * host_alias(*weight) : g;
  at::Tensor of_input, of_weight;
  if (wanted[0]) of_input = returned(r * (weighted - unit * (weighted * unit).mean(-1, true)), input);
  if (wanted[1] && is_given(weight)) of_weight = returned((g * unit).reshape({-1, unit.size(-1)}).sum(0), *weight);
  return {of_input, of_weight};
}

// Attention

at::Tensor attend(const char* name, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                  const OptionalTensor& mask, bool is_causal, std::optional<double> scale) {
  require_same_device(name, {q, k, v, mask.value_or(at::Tensor())});
  return launch(name, q, [=] {
    OptionalTensor bias;
    if (is_given(mask)) bias = mask->is_floating_point() ? wide(*mask) : host_alias(*mask);
    return at::scaled_dot_product_attention(wide(q), wide(k), wide(v), bias, 0.0, is_causal, scale,
                                            q.size(1) != k.size(1));
  });
}

/// The flash attention kernel, for two layouts.
/// Sequences [B, S, N, D]: a query sees the keys from `left` positions before the query to `right` positions after it.
/// The last query has the position of the last key.
/// A cache [B * S, N, D] and queries [B, N, D]: every row has one query, which sees the first `used` keys of the row.
at::Tensor attend_flash(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const OptionalTensor& used,
                        std::optional<int64_t> left, std::optional<int64_t> right) {
  const int64_t batch = q.size(0), queries = used ? 1 : q.size(1);
  const auto heads = [&](const at::Tensor& x) {
    return wide(x).reshape({batch, -1, x.size(-2), x.size(-1)}).transpose(1, 2);
  };
  const at::Tensor keys = heads(k);
  const at::Tensor place = at::arange(keys.size(2)),
                   query = at::arange(keys.size(2) - queries, keys.size(2)).unsqueeze(1);
  at::Tensor visible = at::ones({1, 1, queries, keys.size(2)}, at::kBool);
  if (used) visible = place < host_alias(*used).view({batch, 1, 1, 1});
  if (left.value_or(-1) >= 0) visible = visible.logical_and(place >= query - *left);
  if (right.value_or(-1) >= 0) visible = visible.logical_and(place <= query + *right);
  // Keys that no query sees may be uninitialised.
  const at::Tensor values = heads(v).nan_to_num();
  return at::scaled_dot_product_attention(heads(q), keys.nan_to_num(), values, visible, 0.0, false, std::nullopt, true)
      .transpose(1, 2)
      .reshape(q.sizes());
}

/// A boxed kernel, because newer versions of libtorch pass additional arguments.
void flash_attention_forward(const c10::OperatorHandle&, torch::jit::Stack* stack) {
  constexpr size_t kQueryStarts = 3, kDropout = 7, kCausal = 8, kLeft = 11, kUsed = 13, kResults = 5;
  const std::vector<c10::IValue> arguments = *stack;
  const auto tensor = [&](size_t i) { return arguments[i].toTensor(); };
  const at::Tensor q = tensor(0), k = tensor(1), v = tensor(2);
  const OptionalTensor used = arguments[kUsed].toOptional<at::Tensor>();
  require_same_device("_flash_attention_forward", {q, k, v});
  const bool is_half = q.scalar_type() == at::kHalf || q.scalar_type() == at::kBFloat16;
  TORCH_CHECK(is_half && kComputeCapability >= 80,
              "FlashAttention only supports fp16 and bf16, and Ampere GPUs or newer");
  TORCH_CHECK(q.size(-1) <= 256 && q.stride(-1) == 1 && k.stride(-1) == 1 && v.stride(-1) == 1);
  TORCH_CHECK(
      arguments[kDropout].toDouble() == 0 && !arguments[kCausal].toBool() && arguments[kQueryStarts].isNone() == !used,
      "fake_cuda: this use of flash attention is not simulated");
  if (used) {
    TORCH_CHECK(used->scalar_type() == at::kInt && q.dim() == 3 && k.dim() == 3);
    require_same_device("_flash_attention_forward", {*used, tensor(kQueryStarts), tensor(kQueryStarts + 1)});
  }
  const auto left = arguments[kLeft].toOptional<int64_t>(), right = arguments[kLeft + 1].toOptional<int64_t>();
  stack->clear();
  stack->push_back(
      launch("aten::_flash_attention_forward", q, [=] { return attend_flash(q, k, v, used, left, right); }));
  for (size_t i = 1; i < kResults; ++i) stack->push_back(at::Tensor());
}

using FusedAttention = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, c10::SymInt, c10::SymInt, at::Tensor,
                                  at::Tensor, at::Tensor>;

FusedAttention fused(const at::Tensor& y, const at::Tensor& q, const at::Tensor& k) {
  return {y, {}, {}, {}, q.sym_size(2), k.sym_size(2), {}, {}, {}};
}

FusedAttention flash_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, double, bool is_causal,
                               bool, std::optional<double> scale) {
  return fused(attend("aten::_scaled_dot_product_flash_attention", q, k, v, std::nullopt, is_causal, scale), q, k);
}

/// cuDNN compiles an execution plan for every new shape.
FusedAttention cudnn_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                               const OptionalTensor& mask, bool, double, bool is_causal, bool,
                               std::optional<double> scale) {
  static std::mutex mutex;
  static std::set<std::string> plans;
  std::ostringstream shape;
  shape << q.sizes() << q.strides() << k.sizes() << k.strides() << is_causal;
  if (is_given(mask)) shape << mask->sizes();
  bool is_new;
  {
    const std::lock_guard lock(mutex);
    is_new = plans.insert(shape.str()).second;
  }
  if (is_new) note_choice("cuDNN attention: execution plan built");
  return fused(attend("aten::_scaled_dot_product_cudnn_attention", q, k, v, mask, is_causal, scale), q, k);
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor> efficient_attention(
    const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const OptionalTensor& mask, bool, double,
    bool is_causal, std::optional<double> scale) {
  return {attend("aten::_scaled_dot_product_efficient_attention", q, k, v, mask, is_causal, scale), {}, {}, {}};
}

/// The attention backend that libtorch chooses for inference. On Hopper and later, cuDNN has priority (pytorch:
/// select_sdp_backend in aten/src/ATen/native/transformers/cuda/sdp_utils.cpp).
at::SDPBackend backend_of(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, bool is_masked,
                          bool is_causal) {
  const auto& context = at::globalContext();
  const bool needs_gradient =
      at::GradMode::is_enabled() && (q.requires_grad() || k.requires_grad() || v.requires_grad());
  const bool is_dense = q.dim() == 4 && q.stride(-1) == 1 && k.stride(-1) == 1 && v.stride(-1) == 1 && q.size(2) > 0;
  if (needs_gradient || !is_dense) return at::SDPBackend::math;
  const bool is_half = q.scalar_type() == at::kHalf || q.scalar_type() == at::kBFloat16;
  const int64_t width = q.size(-1);
  const bool fits_cudnn =
      context.userEnabledCuDNNSDP() && is_half && width % 8 == 0 && width <= 128 && k.size(2) != 1;
  const bool fits_flash = context.userEnabledFlashSDP() && is_half && !is_masked && width <= 256 &&
                          (!is_causal || q.size(2) == k.size(2));
  const bool fits_efficient =
      context.userEnabledMemEfficientSDP() && width % (is_half ? 8 : 4) == 0 && q.size(1) == k.size(1);
  if (fits_cudnn && kComputeCapability >= 90) return at::SDPBackend::cudnn_attention;
  if (fits_flash) return at::SDPBackend::flash_attention;
  if (fits_efficient) return at::SDPBackend::efficient_attention;
  return fits_cudnn ? at::SDPBackend::cudnn_attention : at::SDPBackend::math;
}

int64_t choose_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const OptionalTensor& mask,
                         double, bool is_causal, std::optional<double>, bool) {
  const at::SDPBackend backend = backend_of(q, k, v, is_given(mask), is_causal);
  static const char* const kNames[] = {"math", "flash", "efficient", "cuDNN"};
  std::ostringstream choice;
  choice << "attention by " << kNames[static_cast<int>(backend)] << ": " << q.scalar_type()
         << (q.size(2) == 1 ? ", one query" : "") << (q.size(1) != k.size(1) ? ", grouped" : "")
         << (is_given(mask) ? ", masked" : "") << (is_causal ? ", causal" : "");
  note_choice(choice.str());
  return static_cast<int64_t>(backend);
}

// Convolution

std::vector<int64_t> integers(c10::SymIntArrayRef values) {
  std::vector<int64_t> result;
  for (const auto& value : values) result.push_back(value.expect_int());
  return result;
}

at::Tensor cudnn_convolution(const at::Tensor& x, const at::Tensor& w, c10::SymIntArrayRef padding,
                             c10::SymIntArrayRef stride, c10::SymIntArrayRef dilation, c10::SymInt groups, bool, bool,
                             bool) {
  require_same_device("cudnn_convolution", {x, w});
  return launch("aten::cudnn_convolution", x,
                [=, padding = integers(padding), stride = integers(stride), dilation = integers(dilation)] {
                  const std::vector<int64_t> none(stride.size(), 0);
                  return at::convolution(wide(x), wide(w), std::nullopt, stride, padding, dilation, false, none,
                                         groups.expect_int());
                });
}

at::Tensor cudnn_convolution_transpose(const at::Tensor& x, const at::Tensor& w, c10::SymIntArrayRef padding,
                                       c10::SymIntArrayRef output_padding, c10::SymIntArrayRef stride,
                                       c10::SymIntArrayRef dilation, c10::SymInt groups, bool, bool, bool) {
  require_same_device("cudnn_convolution_transpose", {x, w});
  return launch("aten::cudnn_convolution_transpose", x,
                [=, padding = integers(padding), output_padding = integers(output_padding), stride = integers(stride),
                 dilation = integers(dilation)] {
                  return at::convolution(wide(x), wide(w), std::nullopt, stride, padding, dilation, true,
                                         output_padding, groups.expect_int());
                });
}

std::tuple<at::Tensor, at::Tensor> convolution_gradients(const at::Tensor& x, const at::Tensor& gradient,
                                                         const at::Tensor& w, at::IntArrayRef padding,
                                                         at::IntArrayRef output_padding, at::IntArrayRef stride,
                                                         at::IntArrayRef dilation, int64_t groups, bool is_transposed,
                                                         std::array<bool, 2> wanted) {
  count_training_launch("cudnn_convolution_backward");
  const at::AutoDispatchBelowADInplaceOrView below;
  const auto [of_x, of_w, of_bias] =
      at::convolution_backward(host_alias(x), host_alias(gradient), host_alias(w), std::nullopt, stride, padding,
                               dilation, is_transposed, output_padding, groups, {wanted[0], wanted[1], false});
  return {to_device(of_x, x.device().index()), to_device(of_w, x.device().index())};
}

std::tuple<at::Tensor, at::Tensor> convolution_backward(const at::Tensor& x, const at::Tensor& gradient,
                                                        const at::Tensor& w, at::IntArrayRef padding,
                                                        at::IntArrayRef stride, at::IntArrayRef dilation,
                                                        int64_t groups, bool, bool, bool, std::array<bool, 2> wanted) {
  const std::vector<int64_t> none(stride.size(), 0);
  return convolution_gradients(x, gradient, w, padding, none, stride, dilation, groups, false, wanted);
}

std::tuple<at::Tensor, at::Tensor> convolution_transpose_backward(const at::Tensor& x, const at::Tensor& gradient,
                                                                  const at::Tensor& w, at::IntArrayRef padding,
                                                                  at::IntArrayRef output_padding,
                                                                  at::IntArrayRef stride, at::IntArrayRef dilation,
                                                                  int64_t groups, bool, bool, bool,
                                                                  std::array<bool, 2> wanted) {
  return convolution_gradients(x, gradient, w, padding, output_padding, stride, dilation, groups, true, wanted);
}

TORCH_LIBRARY_IMPL(aten, CUDA, library) {
  library.impl("_fused_rms_norm", &rms_norm);
  library.impl("_fused_rms_norm_backward", &rms_norm_backward);
  library.impl("_scaled_dot_product_flash_attention", &flash_attention);
  library.impl("_fused_sdp_choice", &choose_attention);
  library.impl("_flash_attention_forward", torch::CppFunction::makeFromBoxedFunction<&flash_attention_forward>());
  library.impl("_scaled_dot_product_efficient_attention", &efficient_attention);
  library.impl("_scaled_dot_product_cudnn_attention", &cudnn_attention);
  library.impl("cudnn_convolution", &cudnn_convolution);
  library.impl("cudnn_convolution_transpose", &cudnn_convolution_transpose);
}

const bool stubs_set = [] {
  at::native::_fused_sdp_choice_stub.set_cuda_dispatch_ptr(&choose_attention);
  at::native::cudnn_convolution_backward_stub.set_cuda_dispatch_ptr(&convolution_backward);
  at::native::cudnn_convolution_transpose_backward_stub.set_cuda_dispatch_ptr(&convolution_transpose_backward);
  return true;
}();

}  // namespace
}  // namespace fake_cuda
