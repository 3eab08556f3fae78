#pragma once
#include <optional>
#include <string>
#include <vector>

namespace carillon {

/// Describes the content of a file that is not an adapter for ACE-Step 1.5, based on its tensor names: "an adapter of
/// Stable Diffusion XL", "a whole model", "an OFT adapter". Returns nullopt if the names are unknown.
std::optional<std::string> describe_foreign_file(const std::vector<std::string>& names);

/// Describes a tensor of an adapter file that changes more than the weight of a projection: "a trained bias". Returns
/// nullopt for other tensors.
std::optional<std::string> describe_unsupported_tensor(const std::string& name);

}  // namespace carillon
