#pragma once
#include <ATen/core/Tensor.h>

#include <optional>

#include "core/diffusion/noise.h"
#include "core/diffusion/repaint.h"
#include "core/diffusion/schedule.h"
#include "core/dit/dit.h"
#include "core/runtime/control.h"

namespace carillon {

/// How the state moves from one time to the next: along the velocity, or to the predicted data and back with
/// fresh noise.
enum class InferMethod { kOde, kSde };

/// Classifier-free guidance. Turbo models have it distilled in and never use it.
struct Guidance {
  double scale = 1.0;  // at or below 1: off
  bool by_angle = false;
  double interval_start = 0.0;  // flow times between which it acts, both inclusive
  double interval_end = 1.0;
};

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
  Schedule schedule;
  InferMethod method = InferMethod::kOde;
  Guidance guidance;
  /// The first int(steps * cover_strength) steps use `conditions`, the others `conditions_after_cover`,
  /// which must be there when this is below 1.
  double cover_strength = 1.0;
  std::optional<Conditions> conditions_after_cover;
  /// Above 0: start from `cover_source` [B, T, C] at the schedule's time nearest to 1 - cover_noise_strength.
  double cover_noise_strength = 0.0;
  at::Tensor cover_source;
  std::optional<Repaint> repaint;
};

/// Denoises noise to latents [B, T, C] float32. The state stays float32 between steps; only the model's input and
/// output have its type. Reports Stage::kDenoise after each step and checks for cancellation.
/// Throws kNotFinite if a state is not finite or the result is all zero.
at::Tensor denoise(const Dit& dit, const DenoiseJob& job, NoiseStreams& noise, const Control& control);

}  // namespace carillon
