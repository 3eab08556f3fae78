#pragma once
#include <cstdint>
#include <string>

#include "core/training/trainable_adapter.h"

namespace carillon {

/// The design as a JSON object: `kind`, then its fields.
std::string design_json(const AdapterDesign& design);

/// Writes the adapter into `directory` as other programs read it: LoRA as adapter/ with the two files of PEFT, LoKr as
/// lokr_weights.safetensors of LyCORIS, its scalar folded into w1 and w1 in one piece.
/// `model_name` and `run_json`, an object about the run, are said in the files where their formats have a place for it.
/// Throws kStorage.
void save_adapter(const TrainableAdapter& adapter, const std::string& directory, const std::string& model_name,
                  const std::string& run_json);

/// Gives an adapter under training the weights of the one at `path` (see read_adapter), whoever wrote it. A scalar,
/// which files have worked in, is 1 afterwards. Throws kBadArgument saying what does not fit: no adapter of this model
/// there, another kind, other projections, ranks, shapes or scales, DoRA on one side only.
void import_adapter(const std::string& path, const TrainableAdapter& adapter);

/// The finished epochs that trainers say in the name of a checkpoint folder, here of `folder` or of that around its
/// adapter/: 3 for epoch_3_loss_0.1234, 0 for a name that says nothing.
int64_t epochs_in_name(const std::string& folder);

}  // namespace carillon
