#pragma once
#include <string>

namespace carillon::pretraining {

/// Where the state of a stage is kept.
std::string state_path(const std::string& work, const std::string& stage);

/// Writes the whole checkpoint in the original layout from the averaged weights of all stages: bfloat16 tensors, the
/// table of silence, and the model's config.json and tokenizer files. config.json comes last: a folder that has it is
/// whole. Throws kBadCheckpoint where a stage has no state.
void export_checkpoint(const std::string& model, const std::string& work, const std::string& latents,
                       const std::string& out);

}  // namespace carillon::pretraining
