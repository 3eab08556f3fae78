#include "core/runtime/error.h"

#include <ATen/ATen.h>

#include <filesystem>

#include "test/test.h"

using namespace carillon;

namespace {

template <typename Body>
Error error_of(Body body) {
  try {
    body();
  } catch (...) {
    return current_error();
  }
  throw std::runtime_error("nothing was thrown");
}

}  // namespace

TEST("errors: our errors keep their code and message") {
  const auto error = error_of([] { fail(ErrorCode::kBadCheckpoint, "no such tensor"); });
  EXPECT(error.code() == ErrorCode::kBadCheckpoint);
  EXPECT_EQ(std::string(error.what()), "no such tensor");
}

TEST("errors: a failed allocation is out of memory, with advice") {
  const auto error = error_of([] { at::empty({int64_t{1} << 60}, at::kFloat); });
  EXPECT(error.code() == ErrorCode::kOutOfMemory);
  EXPECT(std::string(error.what()).find("shorter duration") != std::string::npos);
}

TEST("errors: a path that cannot be read is a bad checkpoint") {
  const auto error = error_of([] { std::filesystem::exists(std::string(100'000, 'x')); });
  EXPECT(error.code() == ErrorCode::kBadCheckpoint);
}

TEST("errors: a libtorch error is internal and has no stack trace") {
  const auto error = error_of([] { at::matmul(at::zeros({2, 3}), at::zeros({2, 3})); });
  EXPECT(error.code() == ErrorCode::kInternal);
  EXPECT(std::string(error.what()).find("frame #") == std::string::npos);
}
