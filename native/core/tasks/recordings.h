#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

#include "core/runtime/control.h"
#include "core/runtime/resident.h"
#include "core/tasks/render_job.h"
#include "core/vae/vae.h"

namespace carillon {

/// What the timbre encoder hears of a reference recording [channels, any samples]: [channels, samples], a third of it
/// from the beginning, a third from where the second third of the recording begins, and a third from the end.
/// A recording that is shorter is repeated first. Nothing is drawn by lot: the same recording is the same timbre.
/// Latents [C, any frames] are treated alike.
at::Tensor timbre_excerpt(const at::Tensor& recording, int64_t samples);

/// The recording that a task works on.
struct Source {
  at::Tensor audio;    // [channels, samples]: the recording, with silence where the window reaches beyond it and in
                       // the rest of the last frame; undefined for a source that was given as latents
  at::Tensor latents;  // [1, frames, C] float32 on the CPU, or the given ones; undefined where the audio is silent
  int64_t frames;      // latent frames of the source and what the window adds to it
  WindowPlace window;  // in samples
  int64_t begin = 0;   // frame at which the latents begin

  /// True where the output keeps samples of the source.
  bool keeps_samples(int64_t samples_per_frame) const {
    return audio.defined() && (window.begin > 0 || window.end < frames * samples_per_frame);
  }
};

/// What a job was given to hear.
struct Recordings {
  std::optional<Source> source;  // where the task reads one
  at::Tensor timbre_latents;     // [1, frames, C] float32 on the CPU; undefined without a reference
};

/// True for audio whose peak is below 1e-6: the silence table stands for it.
bool is_silent(const at::Tensor& audio);

/// Mean of the VAE's posterior for audio [channels, samples]: [1, frames, C] float32 on the CPU.
at::Tensor encode_latents(const Vae& vae, const at::Tensor& audio, const Control& control);

/// Encodes what the job's task reads, each recording once. Takes the VAE only if there is something to encode.
Recordings encode_recordings(const Resident<Vae>& vae, const RenderJob& job, const RendererInfo& info,
                             const Control& control);

}  // namespace carillon
