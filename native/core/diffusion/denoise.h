#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "core/diffusion/flow_matching.h"
#include "core/diffusion/noise.h"
#include "core/diffusion/solver.h"
#include "core/diffusion/wavelet_correction.h"
#include "core/dit/dit.h"
#include "core/runtime/control.h"

namespace carillon {

/// Keeping what lies outside a window while the inside is generated anew.
struct Repaint {
  at::Tensor mask;   // [B, T] bool, true inside the window
  at::Tensor clean;  // [B, T, C] float32, the source's latents, unmasked
  /// Share of the steps after which the outside is put back to the source at that step's noise level.
  double injection_ratio = 0;
  /// Length of the cross-fade outside either edge, applied to the finished latents; 0: none.
  int64_t crossfade_frames = 0;
};

/// `state` [B, T, C] inside the window, time * noise + (1 - time) * clean outside.
at::Tensor inject_source(const at::Tensor& state, const Repaint& repaint, const at::Tensor& noise, double time);

/// 1 inside the window, falling linearly to 0 over `frames` frames outside either edge (interior points of a line
/// over frames + 2 points; shortened where the clip ends sooner). mask [B, T] bool -> [B, T] float32.
at::Tensor soft_window(const at::Tensor& mask, int64_t frames);

/// The finished latents mixed with the source by soft_window. Items whose window covers everything are unchanged.
at::Tensor blend_edges(const at::Tensor& latents, const Repaint& repaint);

// The groups `denoise` and `guidance` of src/engine/render-parameters.ts, which holds their defaults and ranges.

struct Denoise {
  int inference_steps;
  double shift;                                  // does not act on turbo models
  std::optional<std::vector<double>> timesteps;  // descending to 0; overrides inference_steps and shift
  InferMethod infer_method;
  std::optional<WaveletCorrection> wavelets;  // after every step
  double latent_rescale, latent_shift;        // the song's latents become latents * rescale + shift before decoding
  /// The first int(steps * cover_strength) steps read the task's own conditions, the others those that follow.
  double cover_strength;        // 0 .. 1
  double cover_noise_strength;  // 0 .. 1; above 0: denoising starts near the source
};

/// Classifier-free guidance. Turbo models have it distilled in and never use it.
struct Guidance {
  double scale;                         // at or below 1: off
  bool by_angle;                        // angle-based (ADG), else projected
  double interval_start, interval_end;  // flow times between which it acts, both inclusive
};

/// The flow times of a run. Turbo models take any number of steps of the shift-3 formula, and given times snapped to
/// those they were distilled for; others take the shift, and given times as they are. Throws kBadArgument.
Schedule schedule_of(const Denoise& denoise, bool is_turbo);

/// What the model is told.
struct Conditions {
  at::Tensor encoder_states;     // [B, L, E]
  at::Tensor context;            // [B, T, 2C]: source latents, then the chunk mask
  at::Tensor encoder_mask = {};  // [B, L] bool, false for padding that is not to be seen; undefined: all is seen
};

/// One run of the denoising loop.
struct DenoiseJob {
  Conditions conditions;
  at::Tensor null_condition;  // [1, 1, E]; read only if guidance is on
  Denoise denoise;
  Guidance guidance;
  /// What the steps beyond denoise.cover_strength use; must be there where that is below 1.
  std::optional<Conditions> conditions_after_cover;
  /// [B, T, C]. The run starts from it at the schedule's time nearest to 1 - denoise.cover_noise_strength, where that
  /// strength is above 0.
  at::Tensor cover_source;
  std::optional<Repaint> repaint;
};

/// Denoises noise to latents [B, T, C] float32. The state stays float32 between steps; only the model's input and
/// output have its type. Reports Stage::kDenoise after each step and checks for cancellation.
/// Throws kNotFinite if a state is not finite or the result is all zero.
at::Tensor denoise(const Dit& dit, const DenoiseJob& job, Noise& noise, const Control& control);

}  // namespace carillon
