#pragma once
// Makes a renderer from three tiny checkpoints, and render jobs for tests.
#include <ATen/ATen.h>

#include <optional>
#include <vector>

#include "core/runtime/error.h"
#include "core/tasks/renderer.h"
#include "test/differences.h"
#include "test/tiny_ace_step.h"
#include "test/tiny_qwen3.h"
#include "test/tiny_vae.h"

namespace carillon::test {

inline const Placement kFloat32{at::kCPU, at::kFloat};
constexpr int64_t kFrames = 130, kSamplesPerFrame = 1920, kSampleRate = 48000;
constexpr int64_t kSourceFrames = 10;  // short, because even tiny networks take time

inline const RendererInfo kTinyInfo{.placement = {},
                                    .is_turbo = false,
                                    .is_lego_sft = false,
                                    .music = {.low = -20.0, .high = -8.0},
                                    .sample_rate = kSampleRate,
                                    .samples_per_frame = kSamplesPerFrame,
                                    .frames_per_code = 5,
                                    .codebook_size = 64000,
                                    .max_frames = kTinySilence,
                                    .timbre_frames = kTinyTimbreFrames,
                                    .silent_frame = std::vector<float>(kTinyLatent),
                                    .unused_tensors = {}};

inline Renderer::Directories write_checkpoints(const TinySize& size = {}) {
  // A random encoder gives similar latents for all recordings; scaling them makes their audio codes differ.
  const auto spread = [](Tensors& tensors) { tensors.at("encoder.conv2.weight_g").mul_(30); };
  return {write_tiny_ace_step(size), write_tiny_vae(WeightLayout::kWeightNorm, kTinyLatent, spread),
          write_qwen3(tiny_qwen3_weights(""))};
}

inline Renderer load(const Renderer::Directories& directories, const Renderer::Residency& residency = {},
                     const Placement& placement = kFloat32) {
  return Renderer(directories, placement, residency, Control());
}

/// A text2music job of 130 frames with a song for each seed.
inline RenderJob plain_job(const std::vector<uint64_t>& seeds = {3}) {
  RenderJob job{.songs = {}, .samples = kFrames * kSamplesPerFrame, .denoise = {.inference_steps = 2}};
  for (const uint64_t seed : seeds) job.songs.push_back({.prompt = {.text = {1, 2, 3}, .lyrics = {4, 5}}, .seed = seed});
  return job;
}

/// Noise of varying loudness, `frames` latent frames long.
inline at::Tensor recording(int64_t frames, uint64_t seed) {
  const at::Tensor level = random_tensor({2, frames, 1}, seed + 1, 0.2);
  const at::Tensor noise = random_tensor({2, frames, kSamplesPerFrame}, seed);
  return (level * noise).clamp(-1.0, 1.0).reshape({2, frames * kSamplesPerFrame});
}

/// A job for `task` whose source is a recording of noise.
inline RenderJob source_job(Task task, const std::vector<uint64_t>& seeds = {3}, int64_t frames = kSourceFrames) {
  RenderJob job = plain_job(seeds);
  job.task = task;
  job.samples = 0;
  job.source.audio = recording(frames, 60);
  return job;
}

inline std::vector<int32_t> some_codes(int32_t first) {
  std::vector<int32_t> codes(kFrames / 5);
  for (size_t i = 0; i < codes.size(); ++i) codes[i] = (first + static_cast<int32_t>(i) * 2477) % 64000;
  return codes;
}

inline at::Tensor first_song(Renderer& renderer, const RenderJob& job) {
  return renderer.render(job, Control()).songs.at(0).audio;
}

/// Code of the Error that `action` throws; nullopt if it throws nothing.
template <typename Action>
std::optional<ErrorCode> code_thrown(const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.code();
  }
  return std::nullopt;
}

}  // namespace carillon::test
