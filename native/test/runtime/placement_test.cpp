#include "core/runtime/device.h"

#include "test/test.h"

using namespace carillon;

TEST("placement: accepts cpu with float32") {
  const auto placement = choose_placement("cpu", "float32");
  EXPECT(placement.device.is_cpu());
  EXPECT(placement.dtype == at::kFloat);
}

TEST("placement: rejects unknown names") {
  EXPECT_THROWS(choose_placement("gpu", "auto"), "unknown device 'gpu'");
  EXPECT_THROWS(choose_placement("cuda:x", "auto"), "unknown device 'cuda:x'");
  EXPECT_THROWS(choose_placement("cuda:99999999999", "auto"), "unknown device");
  EXPECT_THROWS(choose_placement("cpu", "fp8"), "unknown dtype 'fp8'");
}
