#include "kernels/matrix.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include "kernels/linear.h"
#include "test/differences.h"
#include "test/test.h"

using namespace carillon;
using test::relative_error;
using kernels::Matrix;
using kernels::Quantization;

namespace {

/// Largest relative error of a product. Divides by the sum of the magnitudes of the terms, because the product may be
/// near zero.
double product_error(const at::Tensor& actual, const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  const at::Tensor exact = at::linear(x.to(at::kDouble), weight, bias.to(at::kDouble));
  const at::Tensor terms = at::linear(x.to(at::kDouble).abs(), weight.abs(), bias.to(at::kDouble).abs());
  return ((actual.to(at::kDouble) - exact).abs() / terms).max().item<double>();
}

}  // namespace

TEST("matrix: quantization error is small, and constant blocks are exact") {
  const c10::InferenceMode inference;
  at::Tensor weight = at::randn({7, 96});
  weight[3].fill_(0.25);
  weight[4].fill_(0);
  for (const auto& [quantization, limit] :
       {std::pair(Quantization::kInt8, 0.008), std::pair(Quantization::kInt4, 0.13)}) {
    const Matrix matrix = kernels::quantize(weight, quantization);
    EXPECT(matrix.quantization() == quantization);
    EXPECT_EQ(matrix.outputs(), 7);
    EXPECT_EQ(matrix.columns(), 96);
    EXPECT(relative_error(matrix.dense(at::kFloat), weight) < limit);
    EXPECT(relative_error(matrix.dense(at::kFloat)[3], weight[3]) < 1e-3);  // the scale is float16
    EXPECT(at::equal(matrix.dense(at::kFloat)[4], weight[4]));
    // Quantizing a dequantized matrix gives the same codes.
    EXPECT(relative_error(kernels::quantize(matrix.dense(at::kFloat), quantization).dense(at::kFloat),
                          matrix.dense(at::kFloat)) < 1e-3);
  }
}

TEST("matrix: depths that are not a multiple of the block size stay unquantized") {
  const at::Tensor weight = at::randn({3, 40});
  EXPECT(kernels::quantize(weight, Quantization::kInt4).data.is_same(weight));
}

TEST("matrix: row slices and gathered rows match the dense matrix") {
  const c10::InferenceMode inference;
  const at::Tensor weight = at::randn({6, 64});
  for (const Quantization quantization : {Quantization::kNone, Quantization::kInt8, Quantization::kInt4}) {
    const Matrix matrix = kernels::quantize(weight.clone(), quantization);
    const at::Tensor numbers = matrix.dense(at::kFloat).clone();
    EXPECT(at::equal(matrix.rows(2, 3).dense(at::kFloat), numbers.narrow(0, 2, 3)));
    const at::Tensor index = at::tensor({5, 0, 5, 1}, at::kLong).view({2, 2});
    EXPECT(at::equal(matrix.gather(index, at::kFloat), numbers.index({index})));
  }
}

TEST("matrix: concatenates parts of different storage types to the type with the most bits") {
  const c10::InferenceMode inference;
  const Matrix four = kernels::quantize(at::randn({2, 64}), Quantization::kInt4),
               eight = kernels::quantize(at::randn({3, 64}), Quantization::kInt8), plain = at::randn({1, 64});
  const Matrix codes = kernels::concatenate({four, eight});
  EXPECT(codes.quantization() == Quantization::kInt8);
  EXPECT(relative_error(codes.rows(0, 2).dense(at::kFloat), four.dense(at::kFloat)) < 0.01);
  EXPECT(at::equal(codes.rows(2, 3).dense(at::kFloat), eight.dense(at::kFloat)));
  const Matrix numbers = kernels::concatenate({four, plain});
  EXPECT(at::equal(numbers.data, at::cat({four.dense(at::kFloat), plain.data})));
}

TEST("matrix: joins dense parts as a view only if they are adjacent in memory") {
  const Matrix whole = at::randn({5, 32});
  const Matrix view = kernels::view_adjacent({whole.rows(0, 2), whole.rows(2, 3)});
  EXPECT(view.data.data_ptr() == whole.data.data_ptr() && at::equal(view.data, whole.data));
  EXPECT(!kernels::view_adjacent({whole.rows(2, 3), whole.rows(0, 2)}).data.defined());
  EXPECT(!kernels::view_adjacent({whole.rows(0, 2), whole.rows(3, 2)}).data.defined());
  const Matrix codes = kernels::quantize(whole.data, Quantization::kInt8);
  EXPECT(!kernels::view_adjacent({codes.rows(0, 2), codes.rows(2, 3)}).data.defined());
}

TEST("matrix: products with a stored matrix match the dense matrix for all row counts") {
  const c10::InferenceMode inference;
  for (const int64_t rows : {1, 2, 3, 4, 5, 8, 9, 33}) {
    for (const auto& [depth, outputs] :
         {std::pair(32, 1), std::pair(96, 7), std::pair(1024, 65), std::pair(40, 5), std::pair(4160, 20)}) {
      const at::Tensor x = at::randn({rows, depth}), bias = at::randn({outputs});
      const at::Tensor weight = at::randn({outputs, depth});
      for (const Matrix& matrix : {Matrix(weight.to(at::kBFloat16)), kernels::quantize(weight, Quantization::kInt8),
                                   kernels::quantize(weight, Quantization::kInt4)}) {
        const at::Tensor numbers = matrix.dense(at::kDouble);
        // Products of few rows with codes round x to 16 bits.
        const double limit = matrix.is_quantized() && rows <= 16 ? 3e-5 : 1e-6;
        EXPECT(product_error(kernels::linear(x, matrix, bias), x, numbers, bias) < limit);
        const at::Tensor halves = kernels::linear(x.to(at::kBFloat16), matrix, bias.to(at::kBFloat16));
        EXPECT(halves.scalar_type() == at::kBFloat16);
        EXPECT(product_error(halves, x, numbers, bias) < 4.0 / 256);  // four bfloat16 roundings
      }
    }
  }
}

TEST("matrix: an output does not depend on the other outputs of a product") {
  const c10::InferenceMode inference;
  const at::Tensor x = at::randn({8, 512});
  const at::Tensor weight = at::randn({300, 512});
  if (!kernels::is_stored_form_fast(weight.to(at::kBFloat16), at::kFloat, at::kCPU))
    SKIP("libtorch multiplies here, and its rounding depends on the number of rows");
  for (const Matrix& matrix : {Matrix(weight.to(at::kBFloat16)), kernels::quantize(weight, Quantization::kInt8),
                               kernels::quantize(weight, Quantization::kInt4)}) {
    const at::Tensor all = kernels::linear(x, matrix, {});
    for (const int64_t rows : {1, 2, 3, 5}) {
      EXPECT(at::equal(kernels::linear(x.narrow(0, 0, rows), matrix, {}), all.narrow(0, 0, rows)));
    }
    EXPECT(at::equal(kernels::linear(x, matrix.rows(7, 30), {}), all.narrow(1, 7, 30)));
  }
}

TEST("matrix: each of up to sixteen rows has the same bits as the row alone, for every type and instruction set") {
  const c10::InferenceMode inference;
  const at::Tensor wide = at::randn({300, 512}), bias = at::randn({300});
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    const at::Tensor x = at::randn({16, 512}).to(dtype);
    for (const Matrix& matrix :
         {Matrix(wide), Matrix(wide.to(at::kBFloat16)), kernels::quantize(wide, Quantization::kInt8),
          kernels::quantize(wide, Quantization::kInt4)}) {
      for (const int64_t rows : {2, 8, 9, 16}) {
        const at::Tensor all = kernels::linear(x.narrow(0, 0, rows), matrix, bias.to(dtype));
        for (const int64_t row : {int64_t{0}, rows - 1}) {
          EXPECT(at::equal(kernels::linear(x.narrow(0, row, 1), matrix, bias.to(dtype)), all.narrow(0, row, 1)));
        }
      }
    }
  }
}

TEST("matrix: a number that is not finite makes a product with codes NaN, and tiny numbers keep their size") {
  const c10::InferenceMode inference;
  const at::Tensor weight = at::ones({3, 64});
  for (const Quantization quantization : {Quantization::kInt8, Quantization::kInt4}) {
    const Matrix matrix = kernels::quantize(weight, quantization);
    at::Tensor x = at::ones({2, 64});
    x[1][40] = INFINITY;
    const at::Tensor y = kernels::linear(x, matrix, {});
    EXPECT(relative_error(y[0], at::full({3}, 64.0)) < 2e-3);
    EXPECT(!y[1].isfinite().any().item<bool>());
    const at::Tensor tiny = kernels::linear(at::full({1, 64}, 1e-30), matrix, {});
    EXPECT(relative_error(tiny * 1e30, at::full({1, 3}, 64.0)) < 2e-3);
  }
}

TEST("matrix: gradients flow through products with stored weights") {
  const Matrix matrix = kernels::quantize(at::randn({5, 64}), Quantization::kInt8);
  const at::Tensor x = at::randn({2, 64}).requires_grad_();
  kernels::linear(x, matrix, {}).sum().backward();
  EXPECT(relative_error(x.grad(), matrix.dense(at::kFloat).sum(0).expand({2, 64})) < 1e-5);
}
