#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

#include "core/runtime/control.h"
#include "core/runtime/resident.h"
#include "core/tasks/render_job.h"
#include "core/vae/vae.h"

namespace carillon {

/// Excerpt of a reference recording [channels, any samples] for the timbre encoder: [channels, samples]. It joins three
/// equal pieces: from the beginning, from one third into the recording, and from the end. Shorter recordings are
/// repeated first. Deterministic, so equal recordings give equal timbre. Also accepts latents [C, any frames].
at::Tensor timbre_excerpt(const at::Tensor& recording, int64_t samples);

/// The recording that a task works on.
struct Source {
  at::Tensor audio;     // [channels, samples]: the recording, with silence to cover the window and whole frames;
                        // undefined if the job has source_latents
  at::Tensor latents;   // [1, frames, C] float32 on the CPU: encoded audio or source_latents; undefined for silence
  int64_t frames;       // latent frames of the source, with its padding
  PlacedWindow window;  // in samples
  int64_t begin = 0;    // frame of the padded source at which `latents` begin

  /// Whether the output contains samples of the source.
  bool keeps_samples(int64_t samples_per_frame) const {
    return audio.defined() && (window.begin > 0 || window.end < frames * samples_per_frame);
  }
};

/// Encoded recordings of a job.
struct Recordings {
  std::optional<Source> source;  // if the task reads a source
  at::Tensor timbre_latents;     // [1, frames, C] float32 on the CPU; undefined without a reference
};

/// Whether the peak of the audio is below 1e-6. Callers use the silence table instead of encoding such audio.
bool is_silent(const at::Tensor& audio);

/// Mean of the VAE's posterior for audio [channels, samples]: [1, frames, C] float32 on the CPU.
at::Tensor encode_latents(const Vae& vae, const at::Tensor& audio, const Control& control);

/// Encodes the source and the reference of the job, each once. Acquires the VAE only if there is audio to encode.
Recordings encode_recordings(const Resident<Vae>& vae, const RenderJob& job, const RendererInfo& info,
                             const Control& control);

}  // namespace carillon
