#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/InferenceMode.h>

#include <cmath>

#include "kernels/cpu.h"
#include "kernels/decode_attention.h"
#include "kernels/linear.h"
#include "kernels/packed_matrix.h"
#include "kernels/snake.h"
#include "test/differences.h"
#include "test/test.h"

using namespace carillon;
using test::relative_error;

namespace {

}  // namespace

TEST("kernels: linear matches libtorch for all row counts, widths and depths") {
  const c10::InferenceMode inference;
  for (const int64_t rows : {1, 2, 3, 8, 9, 14, 15, 40}) {
    for (const auto& [in, out] : {std::pair(64, 32), std::pair(90, 7), std::pair(1024, 33), std::pair(2, 100)}) {
      for (const bool has_bias : {false, true}) {
        for (const at::ScalarType dtype : {at::kBFloat16, at::kFloat}) {
          const at::Tensor x = at::randn({rows, in}).to(dtype);
          const at::Tensor weight = (at::randn({out, in}) / std::sqrt(static_cast<double>(in))).to(dtype);
          const at::Tensor bias = has_bias ? at::randn({out}).to(dtype) : at::Tensor();
          const at::Tensor exact = kernels::linear_reference(x.to(at::kDouble), weight.to(at::kDouble),
                                                             has_bias ? bias.to(at::kDouble) : bias);
          const at::Tensor y = kernels::linear(x, weight, bias);
          EXPECT(y.scalar_type() == dtype);
          EXPECT(relative_error(y, exact) < (dtype == at::kFloat ? 1e-5 : 4e-3));
        }
      }
    }
  }
}

TEST("kernels: linear keeps leading dimensions and accepts views") {
  const c10::InferenceMode inference;
  const at::Tensor x = at::randn({2, 64, 5}).to(at::kBFloat16).transpose(1, 2);
  const at::Tensor table = at::randn({50, 64}).to(at::kBFloat16);
  const at::Tensor weight = table.narrow(0, 10, 20);
  const at::Tensor y = kernels::linear(x, weight, {});
  EXPECT((y.sizes() == at::IntArrayRef{2, 5, 20}));
  EXPECT(relative_error(y, kernels::linear_reference(x.to(at::kDouble), weight.to(at::kDouble), {})) < 4e-3);
  const at::Tensor columns = at::randn({64, 20}).to(at::kBFloat16).t();
  EXPECT(relative_error(kernels::linear(x, columns, {}),
                        kernels::linear_reference(x.to(at::kDouble), columns.to(at::kDouble), {})) < 4e-3);
}

TEST("kernels: linear is differentiable for inputs that require gradients") {
  const at::Tensor x = at::randn({3, 16}).to(at::kBFloat16);
  const at::Tensor weight = at::randn({4, 16}).to(at::kBFloat16).requires_grad_();
  EXPECT(kernels::linear(x, weight, {}).requires_grad());
}

TEST("kernels: the packed product applies bias, residual and snake") {
  if (!kernels::has_avx512()) SKIP("packed products need AVX-512");
  const c10::InferenceMode inference;
  for (const int64_t rows : {1, 14, 31}) {
    for (const int64_t outputs : {2, 16, 32, 70}) {
      const int64_t depth = 48;
      const at::Tensor x = at::randn({rows, depth}).to(at::kBFloat16);
      const at::Tensor weight = (at::randn({outputs, depth}) / 7).to(at::kBFloat16);
      const at::Tensor bias = at::randn({outputs}), residual = at::randn({rows, outputs}).to(at::kBFloat16);
      // Angles reach a few thousand, as with large activations.
      const at::Tensor frequency = at::randn({outputs}).exp() * 300, gain = at::randn({outputs}).exp();
      const at::Tensor plain = at::empty({rows, outputs}), snaked = at::empty({rows, outputs}, at::kBFloat16);
      const at::Tensor rounded = at::empty_like(snaked);
      kernels::TileEpilogue epilogue;
      epilogue.bias = bias.const_data_ptr<float>();
      epilogue.residual = static_cast<const uint16_t*>(residual.const_data_ptr());
      epilogue.residual_stride = outputs;
      epilogue.out = static_cast<uint16_t*>(rounded.data_ptr());
      epilogue.out_stride = outputs;
      epilogue.out_float = plain.data_ptr<float>();
      epilogue.out_float_stride = outputs;
      epilogue.snake_frequency = frequency.const_data_ptr<float>();
      epilogue.snake_gain = gain.const_data_ptr<float>();
      epilogue.snake_out = static_cast<uint16_t*>(snaked.data_ptr());
      epilogue.snake_stride = outputs;
      const kernels::TileInput input{static_cast<const uint32_t*>(x.const_data_ptr()), depth / 2, 0, 1, depth / 2};
      kernels::matmul(kernels::pack(weight), input, rows, epilogue);

      const at::Tensor exact = at::linear(x.to(at::kFloat), weight.to(at::kFloat), bias) + residual.to(at::kFloat);
      EXPECT(relative_error(plain, exact) < 1e-5);
      EXPECT(relative_error(rounded, exact) < 4e-3);
      EXPECT(relative_error(snaked, kernels::snake_reference(plain, frequency, gain)) < 4e-3);
    }
  }
}

TEST("kernels: integer tiles apply scales, bias, residual and snake for all rows, outputs and taps") {
  if (!kernels::has_avx512()) SKIP("integer tiles need AVX512-BF16");
  const c10::InferenceMode inference;
  constexpr int64_t kTaps = 3, kIn = 64, kBlocks = kIn / kernels::kCodeBlock;
  for (const int64_t rows : {1, 2, 6, 7, 8, 40, 500}) {
    for (const int64_t outputs : {32, 96}) {
      const at::Tensor x = at::randn({rows + 2 * (kTaps - 1), kIn}), weight = at::randn({outputs, kTaps * kIn});
      const auto [numbers, scales] = kernels::round_fixed(x.unflatten(1, {kBlocks, kernels::kCodeBlock}));
      const at::Tensor bias = at::randn({outputs}), residual = at::randn({rows, outputs});
      const at::Tensor frequency = at::randn({outputs}).exp(), gain = at::randn({outputs}).exp();
      const at::Tensor y = at::empty({rows, outputs}), snaked = at::empty({rows, outputs}, at::kShort);
      const at::Tensor snake_scales = at::empty({rows, outputs / kernels::kCodeBlock, 1});
      kernels::FixedTileEpilogue epilogue;
      epilogue.bias = bias.const_data_ptr<float>();
      epilogue.residual = residual.const_data_ptr<float>();
      epilogue.out = y.data_ptr<float>();
      epilogue.snake_out = snaked.data_ptr<int16_t>();
      epilogue.snake_scales = snake_scales.data_ptr<float>();
      epilogue.residual_stride = epilogue.out_stride = epilogue.snake_stride = outputs;
      epilogue.snake_frequency = frequency.const_data_ptr<float>();
      epilogue.snake_gain = gain.const_data_ptr<float>();
      const kernels::FixedTileInput input{
          {static_cast<const uint32_t*>(numbers.const_data_ptr()), kIn / 2, 2 * kIn / 2, kTaps, kIn / 2},
          scales.const_data_ptr<float>()};
      kernels::matmul(kernels::pack_fixed(weight), input, rows, epilogue);
      const at::Tensor taps =
          at::cat({x.narrow(0, 0, rows), x.narrow(0, 2, rows), x.narrow(0, 4, rows)}, 1).to(at::kDouble);
      const at::Tensor exact = at::linear(taps, weight.to(at::kDouble), bias.to(at::kDouble)) + residual;
      EXPECT(relative_error(y, exact) < 3e-4);
      const at::Tensor blocks = snaked.view({rows, -1, kernels::kCodeBlock}) * snake_scales;
      EXPECT(relative_error(blocks.flatten(1), kernels::snake_reference(y, frequency, gain)) < 2e-4);
    }
  }
}

TEST("kernels: float tiles apply bias, residual and snake for all rows, outputs and taps") {
  if (!kernels::has_float_tiles()) SKIP("float tiles need AVX2");
  const c10::InferenceMode inference;
  constexpr int64_t kTaps = 3, kIn = 5;
  for (const int64_t rows : {1, 2, 5, 6, 7, 40, 1000}) {
    for (const int64_t outputs : {1, 2, 8, 9, 16, 17, 40}) {
      const at::Tensor x = at::randn({rows + 2 * (kTaps - 1), kIn}), weight = at::randn({outputs, kTaps * kIn});
      const at::Tensor bias = at::randn({outputs}), residual = at::randn({rows, outputs});
      const at::Tensor frequency = at::randn({outputs}).exp(), gain = at::randn({outputs}).exp();
      const at::Tensor y = at::empty({rows, outputs}), snaked = at::empty({rows, outputs});
      kernels::FloatTileEpilogue epilogue;
      epilogue.bias = bias.const_data_ptr<float>();
      epilogue.residual = residual.const_data_ptr<float>();
      epilogue.out = y.data_ptr<float>();
      epilogue.snake_out = snaked.data_ptr<float>();
      epilogue.residual_stride = epilogue.out_stride = epilogue.snake_stride = outputs;
      epilogue.snake_frequency = frequency.const_data_ptr<float>();
      epilogue.snake_gain = gain.const_data_ptr<float>();
      // The taps read every second row, as in a dilated convolution.
      const kernels::FloatTileInput input{x.const_data_ptr<float>(), kIn, 2 * kIn, kTaps, kIn};
      kernels::matmul(kernels::pack_floats(weight), input, rows, epilogue);
      const at::Tensor taps =
          at::cat({x.narrow(0, 0, rows), x.narrow(0, 2, rows), x.narrow(0, 4, rows)}, 1).to(at::kDouble);
      const at::Tensor exact = at::linear(taps, weight.to(at::kDouble), bias.to(at::kDouble)) + residual;
      EXPECT(relative_error(y, exact) < 1e-6);
      EXPECT(relative_error(snaked, kernels::snake_reference(y, frequency, gain)) < 1e-6);
    }
  }
}

TEST("kernels: snake is x + sin(f x)^2 g") {
  const at::Tensor x = at::tensor({-1.0f, 0.5f, 2.0f});
  const at::Tensor frequency = at::tensor({-0.1f}).exp(), gain = at::tensor({0.2f}).exp().reciprocal();
  const at::Tensor y = kernels::snake_reference(x, frequency, gain);
  const float expected[] = {-0.493773f, 0.656454f, 2.772893f};
  for (int i = 0; i < 3; ++i) EXPECT_NEAR(y[i].item<float>(), expected[i], 1e-5);
}

TEST("kernels: snake and its gradients match the reference") {
  auto generator = at::detail::createCPUGenerator(3);
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    const double tolerance = dtype == at::kFloat ? 1e-4 : 1e-2;
    for (const int64_t length : {5, 37, 40000}) {
      const at::Tensor x = (3 * at::randn({2, 3, length}, generator, at::kFloat)).to(dtype).set_requires_grad(true);
      const at::Tensor frequency = at::randn({3}, generator, at::kFloat).exp().set_requires_grad(true);
      const at::Tensor gain = at::randn({3}, generator, at::kFloat).exp().set_requires_grad(true);
      const at::Tensor upstream = at::randn({2, 3, length}, generator, at::kFloat).to(dtype);
      const auto run = [&](const at::Tensor& y) {
        std::vector<at::Tensor> results = {y.detach()};
        y.backward(upstream);
        for (const at::Tensor& leaf : {x, frequency, gain}) {
          results.push_back(leaf.grad().clone());
          leaf.mutable_grad() = at::Tensor();
        }
        return results;
      };
      const auto fast = run(kernels::snake(x, frequency, gain));
      const auto exact = run(kernels::snake_reference(x, frequency.unsqueeze(1), gain.unsqueeze(1)));
      for (size_t i = 0; i < exact.size(); ++i) EXPECT(relative_error(fast[i], exact[i]) < tolerance);
      const at::NoGradGuard no_grad;
      EXPECT(relative_error(kernels::snake(x, frequency, gain), exact[0]) < tolerance);
    }
  }
}

TEST("kernels: decode attention matches libtorch on cache views") {
  const c10::InferenceMode inference;
  for (const at::ScalarType dtype : {at::kBFloat16, at::kFloat}) {
    for (const int64_t dim : {32, 128, 24}) {
      for (const int64_t length : {1, 15, 17, 401}) {
        const at::Tensor cache = at::randn({2, 3, 2, 420, dim}).to(dtype);
        const at::Tensor k = cache[0].narrow(0, 1, 2).narrow(2, 0, length),
                         v = cache[1].narrow(0, 1, 2).narrow(2, 0, length);
        const at::Tensor q = (at::randn({2, 4, 2, dim}) * 3).to(dtype).transpose(1, 2);
        const at::Tensor exact =
            kernels::decode_attention_reference(q.to(at::kDouble), k.to(at::kDouble), v.to(at::kDouble));
        const at::Tensor y = kernels::decode_attention(q, k, v);
        EXPECT((y.sizes() == at::IntArrayRef{2, 2, 4, dim}));
        EXPECT(relative_error(y, exact) < (dtype == at::kFloat ? 1e-5 : 1e-2));
      }
    }
  }
}
