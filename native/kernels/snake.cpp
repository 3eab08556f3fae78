#include "kernels/snake.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <functional>

#include "kernels/cpu.h"
#include "kernels/vector_kernels.h"

namespace carillon::kernels {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr int64_t kElementsPerPiece = 1 << 15;  // a few float32 buffers of this size fit into L2

/// Splits x [B, C, T] into pieces and calls `body` for each piece: a batch item and a range of its channels. A piece
/// has all channels of an item if x is not on the CPU.
void for_each_piece(const at::Tensor& x, const std::function<void(int64_t item, int64_t first, int64_t count)>& body) {
  const int64_t channels = x.size(1);
  const int64_t width = x.is_cpu() ? std::clamp<int64_t>(kElementsPerPiece / x.size(2), 1, channels) : channels;
  const int64_t pieces = (channels + width - 1) / width;
  const auto run = [&](int64_t piece) {
    const int64_t first = piece % pieces * width;
    body(piece / pieces, first, std::min(width, channels - first));
  };
  if (!x.is_cpu()) {
    for (int64_t piece = 0; piece < x.size(0) * pieces; ++piece) run(piece);
    return;
  }
  at::parallel_for(0, x.size(0) * pieces, 1, [&](int64_t begin, int64_t end) {
    const at::NoGradGuard no_grad;  // grad mode is thread-local
    for (int64_t piece = begin; piece < end; ++piece) run(piece);
  });
}

#if defined(CARILLON_AVX512)
constexpr int64_t kElementsPerTask = 1 << 15;

bool can_run_rows(const at::Tensor& x) {
  return has_avx512() && x.is_cpu() && (x.scalar_type() == at::kFloat || x.scalar_type() == at::kBFloat16);
}

/// Calls `body` with the index (0 .. B * C - 1) of every row of x [B, C, T], on several threads.
void for_each_row(const at::Tensor& x, const std::function<void(int64_t row)>& body) {
  at::parallel_for(0, x.size(0) * x.size(1), kElementsPerTask / x.size(2) + 1, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) body(row);
  });
}

template <typename Element>
at::Tensor forward_rows(const at::Tensor& x, const at::Tensor& frequency, const at::Tensor& gain) {
  const int64_t channels = x.size(1), length = x.size(2);
  at::Tensor y = at::empty_like(x);
  const auto* in = static_cast<const Element*>(x.const_data_ptr());
  const float *f = frequency.const_data_ptr<float>(), *g = gain.const_data_ptr<float>();
  auto* out = static_cast<Element*>(y.data_ptr());
  for_each_row(x, [&](int64_t row) {
    const int64_t channel = row % channels, first = row * length;
    snake_row_avx512(in + first, f[channel], g[channel], out + first, length);
  });
  return y;
}

template <typename Element>
variable_list backward_rows(const at::Tensor& x, const at::Tensor& dy, const at::Tensor& frequency,
                            const at::Tensor& gain) {
  const int64_t channels = x.size(1), length = x.size(2);
  at::Tensor dx = at::empty_like(x), sums = at::empty({2, x.size(0), channels}, frequency.options());
  const auto* in = static_cast<const Element*>(x.const_data_ptr());
  const auto* upstream = static_cast<const Element*>(dy.const_data_ptr());
  const float *f = frequency.const_data_ptr<float>(), *g = gain.const_data_ptr<float>();
  auto* out = static_cast<Element*>(dx.data_ptr());
  float *of_frequency = sums[0].data_ptr<float>(), *of_gain = sums[1].data_ptr<float>();
  for_each_row(x, [&](int64_t row) {
    const int64_t channel = row % channels, first = row * length;
    const SnakeGradients of_row =
        snake_row_backward_avx512(in + first, upstream + first, f[channel], g[channel], out + first, length);
    of_frequency[row] = of_row.frequency;
    of_gain[row] = of_row.gain;
  });
  return {dx, sums[0].sum(0), sums[1].sum(0)};
}
#endif

at::Tensor run_forward(const at::Tensor& x, const at::Tensor& frequency, const at::Tensor& gain) {
#if defined(CARILLON_AVX512)
  if (can_run_rows(x)) {
    const auto rows = x.scalar_type() == at::kFloat ? forward_rows<float> : forward_rows<uint16_t>;
    return rows(x, frequency.contiguous(), gain.contiguous());
  }
#endif
  at::Tensor y = at::empty_like(x);
  for_each_piece(x, [&](int64_t item, int64_t first, int64_t count) {
    const auto of = [&](const at::Tensor& constants) { return constants.narrow(0, first, count).unsqueeze(1); };
    const at::Tensor wide = x[item].narrow(0, first, count).to(at::kFloat);
    at::Tensor wave = (wide * of(frequency)).sin_();
    y[item].narrow(0, first, count).copy_(wave.mul_(wave).mul_(of(gain)).add_(wide));
  });
  return y;
}

struct DifferentiableSnake : torch::autograd::Function<DifferentiableSnake> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& signal, const at::Tensor& frequency,
                            const at::Tensor& gain) {
    const at::Tensor x = signal.contiguous();
    context->save_for_backward({x, frequency, gain});
    return run_forward(x, frequency, gain);
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &frequency = saved[1], &gain = saved[2];
    const at::Tensor dy = gradients[0].contiguous();
#if defined(CARILLON_AVX512)
    if (can_run_rows(x)) {
      const auto rows = x.scalar_type() == at::kFloat ? backward_rows<float> : backward_rows<uint16_t>;
      return rows(x, dy, frequency.contiguous(), gain.contiguous());
    }
#endif
    at::Tensor dx = at::empty_like(x);
    // Gradients are stored per batch item and summed later, so that the threads write to separate memory.
    const auto by_item = [&] { return at::empty({x.size(0), x.size(1)}, frequency.options()); };
    at::Tensor d_frequency = by_item(), d_gain = by_item();
    for_each_piece(x, [&](int64_t item, int64_t first, int64_t count) {
      const auto of = [&](const at::Tensor& constants) { return constants.narrow(0, first, count).unsqueeze(1); };
      const at::Tensor wide = x[item].narrow(0, first, count).to(at::kFloat);
      const at::Tensor upstream = dy[item].narrow(0, first, count).to(at::kFloat);
      const at::Tensor phase = wide * of(frequency);
      const at::Tensor wave = phase.sin();
      d_gain[item].narrow(0, first, count).copy_((upstream * wave.square()).sum(1));
      at::Tensor slope = wave.mul_(phase.cos()).mul_(2).mul_(upstream).mul_(of(gain));  // dy gain sin(2 f x)
      d_frequency[item].narrow(0, first, count).copy_((slope * wide).sum(1));
      dx[item].narrow(0, first, count).copy_(slope.mul_(of(frequency)).add_(upstream));
    });
    return {dx, d_frequency.sum(0), d_gain.sum(0)};
  }
};

}  // namespace

at::Tensor snake(const at::Tensor& x, const at::Tensor& frequency, const at::Tensor& gain) {
  if (at::GradMode::is_enabled() && (x.requires_grad() || frequency.requires_grad() || gain.requires_grad())) {
    return DifferentiableSnake::apply(x, frequency, gain);
  }
  const at::Tensor f = frequency.view({-1, 1}), g = gain.view({-1, 1});
  if (!x.is_cuda()) return snake_reference(x, f, g);
  // libtorch's kernels convert types themselves, which saves passes that widen x and narrow the result.
  const at::Tensor wave = (x * f).sin_();
  at::Tensor y = at::empty_like(x);
  return at::addcmul_out(y, x, wave.square_(), g);
}

at::Tensor snake_reference(const at::Tensor& x, const at::Tensor& frequency, const at::Tensor& gain) {
  const at::Tensor wide = x.to(at::kFloat);
  at::Tensor wave = at::sin(wide * frequency);
  if (wave.requires_grad()) return (wide + wave.square() * gain).to(x.scalar_type());
  return wave.mul_(wave).mul_(gain).add_(wide).to(x.scalar_type());
}

}  // namespace carillon::kernels
