#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

#include "core/runtime/control.h"
#include "core/runtime/resident.h"
#include "core/tasks/render_job.h"
#include "core/vae/vae.h"

namespace carillon {

/// Returns an excerpt of `samples` samples from a reference recording [channels, any samples], for the timbre encoder.
/// The excerpt joins three equal pieces: from the beginning, from one third into the recording, and from the end.
/// Shorter recordings are repeated first. Also accepts latents [C, any frames].
at::Tensor timbre_excerpt(const at::Tensor& recording, int64_t samples);

/// The recording that a task works on.
struct SourceRecording {
  at::Tensor audio;  // [channels, samples], padded with silence to cover the window and whole frames. The tensor is
                     // undefined if the job has latents.
  at::Tensor
      latents;  // [1, frames, C] float32 on the CPU: encoded audio or the latents of the job; undefined for silence
  int64_t frames;       // number of latent frames, including the padding
  PlacedWindow window;  // in samples
  int64_t begin = 0;    // frame of the padded source at which `latents` begin
  /// Factor from the decoded latents to the level of the source; nullopt: unknown.
  std::optional<double> gain = {};

  /// Whether the output contains a part of the source.
  bool keeps_part(int64_t samples_per_frame) const {
    return window.begin > 0 || window.end < frames * samples_per_frame;
  }
};

/// Encoded recordings of a job.
struct Recordings {
  std::optional<SourceRecording> source;  // if the task reads a source
  at::Tensor timbre_latents;              // [1, frames, C] float32 on the CPU; undefined without a reference
};

/// Whether the peak of the audio is below 1e-6. Callers use the silence table instead of encoding such audio.
bool is_silent(const at::Tensor& audio);

/// Encodes audio [channels, samples]. Returns the mean of the VAE's posterior, [1, frames, C] float32 on the CPU.
at::Tensor encode_latents(const Vae& vae, const at::Tensor& audio, const Control& control);

/// Encodes the source and the reference of the job, each once. Acquires the VAE only if there is audio to encode.
Recordings encode_recordings(const ResidentModel<Vae>& vae, const RenderJob& job, const RendererInfo& info,
                             const Control& control);

}  // namespace carillon
