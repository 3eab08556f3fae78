#pragma once
#include <cstdint>
#include <string>

#include "core/training/trainable_adapter.h"

namespace carillon {

/// Gives an adapter under training the weights of the one at `path` (see locate_adapter), whoever wrote it. A scalar,
/// which files have worked in, is 1 afterwards. Throws kBadArgument saying what does not fit: no adapter of this model
/// there, another kind, other projections, ranks, shapes or scales, DoRA on one side only.
void import_adapter(const std::string& path, const TrainableAdapter& adapter);

/// The finished epochs that trainers say in the name of a checkpoint folder, here of `folder` or of that around its
/// adapter/: 3 for epoch_3_loss_0.1234, 0 for a name that says nothing.
int64_t epochs_in_name(const std::string& folder);

}  // namespace carillon
