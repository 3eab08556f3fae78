#pragma once
#include <cstdint>
#include <string>

#include "core/training/trainable_adapter.h"

namespace carillon {

/// The design as a JSON object: `kind`, then its fields.
std::string design_json(const AdapterDesign& design);

/// Writes the adapter into `directory`. LoRA is written as adapter/ with the two files of PEFT. LoKr is written as
/// LyCORIS's lokr_weights.safetensors, in which w1 is one matrix that includes the scalar. Files contain `model_name`
/// and `run_json`, a JSON object that describes the run, if their formats allow it. Throws kStorage.
void save_adapter(const TrainableAdapter& adapter, const std::string& directory, const std::string& model_name,
                  const std::string& run_json);

/// Loads weights of the adapter at `path` (see read_adapter) to resume training. The scalar of LoKr becomes 1, because
/// w1 in files includes it. Throws kBadArgument with the mismatch: not an adapter of this model; another kind; other
/// projections, ranks, shapes or scales; or only one of the two uses DoRA.
void import_adapter(const std::string& path, const TrainableAdapter& adapter);

/// Number of finished epochs, taken from the name of the checkpoint folder `folder` or of its parent: 3 for
/// epoch_3_loss_0.1234; 0 if neither name has a number.
int64_t epochs_in_name(const std::string& folder);

}  // namespace carillon
