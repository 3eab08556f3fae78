#pragma once
#include <ATen/core/Tensor.h>

#include <optional>
#include <vector>

#include "core/diffusion/noise.h"
#include "core/diffusion/repaint.h"
#include "core/diffusion/schedule.h"
#include "core/dit/dit.h"
#include "core/runtime/control.h"

namespace carillon {

/// How the state moves from one time to the next: along the velocity, or to the predicted data and back with
/// fresh noise.
enum class InferMethod { kOde, kSde };

// The groups `denoise` and `guidance` of src/engine/render-parameters.ts, which holds their defaults and ranges.

struct Denoise {
  int inference_steps;
  double shift;                                  // does not act on turbo models
  std::optional<std::vector<double>> timesteps;  // descending to 0; overrides inference_steps and shift
  InferMethod infer_method;
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
at::Tensor denoise(const Dit& dit, const DenoiseJob& job, NoiseStreams& noise, const Control& control);

}  // namespace carillon
