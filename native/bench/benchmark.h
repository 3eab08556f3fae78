#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/runtime/placement.h"

namespace carillon::bench {

struct Settings {
  std::string checkpoints;  // holds acestep-v15-turbo, vae, Qwen3-Embedding-0.6B, acestep-5Hz-lm-0.6B
  Placement placement;
  int64_t size = 0;  // 0: the benchmark's own
};

/// One repetition of what is measured; returns its seconds.
using Repetition = std::function<double()>;

struct Benchmark {
  const char* name;
  const char* measures;
  const char* size_unit;
  int64_t default_size;
  /// Loads the model and makes the inputs.
  Repetition (*prepare)(const Settings& settings);
};

const std::vector<Benchmark>& benchmarks();

Repetition prepare_dit_step(const Settings& settings);
Repetition prepare_train_step(const Settings& settings);
Repetition prepare_vae_decode(const Settings& settings);
Repetition prepare_lm_decode(const Settings& settings);
Repetition prepare_lm_decode_cfg(const Settings& settings);
Repetition prepare_song(const Settings& settings);

/// Seconds that `work` takes.
double seconds_of(const std::function<void()>& work);

/// `count` token ids below `limit`, the same on every call.
std::vector<int32_t> some_tokens(int64_t count, int32_t limit);

/// Condition tokens of a typical prompt with lyrics.
inline constexpr int64_t kTextTokens = 100, kLyricTokens = 299, kConditionTokens = 400;

}  // namespace carillon::bench
