#pragma once
#include <string>

namespace carillon::parity {

/// Compares the noise of seeds with root/noise/philox.json ("seeds": seed to its first numbers) and prints a line.
/// Returns true if all agree to 1e-6 (relative for numbers above 1), or if there is no such file.
bool check_noise(const std::string& root);

}  // namespace carillon::parity
