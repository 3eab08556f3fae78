#pragma once
#include <string>

namespace carillon {

/// The parts of a DiT checkpoint in the diffusers layout, one sub-folder each.
inline constexpr const char* kDiffusersParts[] = {"transformer", "condition_encoder", "audio_tokenizer",
                                                  "audio_token_detokenizer"};

/// The original ACE-Step name of tensor `name` stored in sub-folder `part` of a diffusers directory:
/// a pure renaming (reference engine.md 1.8).
std::string canonical_name_from_diffusers(const std::string& part, const std::string& name);

/// The name without one leading `model.`: published language models are saved with and without it.
std::string canonical_name(const std::string& name);

}  // namespace carillon
