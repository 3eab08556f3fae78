#include <ATen/ATen.h>

#include "core/dit/audio_tokenizer.h"
#include "test/test.h"

using namespace carillon;

namespace {

const Fsq& fsq() {
  static const Fsq quantizer({8, 8, 8, 5, 5, 5});
  return quantizer;
}

int64_t index_of(const std::vector<float>& z) { return fsq().quantize(at::tensor(z)).item<int64_t>(); }

}  // namespace

TEST("fsq: indices match the reference") {
  EXPECT_EQ(fsq().codebook_size(), 64000);
  EXPECT_EQ(index_of({0, 0, 0, 0, 0, 0}), 32036);
  EXPECT_EQ(index_of({1.2f, -1.2f, .3f, .3f, -.9f, .2f}), 27463);
  EXPECT_EQ(index_of({.1f, -.1f, .7f, -.25f, .26f, 5}), 60316);
  EXPECT_EQ(index_of({1.15f, 1.15f, 1.15f, 1.15f, 1.15f, 1.15f}), 63999);
  EXPECT_EQ(index_of({-3, -3, -3, -3, -3, -3}), 0);
}

TEST("fsq: decodes an index to its values") {
  const at::Tensor values = fsq().values(at::tensor({0, 12345, 31999, 63999}, at::kLong));
  const at::Tensor expected = at::stack({at::full({6}, -1.f), at::tensor({-.714286f, 1.f, -1.f, 1.f, 1.f, -1.f}),
                                         at::tensor({1.f, 1.f, -.142857f, 0.f, 0.f, 0.f}), at::ones({6})});
  EXPECT((values - expected).abs().max().item<double>() < 1e-6);
}

TEST("fsq: every code survives a round trip through its values") {
  const at::Tensor all = at::arange(64000, at::kLong);
  // Inverts the soft clamp soft * tanh(z / soft). `soft` is above 1, so the outermost values -1 and 1 have an inverse.
  const at::Tensor soft = 1.0 + 1.0 / (at::tensor({8.f, 8.f, 8.f, 5.f, 5.f, 5.f}) - 1.0);
  EXPECT(fsq().quantize(soft * (fsq().values(all) / soft).atanh()).equal(all));
}

TEST("fsq: rejects indices outside the codebook") {
  EXPECT_THROWS(fsq().values(at::tensor({5, 64000}, at::kLong)), "audio code 64000 is outside 0 .. 63999");
  EXPECT_THROWS(fsq().values(at::tensor({-1}, at::kLong)), "audio code -1");
}
