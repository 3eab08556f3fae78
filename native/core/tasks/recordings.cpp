#include "core/tasks/recordings.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "core/tasks/loudness.h"

namespace carillon {

at::Tensor timbre_excerpt(const at::Tensor& recording, int64_t samples) {
  const int64_t given = recording.size(1);
  const at::Tensor all = given < samples ? recording.repeat({1, (samples + given - 1) / given}) : recording;
  const int64_t total = all.size(1), piece = samples / 3, last = samples - 2 * piece;
  return at::cat({all.narrow(1, 0, piece), all.narrow(1, total / 3, piece), all.narrow(1, total - last, last)}, 1);
}

namespace {

/// Pads the job's source audio to whole latent frames and places its window. A window that reaches the end of the song
/// includes the whole last frame.
SourceRecording read_source(const RenderJob& job, const RendererInfo& info) {
  PlacedWindow place = place_window(job, info);
  const int64_t song = song_samples(job, info), frames = song_frames(job, info);
  const int64_t padded = frames * info.samples_per_frame;
  place.begin = std::min(place.begin, song - 1);
  place.end = place.end >= song ? padded : std::max(place.end, place.begin + 1);
  if (job.source.latents.defined()) {
    return {.audio = {},
            .latents = job.source.latents.unsqueeze(0),
            .frames = frames,
            .window = place,
            .begin = place.left / info.samples_per_frame,
            .gain = job.source.gain};
  }
  const at::Tensor audio = at::constant_pad_nd(job.source.audio, {place.left, place.right + padded - song});
  return {.audio = audio,
          .latents = {},
          .frames = frames,
          .window = place,
          .gain = level_to_music(job.source.audio, info.music)};
}

}  // namespace

bool is_silent(const at::Tensor& audio) {
  constexpr float kQuietest = 1e-6f;
  const auto [low, high] = at::aminmax(audio);
  return -low.item<float>() < kQuietest && high.item<float>() < kQuietest;
}

at::Tensor encode_latents(const Vae& vae, const at::Tensor& audio, const Control& control) {
  return vae.encode(audio.unsqueeze(0), control).mean.transpose(1, 2);
}

Recordings encode_recordings(const ResidentModel<Vae>& vae, const RenderJob& job, const RendererInfo& info,
                             const Control& control) {
  Recordings recordings;
  if (reads_source(job)) recordings.source = read_source(job, info);
  if (job.reference.latents.defined()) {
    recordings.timbre_latents = timbre_excerpt(job.reference.latents.t(), info.timbre_frames).t().unsqueeze(0);
  }
  const bool encodes_source =
      recordings.source && recordings.source->audio.defined() && !is_silent(recordings.source->audio);
  const bool encodes_reference = job.reference.audio.defined() && !job.reference.latents.defined();
  if (!encodes_source && !encodes_reference) return recordings;

  const auto loaded = vae.acquire(control);
  if (encodes_source) {
    SourceRecording& source = *recordings.source;
    const at::Tensor heard = at_music_level(source.audio, *source.gain);
    source.latents = encode_latents(*loaded, heard, control.part(Stage::kConditions, 0, 2));
  }
  if (encodes_reference) {
    const at::Tensor heard = timbre_excerpt(job.reference.audio, info.timbre_frames * info.samples_per_frame);
    recordings.timbre_latents = encode_latents(*loaded, at_music_level(heard, level_to_music(heard, info.music)),
                                               control.part(Stage::kConditions, 1, 2));
  }
  return recordings;
}

}  // namespace carillon
