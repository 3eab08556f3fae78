#include "bench/benchmark.h"

#include <chrono>
#include <random>

namespace carillon::bench {

const std::vector<Benchmark>& benchmarks() {
  static const std::vector<Benchmark> all = {
      {"dit-step", "one evaluation of the DiT, 400 condition tokens, batch 1", "latent frames", 750, prepare_dit_step},
      {"train-step", "loss, gradients and step of a LoRA of rank 64, batch 1", "latent frames", 750,
       prepare_train_step},
      {"vae-decode", "latents to a stereo waveform", "latent frames", 128, prepare_vae_decode},
      {"lm-decode", "one audio code after a prompt of 400 tokens, batch 1", "codes", 48, prepare_lm_decode},
      {"lm-decode-cfg", "one audio code of a conditional and an unconditional row", "codes", 48, prepare_lm_decode_cfg},
      {"song", "conditions, 8 steps and decode of one song", "latent frames", 750, prepare_song},
  };
  return all;
}

double seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::vector<int32_t> some_tokens(int64_t count, int32_t limit) {
  std::mt19937 random(1);
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < count; ++i) ids.push_back(static_cast<int32_t>(random() % static_cast<uint32_t>(limit)));
  return ids;
}

}  // namespace carillon::bench
