// Runs all tests, or those whose file or name contains the first argument. Every test starts with the same random seed.
// Prints the time of tests of a second or longer. The last line is `N passed, N failed, N skipped`.
#include <ATen/Context.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <random>
#include <vector>

#include "test/test.h"

namespace carillon::test {
namespace {

struct Case {
  const char* file;
  const char* name;
  std::function<void()> body;
};

std::vector<Case>& cases() {
  static std::vector<Case> list;
  return list;
}

struct Fixtures {
  std::filesystem::path root;
  int next = 0;
  ~Fixtures() {
    std::error_code ignored;
    if (!root.empty()) std::filesystem::remove_all(root, ignored);
  }
};

}  // namespace

void add(const char* file, const char* name, std::function<void()> body) {
  cases().push_back({file, name, std::move(body)});
}

std::string fixture_directory() {
  static Fixtures fixtures;
  if (fixtures.root.empty()) {
    fixtures.root =
        std::filesystem::temp_directory_path() / ("carillon-test-" + std::to_string(std::random_device{}()));
  }
  const auto directory = fixtures.root / std::to_string(fixtures.next++);
  std::filesystem::create_directories(directory);
  return directory.string();
}

}  // namespace carillon::test

int main(int argc, char** argv) {
  const std::string filter = argc > 1 ? argv[1] : "";
  using Clock = std::chrono::steady_clock;
  int passed = 0, failed = 0, skipped = 0;
  for (const auto& test : carillon::test::cases()) {
    if ((test.file + std::string(": ") + test.name).find(filter) == std::string::npos) continue;
    const auto start = Clock::now();
    try {
      at::manual_seed(0);
      test.body();
      ++passed;
    } catch (const carillon::test::SkippedTest& reason) {
      ++skipped;
      std::printf("SKIP %s: %s\n", test.name, reason.what());
    } catch (const std::exception& error) {
      ++failed;
      std::printf("FAIL %s\n     %s\n", test.name, error.what());
    }
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    if (seconds >= 1) std::printf("SLOW %.1f s %s\n", seconds, test.name);
  }
  std::printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped);
  return failed == 0 ? 0 : 1;
}
