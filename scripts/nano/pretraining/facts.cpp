#include "pretraining/facts.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/runtime/error.h"

namespace carillon::pretraining {
namespace {

constexpr int64_t kTempos = 16, kTonics = 12;
constexpr double kSlowest = 60, kFastest = 180;  // bpm
constexpr std::array<int64_t, 4> kMetres = {2, 3, 4, 6};
constexpr std::array<int64_t, 7> kNaturals = {9, 11, 0, 2, 4, 5, 7};  // A to G
constexpr int64_t kTonic = kTempos, kMode = kTonic + kTonics, kMetre = kMode + 1,
                  kGenre = kMetre + static_cast<int64_t>(kMetres.size());

double octaves_between_tempos() { return std::log2(kFastest / kSlowest) / (kTempos - 1); }

/// Place of a tempo among the ranges: 0 at the slowest.
double place_of(double bpm) { return std::log2(bpm / kSlowest) / octaves_between_tempos(); }

int64_t strongest(const at::Tensor& numbers, int64_t first, int64_t count) {
  return numbers.narrow(0, first, count).argmax().item<int64_t>();
}

}  // namespace

Facts facts_of(const std::string& genre, double bpm, const std::string& key_scale, const std::string& time_signature) {
  const size_t space = key_scale.find(' ');
  const std::string note = key_scale.substr(0, space),
                    mode = space == std::string::npos ? "" : key_scale.substr(space + 1);
  const bool is_note = !note.empty() && note[0] >= 'A' && note[0] <= 'G' &&
                       (note.size() == 1 || (note.size() == 2 && (note[1] == '#' || note[1] == 'b')));
  if (!is_note || (mode != "major" && mode != "minor")) fail(ErrorCode::kBadArgument, "'" + key_scale + "' is no key");
  const int64_t bend = note.size() == 1 ? 0 : note[1] == '#' ? 1 : -1;
  const int64_t tonic = (kNaturals[static_cast<size_t>(note[0] - 'A')] + bend + kTonics) % kTonics;
  const int64_t metre = time_signature.size() == 1 ? time_signature[0] - '0' : 0;
  if (std::find(kMetres.begin(), kMetres.end(), metre) == kMetres.end()) {
    fail(ErrorCode::kBadArgument, "'" + time_signature + "' is no metre");
  }
  return {genre, bpm, tonic, mode == "minor", metre};
}

int64_t beats_per_bar(const Facts& facts) { return facts.metre == 6 ? 2 : facts.metre; }

int64_t number_count(size_t genres) { return kGenre + static_cast<int64_t>(genres); }

at::Tensor as_numbers(const Facts& facts, const std::vector<std::string>& genres) {
  at::Tensor numbers = at::zeros({number_count(genres.size())});
  for (int64_t range = 0; range < kTempos; ++range) {
    const double away = place_of(facts.bpm) - static_cast<double>(range);
    numbers[range] = std::exp(-0.5 * away * away);
  }
  numbers[kTonic + facts.tonic] = 1;
  numbers[kMode] = facts.is_minor ? 1 : 0;
  numbers[kMetre + (std::find(kMetres.begin(), kMetres.end(), facts.metre) - kMetres.begin())] = 1;
  const auto genre = std::find(genres.begin(), genres.end(), facts.genre);
  if (genre == genres.end()) fail(ErrorCode::kBadArgument, "'" + facts.genre + "' is no genre of the data set");
  numbers[kGenre + (genre - genres.begin())] = 1;
  return numbers;
}

Facts from_numbers(const at::Tensor& numbers, const std::vector<std::string>& genres) {
  const int64_t range = strongest(numbers, 0, kTempos);
  // The logarithms of a bell curve at three places give its middle.
  const auto log_at = [&](int64_t index) { return std::log(std::max(1e-4, numbers[index].item<double>())); };
  double place = static_cast<double>(range);
  if (range > 0 && range + 1 < kTempos) {
    const double before = log_at(range - 1), at = log_at(range), after = log_at(range + 1);
    const double bend = before - 2 * at + after;
    if (bend < 0) place += std::clamp(0.5 * (before - after) / bend, -0.5, 0.5);
  }
  return {genres[static_cast<size_t>(strongest(numbers, kGenre, std::ssize(genres)))],
          kSlowest * std::exp2(place * octaves_between_tempos()), strongest(numbers, kTonic, kTonics),
          numbers[kMode].item<double>() > 0.5,
          kMetres[static_cast<size_t>(strongest(numbers, kMetre, std::ssize(kMetres)))]};
}

}  // namespace carillon::pretraining
