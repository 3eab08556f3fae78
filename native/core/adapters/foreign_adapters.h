#pragma once
#include <optional>
#include <string>
#include <vector>

namespace carillon {

/// Recognizes from tensor names what a file contains if it is not an adapter for ACE-Step 1.5: "an adapter of Stable
/// Diffusion XL", "a whole model", "an OFT adapter". nullopt if the names are unknown.
std::optional<std::string> recognize_foreign(const std::vector<std::string>& names);

}  // namespace carillon
