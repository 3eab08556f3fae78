#pragma once
#include <functional>
#include <memory>
#include <string>

#include "core/checkpoint/parameters.h"
#include "pretraining/options.h"
#include "pretraining/stage.h"

namespace carillon::pretraining {

using Report = std::function<void(const std::string& line)>;

/// Runs one stage of options.stage: vae, latents, tokenizer, dit, lm or export. Each needs those before it, and goes on
/// from its own saved state. Throws kBadArgument for another name.
void run(const Options& options, const Report& report);

/// A stage that trains, over `parameters` with what its modules cannot state themselves.
std::unique_ptr<TrainingStage> make_stage(const Options& options, Parameters& parameters, at::Device device);

}  // namespace carillon::pretraining
