#pragma once
#include <optional>
#include <string>
#include <vector>

namespace carillon {

/// Describes a file that is not an adapter of an ACE-Step 1.5 model by the names of its tensors: "a LoRA of Stable
/// Diffusion XL", "a whole model", "an OFT adapter". nullopt if the names are unknown.
std::optional<std::string> recognize_foreign(const std::vector<std::string>& names);

}  // namespace carillon
