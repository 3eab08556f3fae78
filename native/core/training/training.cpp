#include "core/training/training.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#if defined(__linux__)
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <cmath>

#include "core/runtime/error.h"
#include "core/training/run.h"

namespace carillon {
namespace {

void require(bool holds, const std::string& message) {
  if (!holds) fail(ErrorCode::kBadArgument, message);
}

void check(const TrainingOptions& options) {
  require(!options.samples.empty(), "there are no samples to train on");
  require(std::isfinite(options.learning_rate) && options.learning_rate > 0, "the learning rate must be above 0");
  require(std::isfinite(options.shift) && options.shift >= 0, "the shift must be 0 or more");
  const double dropout = options.condition_dropout.value_or(0.0);
  require(dropout >= 0 && dropout <= 1, "condition dropout must be 0 to 1");
  for (const auto& [name, value] : {std::pair{"epochs", options.epochs},
                                    {"the batch size", options.batch_size},
                                    {"gradient accumulation", options.gradient_accumulation},
                                    {"the epochs between checkpoints", options.save_every_epochs}}) {
    require(value >= 1, std::string(name) + " must be 1 or more");
  }
}

/// Serving goes before training. Threads that libtorch starts from here on inherit this.
void lower_priority() {
#if defined(__linux__)
  constexpr int kNice = 10;
  ::setpriority(PRIO_PROCESS, static_cast<id_t>(::syscall(SYS_gettid)), kNice);
#endif
}

}  // namespace

TrainingResult train(const TrainingOptions& options, const std::function<void(const TrainingEvent&)>& on_event,
                     const Control& control) {
  check(options);
  lower_priority();
  const c10::AutoGradMode gradients(true);
  try {
    return TrainingRun(options, on_event, control).execute();
  } catch (...) {
    const Error error = current_error();
    if (error.code() != ErrorCode::kOutOfMemory || options.gradient_checkpointing) throw error;
    fail(error.code(), std::string("gradient_checkpointing would need less memory; ") + error.what());
  }
}

}  // namespace carillon
