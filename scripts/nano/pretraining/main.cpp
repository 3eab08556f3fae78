// carillon-pretrain STAGE --data DIR --model DIR --work DIR [--device D] [--steps N] [--minutes M] ...
//
// One stage of training the model's own weights; README.md says what they are. Figures go to the standard output, a
// JSON object a line. A stage that is run again goes on from its saved state.
#include <ATen/ATen.h>

#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include <cstdio>
#include <limits>

#include "core/runtime/error.h"
#include "pretraining/run.h"

namespace {

/// Memory of one step serves the next: given back to the system in between, it would be cleared page by page again,
/// which took half the time of training the VAE.
void keep_freed_memory() {
#if defined(__GLIBC__)
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
  mallopt(M_TOP_PAD, 256 << 20);
#endif
}

}  // namespace

int main(int argc, char** argv) {
  using namespace carillon::pretraining;
  keep_freed_memory();
  try {
    run(parse_options({argv + 1, argv + argc}), [](const std::string& line) {
      std::puts(line.c_str());
      std::fflush(stdout);
    });
    return 0;
  } catch (...) {
    std::fprintf(stderr, "carillon-pretrain: %s\n", carillon::current_error().what());
    return 1;
  }
}
