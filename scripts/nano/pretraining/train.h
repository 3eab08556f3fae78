#pragma once
#include <functional>
#include <string>

#include "pretraining/options.h"
#include "pretraining/stage.h"
#include "pretraining/train_state.h"

namespace carillon::pretraining {

/// Trains until the steps or the minutes of the options are used up, saving `state_path` now and then and at the end.
/// Modules run in `dtype`. `report` gets a JSON object a line: figures of training (means since the line before) and of
/// held-out pieces.
void train(const TrainingStage& stage, TrainState& state, const std::string& state_path, at::ScalarType dtype,
           const Options& options, const std::function<void(const std::string&)>& report);

}  // namespace carillon::pretraining
