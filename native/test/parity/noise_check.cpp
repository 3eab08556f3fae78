#include "test/parity/noise_check.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "core/checkpoint/json.h"
#include "core/diffusion/noise.h"

namespace carillon::parity {

bool check_noise(const std::string& root) {
  constexpr double kLimit = 1e-6;
  const auto path = std::filesystem::path(root) / "noise" / "philox.json";
  std::ifstream file(path);
  if (!file) return true;
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const Json golden = Json::parse(text, path.string());
  double error = 0;
  size_t count = 0;
  for (const auto& [seed, values] : golden.at("seeds").as_object()) {
    const auto& expected = values.as_array();
    const at::Tensor drawn = PhiloxStream(std::stoull(seed)).normal({static_cast<int64_t>(expected.size())});
    for (size_t i = 0; i < expected.size(); ++i) {
      const double wanted = expected[i].as_double();
      const double apart = std::abs(drawn[static_cast<int64_t>(i)].item<float>() - wanted);
      error = std::max(error, std::isnan(apart) ? INFINITY : apart / std::max(1.0, std::abs(wanted)));
    }
    count += expected.size();
  }
  const bool agrees = count > 0 && error <= kLimit;
  std::printf("%-6s  %-28s  %-18s  %zu values %.2e  (limit %.0e)\n", agrees ? "ok" : "FAIL", "noise", "philox", count,
              error, kLimit);
  return agrees;
}

}  // namespace carillon::parity
