#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "core/diffusion/flow_matching.h"
#include "core/diffusion/guidance.h"
#include "core/diffusion/noise.h"
#include "core/diffusion/solver.h"
#include "core/diffusion/wavelet_correction.h"
#include "core/dit/dit.h"
#include "core/runtime/control.h"

namespace carillon {

/// Settings for repainting, which generates only the inside of a window and keeps the source outside.
struct Repaint {
  at::Tensor mask;   // [B, T] bool, true inside the window
  at::Tensor clean;  // [B, T, C] float32, latents of the whole source
  /// Share of the steps, from the first step on, after which the source with noise replaces the state outside the
  /// window. The noise level is the flow time at the end of the step. Turbo models skip this after the last step.
  double injection_ratio = 0;
  /// Length of the cross-fade outside each edge of the window, applied to the finished latents; 0: none.
  int64_t crossfade_frames = 0;
};

/// Returns `state` [B, T, C], but with time * noise + (1 - time) * clean in the frames outside the window.
at::Tensor inject_source(const at::Tensor& state, const Repaint& repaint, const at::Tensor& noise, double time);

/// Returns weights [B, T] float32 for mask [B, T] bool: 1 inside the window, falling linearly over `frames` frames
/// outside each edge, without reaching 0. The ends of the clip shorten the fade.
at::Tensor soft_window(const at::Tensor& mask, int64_t frames);

/// Mixes the finished latents with the source, weighted by soft_window. Leaves items unchanged if the window spans all
/// frames.
at::Tensor blend_edges(const at::Tensor& latents, const Repaint& repaint);

// Denoise and Guidance are the groups `denoise` and `guidance` of src/engine/render-parameters.ts, which has the ranges
// and the defaults of requests. The initial values here are those of a plain song without guidance. `each_parameter`
// calls `visit(name, field)` for every parameter, by its name in requests.

struct Denoise {
  int inference_steps = 8;
  double shift = 3.0;                                 // ignored by turbo models
  std::optional<std::vector<double>> timesteps = {};  // descending to 0; overrides inference_steps and shift
  bool free_timesteps = false;                        // turbo models: `timesteps` unchanged
  InferMethod infer_method = InferMethod::kOde;
  bool corrects_wavelets = false;
  WaveletCorrection wavelets = {};                        // applied after every step if corrects_wavelets
  double velocity_norm_threshold = 0.0;                   // VelocityFilter's norm_limit; 0: off
  double velocity_ema_factor = 0.0;                       // VelocityFilter's smoothing, 0 .. 1; 0: off
  double latent_rescale = 1.0, latent_shift = 0.0;        // the VAE decodes latents * rescale + shift
  /// The first int(steps * cover_strength) steps use DenoiseJob::conditions, the others conditions_after_cover.
  double cover_strength = 1.0;        // 0 .. 1
  double cover_noise_strength = 0.0;  // 0 .. 1; above 0: denoising starts near the source

  template <typename Visit>
  void each_parameter(const Visit& visit) {
    visit("inferenceSteps", inference_steps);
    visit("shift", shift);
    visit("timesteps", timesteps);
    visit("freeTimesteps", free_timesteps);
    visit("inferMethod", infer_method);
    visit("dcwEnabled", corrects_wavelets);
    visit("dcwMode", wavelets.band);
    visit("dcwScaler", wavelets.low);
    visit("dcwHighScaler", wavelets.high);
    visit("velocityNormThreshold", velocity_norm_threshold);
    visit("velocityEmaFactor", velocity_ema_factor);
    visit("latentRescale", latent_rescale);
    visit("latentShift", latent_shift);
    visit("audioCoverStrength", cover_strength);
    visit("coverNoiseStrength", cover_noise_strength);
  }
};

/// Classifier-free guidance. Turbo models ignore it, because guidance is distilled into their weights. Steps outside
/// the interval are not guided: the model runs only with the conditions.
struct Guidance {
  double scale = 1.0;  // at or below 1: off
  std::optional<GuidanceVariant> variant = {};        // nullopt: kAdg with use_adg, else kApg
  double interval_start = 0.0, interval_end = 1.0;    // flow times, both inclusive
  AdaptiveProjectedGuidance::Options projection = {};  // only kApg uses it
  bool use_adg = false;

  GuidanceVariant used_variant() const {
    return variant.value_or(use_adg ? GuidanceVariant::kAdg : GuidanceVariant::kApg);
  }
  template <typename Visit>
  void each_parameter(const Visit& visit) {
    visit("guidanceScale", scale);
    visit("useAdg", use_adg);
    visit("guidanceVariant", variant);
    visit("eta", projection.eta);
    visit("momentum", projection.momentum);
    visit("normThreshold", projection.norm_threshold);
    visit("cfgIntervalStart", interval_start);
    visit("cfgIntervalEnd", interval_end);
  }
};

/// Flow times of a run. Turbo models use turbo_schedule, or snap_to_turbo_times for custom times unless these are free.
/// Other models use `denoise.shift`, or the custom times unchanged. Throws kBadArgument.
Schedule schedule_of(const Denoise& denoise, bool is_turbo);

/// Inputs of the model besides its state.
struct Conditions {
  at::Tensor encoder_states;     // [B, L, E]
  at::Tensor context;            // [B, T, 2C]: source latents, then the chunk mask
  at::Tensor encoder_mask = {};  // [B, L] bool, false hides padding; undefined: all visible
};

/// One run of the denoising loop.
struct DenoiseJob {
  Conditions conditions;
  at::Tensor null_condition;  // [1, 1, E]; read only if guidance is on
  Denoise denoise;
  Guidance guidance;
  /// Conditions of the steps after the first int(steps * denoise.cover_strength). Required if denoise.cover_strength is
  /// below 1.
  std::optional<Conditions> conditions_after_cover;
  /// Latents [B, T, C] of the source. If denoise.cover_noise_strength is above 0, the run starts from a mix of these
  /// latents and noise. The start time is the scheduled time nearest to 1 - cover_noise_strength.
  at::Tensor cover_source;
  std::optional<Repaint> repaint;
};

/// Denoises noise to latents [B, T, C] float32. The state is float32 even if the model has another dtype. Reports
/// Stage::kDenoise after each step and checks for cancellation. Throws kNotFinite if a state is not finite or the
/// result is all zero.
at::Tensor denoise(const Dit& dit, const DenoiseJob& job, Noise& noise, const Control& control);

}  // namespace carillon
