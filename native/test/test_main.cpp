// Runs every registered case, or those whose name contains the first argument.
// Ends with `N passed, N failed`. Each case begins at the same seed: what it draws does not depend on the cases before it.
#include <ATen/Context.h>

#include <cstdio>
#include <filesystem>
#include <random>
#include <vector>

#include "test/test.h"

namespace carillon::test {
namespace {

struct Case {
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

void add(const char* name, std::function<void()> body) { cases().push_back({name, std::move(body)}); }

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
  int passed = 0, failed = 0;
  for (const auto& test : carillon::test::cases()) {
    if (std::string(test.name).find(filter) == std::string::npos) continue;
    try {
      at::manual_seed(0);
      test.body();
      ++passed;
    } catch (const std::exception& error) {
      ++failed;
      std::printf("FAIL %s\n     %s\n", test.name, error.what());
    }
  }
  std::printf("%d passed, %d failed\n", passed, failed);
  return failed == 0 ? 0 : 1;
}
