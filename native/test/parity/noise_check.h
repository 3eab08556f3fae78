#pragma once
#include <string>

namespace carillon::parity {

/// Compares generated noise with root/noise/philox.json, and prints one line. The file's "seeds" contain the first
/// numbers of the noise for each seed. Returns true if all numbers agree to 1e-6 (relative above 1), or if there is no
/// such file.
bool check_noise(const std::string& root);

}  // namespace carillon::parity
