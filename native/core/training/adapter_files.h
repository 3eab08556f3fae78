#pragma once
#include <string>

#include "core/training/trainable_adapter.h"

namespace carillon {

/// The design as a JSON object: `kind`, then its fields.
std::string design_json(const AdapterDesign& design);

/// Writes the adapter into `directory` as other programs read it: LoRA as adapter/ with the two files of PEFT, LoKr as
/// lokr_weights.safetensors of LyCORIS, its scalar folded into w1 and w1 in one piece (reference training.md 8.3, 8.4).
/// `model_name` and `run_json`, an object about the run, are said in the files where their formats have a place for it.
/// Throws kStorage.
void save_adapter(const TrainableAdapter& adapter, const std::string& directory, const std::string& model_name,
                  const std::string& run_json);

}  // namespace carillon
