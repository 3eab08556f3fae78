// carillon-pretrain STAGE --data DIR --model DIR --work DIR [--device D] [--steps N] [--minutes M] ...
//
// One stage of training the model's own weights; README.md says what they are. Figures go to the standard output, a
// JSON object a line. A stage that is run again goes on from its saved state.
#include <ATen/ATen.h>

#include <cstdio>

#include "core/runtime/error.h"
#include "pretraining/run.h"

int main(int argc, char** argv) {
  using namespace carillon::pretraining;
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
