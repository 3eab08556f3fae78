#include "core/vae/convolution.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <type_traits>

#include "kernels/snake.h"
#include "kernels/snake_cuda.h"

namespace carillon {

Signal Signal::part(int64_t first, int64_t count) const {
  const auto rows = [&](const at::Tensor& all) { return all.narrow(0, first, count + 2 * kHalo); };
  return {rows(data), count, scales.defined() ? rows(scales) : scales};
}

Signal SignalPool::take(int64_t length, int64_t channels, at::ScalarType dtype) {
  const int64_t rows = length + 2 * Signal::kHalo, numbers = rows * channels;
  const int64_t scales = dtype == at::kShort ? numbers / kernels::kCodeBlock : 0;
  const int64_t elements = numbers + 2 * scales;  // the float32 scales follow the int16 numbers
  // Frees unused buffers that are too small. A decoder's signals grow from layer to layer, so these buffers would not
  // fit later either.
  const auto is_unused = [&](const at::Tensor& buffer) {
    return buffer.storage().use_count() == 1 && buffer.scalar_type() == dtype;
  };
  std::erase_if(buffers_, [&](const at::Tensor& buffer) { return is_unused(buffer) && buffer.numel() < elements; });
  auto buffer = std::ranges::find_if(buffers_, is_unused);
  if (buffer == buffers_.end()) buffer = buffers_.insert(buffers_.end(), at::empty({elements}, dtype));
  Signal signal{buffer->narrow(0, 0, numbers).view({rows, channels}), length};
  if (scales) signal.scales = buffer->narrow(0, numbers, 2 * scales).view(at::kFloat).view({rows, -1});
  return signal;
}

void clear_halo(const Signal& signal) {
  for (const at::Tensor& all : {signal.data, signal.scales}) {
    if (!all.defined()) continue;
    all.narrow(0, 0, Signal::kHalo).zero_();
    all.narrow(0, Signal::kHalo + signal.length, Signal::kHalo).zero_();
  }
}

namespace {

/// weight = g * v / |v|. The norm |v| is taken over all dimensions but the first.
at::Tensor load_weight(const Weights& weights, at::IntArrayRef shape) {
  const auto fuse = [&](const char* magnitude, const char* direction) {
    return at::_weight_norm(weights.get(direction, shape, at::kFloat),
                            weights.get(magnitude, {shape[0], 1, 1}, at::kFloat), 0);
  };
  if (weights.has("parametrizations.weight.original1")) {
    return fuse("parametrizations.weight.original0", "parametrizations.weight.original1");
  }
  if (weights.has("weight_v")) return fuse("weight_g", "weight_v");
  return weights.get("weight", shape, at::kFloat);
}

/// Type of tensors of `Element`; uint16_t holds the bits of a bfloat16.
template <typename Element>
constexpr at::ScalarType dtype_of() {
  return std::is_same_v<Element, float> ? at::kFloat : std::is_same_v<Element, int16_t> ? at::kShort : at::kBFloat16;
}

/// Reshapes the weight to a matrix [rows, depth] for the product with time-major input.
at::Tensor as_matrix(const at::Tensor& weight, const ConvolutionShape& shape) {
  if (!shape.transposed) return weight.permute({0, 2, 1}).reshape({shape.out, shape.kernel * shape.in});
  // out[i * stride + r] = weight[r] * x[i] + weight[r + stride] * x[i - 1]
  const at::Tensor taps = weight.view({shape.in, shape.out, 2, shape.stride}).flip(2);
  return taps.permute({3, 1, 2, 0}).reshape({shape.stride * shape.out, 2 * shape.in});
}

/// Returns a matrix whose product with kernel + steps - 1 input rows gives `steps` consecutive outputs.
at::Tensor group_steps(const at::Tensor& matrix, const ConvolutionShape& shape, int64_t steps) {
  if (steps == 1) return matrix;
  const at::Tensor grouped = at::zeros({steps, shape.out, (shape.kernel + steps - 1) * shape.in});
  for (int64_t step = 0; step < steps; ++step) grouped[step].narrow(1, step * shape.in, matrix.size(1)).copy_(matrix);
  return grouped.flatten(0, 1);
}

/// Number of consecutive outputs that one row of the product computes. A layer with few output channels computes
/// several, to fill a panel. The last row may write past the end of the signal, into the halo.
int64_t steps_to_group(const ConvolutionShape& shape) {
  const bool is_plain = !shape.transposed && shape.stride == 1 && shape.dilation == 1 && !shape.bias;
  return is_plain && shape.out <= kernels::kFloatPanel / 2 ? kernels::kFloatPanel / shape.out : 1;
}

}  // namespace

Snake Snake::load(const Weights& weights, int64_t channels) {
  // The shape is [C] in ComfyUI files, and [1, C, 1] in diffusers files.
  const auto shape = weights.shape("alpha").size() == 1 ? std::vector<int64_t>{channels}
                                                        : std::vector{int64_t{1}, channels, int64_t{1}};
  const at::Tensor alpha = weights.get("alpha", shape, at::kFloat), beta = weights.get("beta", shape, at::kFloat);
  return {alpha.exp().reshape({channels}), (beta.exp() + 1e-9).reciprocal().reshape({channels})};
}

Convolution Convolution::load(const Weights& weights, const ConvolutionShape& shape, Products products) {
  Convolution convolution;
  convolution.shape_ = shape;
  convolution.products_ = products;
  const auto outer = shape.transposed ? std::pair(shape.in, shape.out) : std::pair(shape.out, shape.in);
  at::Tensor weight = load_weight(weights, {outer.first, outer.second, shape.kernel});
  if (products == Products::kLibtorch) {
    convolution.weight_ = weight.to(weights.placement().dtype);
    if (shape.bias) convolution.bias_ = weights.get("bias", {shape.out});
    return convolution;
  }
  if (products == Products::kFixed && !shape.transposed) {
    const int64_t missing = -shape.in & (kernels::kCodeBlock - 1);
    weight = at::constant_pad_nd(weight, {0, 0, 0, missing});
    convolution.shape_.in += missing;
  }
  const at::Tensor matrix = as_matrix(weight, convolution.shape_);
  if (products == Products::kFloat) {
    convolution.grouped_steps_ = steps_to_group(shape);
    convolution.matrix_ = kernels::pack_floats(group_steps(matrix, shape, convolution.grouped_steps_));
  } else {
    convolution.matrix_ = (products == Products::kFixed ? kernels::pack_fixed : kernels::pack)(matrix);
  }
  if (shape.bias) {
    const at::Tensor bias = weights.get("bias", {shape.out}, at::kFloat);
    convolution.bias_ = shape.transposed ? bias.repeat({shape.stride}) : bias.contiguous();
  }
  return convolution;
}

int64_t Convolution::output_length(int64_t length) const {
  if (shape_.transposed) return (length - 1) * shape_.stride - 2 * shape_.padding + shape_.kernel;
  return (length + 2 * shape_.padding - shape_.dilation * (shape_.kernel - 1) - 1) / shape_.stride + 1;
}

at::Tensor Convolution::run_with_libtorch(const Signal& x, const at::Tensor& bias) const {
  if (shape_.transposed) return at::conv_transpose1d(x.data, weight_, bias, shape_.stride, shape_.padding);
  return at::conv1d(x.data, weight_, bias, shape_.stride, shape_.padding, shape_.dilation);
}

template <typename Element>
void Convolution::multiply(const Signal& x, int64_t length, kernels::BasicTileEpilogue<Element> epilogue) const {
  using Word = std::conditional_t<std::is_same_v<Element, float>, float, uint32_t>;
  using Input = kernels::BasicTileInput<Word>;
  const int64_t words = shape_.in * static_cast<int64_t>(sizeof(Element)) / static_cast<int64_t>(sizeof(Word));
  if (bias_.defined()) epilogue.bias = bias_.const_data_ptr<float>();
  // Multiplies `count` rows. `input` has no data yet; its first row begins `before` words before the signal.
  const auto run = [&](int64_t before, Input input, int64_t count) {
    const int64_t first = Signal::kHalo * words - before;
    input.data = static_cast<const Word*>(x.data.const_data_ptr()) + first;
    if constexpr (std::is_same_v<Element, int16_t>) {
      const float* const scales = x.scales.const_data_ptr<float>() + 2 * first / kernels::kCodeBlock;
      kernels::matmul(matrix_, kernels::FixedTileInput{input, scales}, count, epilogue);
    } else {
      kernels::matmul(matrix_, input, count, epilogue);
    }
  };
  if (shape_.transposed) {
    // Row i of the product holds `stride` outputs; the first has index i * stride - padding. Indices outside [0,
    // length) are in the halo.
    run(words, {nullptr, words, 0, 1, 2 * words}, x.length + 1);
  } else if (shape_.dilation == 1) {
    const int64_t steps = grouped_steps_;
    const int64_t reach = (shape_.kernel + steps - 1) * words;
    run(shape_.padding * words, {nullptr, steps * shape_.stride * words, 0, 1, reach}, (length + steps - 1) / steps);
  } else {
    run(shape_.padding * words, {nullptr, words, shape_.dilation * words, shape_.kernel, words}, length);
  }
}

Convolution::Result Convolution::operator()(const Signal& x, const Epilogue& then, SignalPool& pool) const {
  const int64_t length = output_length(x.length);
  Result result;
  if (products_ == Products::kLibtorch) {
    const at::Device device = x.data.device();
    if (then.snake && !at::GradMode::is_enabled() && kernels::has_snake_pass(device, x.data.scalar_type())) {
      const at::Tensor residual = then.residual ? then.residual->data : at::Tensor();
      const kernels::SnakePass pass{bias_, residual, then.snake->frequency, then.snake->gain, then.keep};
      const auto [plain, snaked] = kernels::run_snake_pass(run_with_libtorch(x, {}), pass);
      if (then.keep) result.plain = {plain, length};
      result.snaked = {snaked, length};
      return result;
    }
    at::Tensor y = run_with_libtorch(x, bias_);
    if (then.residual) y = y + then.residual->data;
    if (then.snake) result.snaked = {kernels::snake(y, then.snake->frequency, then.snake->gain), length};
    if (then.keep) result.plain = {y, length};
    return result;
  }
  switch (products_) {
    case Products::kFloat:
      return run_time_major<float>(x, then, pool);
    case Products::kFixed:
      return run_time_major<int16_t>(x, then, pool);
    default:
      return run_time_major<uint16_t>(x, then, pool);
  }
}

template <typename Element>
Convolution::Result Convolution::run_time_major(const Signal& x, const Epilogue& then, SignalPool& pool) const {
  const int64_t length = output_length(x.length);
  Result result;
  kernels::BasicTileEpilogue<Element> epilogue;
  const int64_t row_elements = steps_per_row() * shape_.out;
  const int64_t first = (Signal::kHalo - (shape_.transposed ? shape_.padding : 0)) * shape_.out;
  using Plain = typename kernels::PlainElement<Element>::Type;
  const auto plain = [&](const Signal& signal) { return static_cast<Plain*>(signal.data.data_ptr()) + first; };
  if (then.residual) {
    epilogue.residual = plain(*then.residual);
    epilogue.residual_stride = row_elements;
  }
  if (then.keep) {
    result.plain = pool.take(length, shape_.out, dtype_of<Plain>());
    epilogue.out = plain(result.plain);
    epilogue.out_stride = row_elements;
  }
  at::Tensor frequency, gain;
  if (then.snake) {
    frequency = then.snake->frequency.repeat({steps_per_row()});
    gain = then.snake->gain.repeat({steps_per_row()});
    epilogue.snake_frequency = frequency.const_data_ptr<float>();
    epilogue.snake_gain = gain.const_data_ptr<float>();
    result.snaked = pool.take(length, shape_.out, dtype_of<Element>());
    epilogue.snake_out = static_cast<Element*>(result.snaked.data.data_ptr()) + first;
    epilogue.snake_stride = row_elements;
    const at::Tensor& scales = result.snaked.scales;
    if (scales.defined()) epilogue.snake_scales = scales.data_ptr<float>() + first / kernels::kCodeBlock;
  }
  multiply(x, length, epilogue);
  if (then.keep) clear_halo(result.plain);
  if (then.snake) clear_halo(result.snaked);
  return result;
}

at::Tensor Convolution::run_to_float(const Signal& x) const {
  switch (products_) {
    case Products::kLibtorch:
      return run_with_libtorch(x, bias_).to(at::kFloat);
    case Products::kFloat:
      return run_time_major_to_float<float>(x);
    case Products::kFixed:
      return run_time_major_to_float<int16_t>(x);
    default:
      return run_time_major_to_float<uint16_t>(x);
  }
}

template <typename Element>
at::Tensor Convolution::run_time_major_to_float(const Signal& x) const {
  const int64_t length = output_length(x.length);
  const int64_t steps = steps_per_row(), groups = (length + steps - 1) / steps;
  const at::Tensor rows = at::empty({groups * steps, shape_.out});
  kernels::BasicTileEpilogue<Element> epilogue;
  epilogue.out_float = rows.data_ptr<float>();
  epilogue.out_float_stride = steps * shape_.out;
  multiply(x, length, epilogue);
  return rows.narrow(0, 0, length).t().unsqueeze(0);
}

}  // namespace carillon
