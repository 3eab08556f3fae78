#pragma once
#include <string>

namespace carillon::parity {

/// Compares the noise of seeds with root/noise/philox.json ("seeds": seed to its first numbers) and prints a line. True
/// where it agrees to 1e-6 times the number's size or more than 1, and where the set has no such file.
bool check_noise(const std::string& root);

}  // namespace carillon::parity
