#pragma once
#include <cstdint>
#include <string>

#include "core/training/trainable_adapter.h"

namespace carillon {

/// The design as a JSON object: `kind`, then its fields.
std::string design_json(const AdapterDesign& design);

/// Writes the adapter into `directory`: a LoRA as the folder adapter/ with the two files of PEFT, a LoKr as the file
/// lokr_weights.safetensors of LyCORIS. In the LoKr file, w1 is one matrix already multiplied by the scalar. The files
/// contain `model_name` and `run_json` (a JSON object that describes the run) if their format allows it. Throws
/// kStorage.
void save_adapter(const TrainableAdapter& adapter, const std::string& directory, const std::string& model_name,
                  const std::string& run_json);

/// Loads the weights of the adapter at `path` (see read_adapter) to resume training. The LoKr scalar becomes 1, because
/// files contain w1 already multiplied by the scalar. Throws kBadArgument if the file and `adapter` do not match: in
/// model, kind, projections, ranks, shapes, scales, or use of DoRA.
void import_adapter(const std::string& path, const TrainableAdapter& adapter);

/// Number of finished epochs, taken from the name of the checkpoint folder `folder` or of its parent: 3 for
/// epoch_3_loss_0.1234; 0 if neither name has a number.
int64_t epochs_in_name(const std::string& folder);

}  // namespace carillon
