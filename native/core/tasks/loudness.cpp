#include "core/tasks/loudness.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <vector>

namespace carillon {
namespace {

constexpr int64_t kHopSamples = 4800, kHopsPerBlock = 4;  // blocks of 400 ms that overlap by 75 %
constexpr double kSilenceLufs = -60.0, kRelativeGateDb = -10.0;

double power_ratio(double decibels) { return amplitude_ratio(2.0 * decibels); }
double lufs_of(double power) { return -0.691 + 10.0 * std::log10(power); }
double power_of(double lufs) { return power_ratio(lufs + 0.691); }

/// Second-order section in transposed direct form II.
class Section {
 public:
  Section(const std::array<double, 3>& b, const std::array<double, 2>& a) : b_(b), a_(a) {}
  double next(double x) {
    const double y = b_[0] * x + first_;
    first_ = b_[1] * x - a_[0] * y + second_;
    second_ = b_[2] * x - a_[1] * y;
    return y;
  }

 private:
  std::array<double, 3> b_;
  std::array<double, 2> a_;
  double first_ = 0.0, second_ = 0.0;
};

/// Adds the K-weighted energy of each hop of a channel to `energy`. The coefficients are those of the standard.
void add_energy(const float* samples, int64_t hop, std::vector<double>& energy) {
  Section head({1.53512485958697, -2.69169618940638, 1.19839281085285}, {-1.69065929318241, 0.73248077421585});
  Section low_cut({1.0, -2.0, 1.0}, {-1.99004745483398, 0.99007225036621});
  for (double& sum : energy) {
    for (int64_t i = 0; i < hop; ++i) {
      const double weighted = low_cut.next(head.next(*samples++));
      sum += weighted * weighted;
    }
  }
}

/// Mean of the values above `threshold`; 0 if there are none.
double mean_above(const std::vector<double>& values, double threshold) {
  double sum = 0.0;
  int64_t count = 0;
  for (const double value : values) {
    if (value <= threshold) continue;
    sum += value;
    ++count;
  }
  return count == 0 ? 0.0 : sum / static_cast<double>(count);
}

}  // namespace

std::optional<double> loudness_of(const at::Tensor& audio) {
  const int64_t samples = audio.size(1), hop = std::min(kHopSamples, samples);
  if (samples == 0) return std::nullopt;
  std::vector<double> energy(static_cast<size_t>(samples / hop));
  const at::Tensor rows = audio.contiguous();
  for (int64_t channel = 0; channel < rows.size(0); ++channel) {
    add_energy(rows.const_data_ptr<float>() + channel * samples, hop, energy);
  }
  const auto hops = std::min<size_t>(kHopsPerBlock, energy.size());
  std::vector<double> blocks;
  for (size_t first = 0; first + hops <= energy.size(); ++first) {
    double sum = 0.0;
    for (size_t i = first; i < first + hops; ++i) sum += energy[i];
    blocks.push_back(sum / static_cast<double>(static_cast<int64_t>(hops) * hop));
  }
  const double silence = power_of(kSilenceLufs), audible = mean_above(blocks, silence);
  if (audible == 0.0) return std::nullopt;
  return lufs_of(mean_above(blocks, std::max(silence, audible * power_ratio(kRelativeGateDb))));
}

std::optional<double> loudness_beside(const at::Tensor& audio, int64_t begin, int64_t end) {
  constexpr int64_t kReach = 100 * kHopSamples;  // 10 s
  const int64_t first = std::max<int64_t>(0, begin - kReach), last = std::min(audio.size(1), end + kReach);
  return loudness_of(at::cat({audio.slice(1, first, begin), audio.slice(1, std::min(end, last), last)}, 1));
}

double level_to_music(const at::Tensor& audio, const LoudnessRange& music) {
  const std::optional<double> found = loudness_of(audio);
  if (!found || (*found >= music.low && *found <= music.high)) return 1.0;
  return amplitude_ratio(*found - 0.5 * (music.low + music.high));
}

double amplitude_ratio(double decibels) { return std::exp(decibels * std::numbers::ln10 / 20.0); }

std::optional<LoudnessRange> suitable_loudness(const std::optional<double>& neighbours,
                                               const std::optional<double>& original) {
  const auto near = [](double lufs) { return LoudnessRange{.low = lufs - 1.0, .high = lufs + 1.0}; };
  if (!neighbours) return original ? std::optional(near(*original)) : std::nullopt;
  LoudnessRange range = near(*neighbours);
  if (original) range = {.low = std::min(range.low, *original), .high = std::max(range.high, *original)};
  return range;
}

at::Tensor at_music_level(const at::Tensor& audio, double level) {
  return level == 1.0 ? audio : (audio / level).clamp_(-1.0, 1.0);
}

}  // namespace carillon
