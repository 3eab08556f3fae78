#include "core/tasks/render_job.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "core/runtime/error.h"
#include "core/tasks/recordings.h"

namespace carillon {

std::vector<uint64_t> seeds_of(const RenderJob& job) {
  std::vector<uint64_t> seeds;
  for (const RenderSong& song : job.songs) seeds.push_back(song.seed);
  return seeds;
}

bool has_codes(const RenderJob& job) { return !job.songs.at(0).codes.empty(); }

bool reads_source(const RenderJob& job) { return job.task != Task::kText2Music && !has_codes(job); }

int64_t source_samples(const RenderJob& job) {
  return job.source.latents.defined() ? job.samples : job.source.audio.size(1);
}

namespace {

int64_t whole_frames(int64_t samples, const RendererInfo& info) {
  return (samples + info.samples_per_frame - 1) / info.samples_per_frame;
}

int64_t code_samples(const RenderJob& job, const RendererInfo& info) {
  return static_cast<int64_t>(job.songs[0].codes.size()) * info.frames_per_code * info.samples_per_frame;
}

}  // namespace

int64_t song_samples(const RenderJob& job, const RendererInfo& info) {
  if (has_codes(job)) return job.samples == 0 ? code_samples(job, info) : job.samples;
  if (!reads_source(job)) return job.samples;
  const PlacedWindow place = place_window(job, info);
  return place.left + source_samples(job) + place.right;
}

int64_t song_frames(const RenderJob& job, const RendererInfo& info) {
  return whole_frames(song_samples(job, info), info);
}

PlacedWindow place_window(const std::optional<Window>& window, int64_t samples, int64_t sample_rate) {
  if (!window) return {.left = 0, .right = 0, .begin = 0, .end = samples};
  const auto to_samples = [&](double seconds) {
    constexpr double kBeyondAnySong = 1e15;
    return static_cast<int64_t>(
        std::llround(std::clamp(seconds * static_cast<double>(sample_rate), -kBeyondAnySong, kBeyondAnySong)));
  };
  const int64_t begin = to_samples(window->start_seconds), end = to_samples(window->end_seconds);
  const int64_t left = std::max<int64_t>(0, -begin), right = std::max<int64_t>(0, end - samples);
  return {.left = left, .right = right, .begin = begin + left, .end = end + left};
}

PlacedWindow place_window(const RenderJob& job, const RendererInfo& info) {
  PlacedWindow place = place_window(job.source.window, source_samples(job), info.sample_rate);
  if (!job.source.latents.defined()) return place;
  const int64_t added = whole_frames(place.left, info) * info.samples_per_frame - place.left;
  return {.left = place.left + added, .right = place.right, .begin = place.begin + added, .end = place.end + added};
}

FrameRange frames_inside(const PlacedWindow& place, int64_t frames, int64_t samples_per_frame) {
  const int64_t begin = std::clamp<int64_t>(place.begin / samples_per_frame, 0, frames - 1);
  return {begin, std::clamp<int64_t>(place.end / samples_per_frame, begin + 1, frames)};
}

namespace {

/// Seconds in shortest form, such as 2.5.
std::string text_of(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", seconds);
  return text;
}

void require_share(const char* what, double value) {
  require(value >= 0.0 && value <= 1.0, std::string(what) + " must be within 0 .. 1, not " + text_of(value));
}

void require_at_least_zero(const char* what, double value) {
  require(std::isfinite(value) && value >= 0.0, std::string(what) + " must be 0 or more, not " + text_of(value));
}

void check_length(const std::string& what, int64_t samples, const RendererInfo& info) {
  require(samples >= info.samples_per_frame, what + " has less than one latent frame");
  const int64_t frames = whole_frames(samples, info);
  if (frames <= info.max_frames) return;
  const auto seconds = [&](int64_t count) {
    return std::to_string(count * info.samples_per_frame / info.sample_rate) + " seconds";
  };
  fail(ErrorCode::kSongTooLong, what + " has " + std::to_string(frames) + " latent frames (" + seconds(frames) +
                                    "), but this checkpoint supports at most " +
                                    std::to_string(info.max_frames) + " (" + seconds(info.max_frames) + ")");
}

void check_codes(const RenderJob& job, const RendererInfo& info) {
  require(job.task == Task::kText2Music || job.task == Task::kCover,
          std::string(name_of_choice(job.task)) + " works on source audio and does not accept audio codes");
  for (const RenderSong& song : job.songs) {
    for (const int32_t code : song.codes) {
      require(code >= 0 && code < info.codebook_size, "audio code " + std::to_string(code) + " is outside 0 .. " +
                                                          std::to_string(info.codebook_size - 1) + " of this model");
    }
  }
  require(job.samples <= code_samples(job, info), "the song is longer than its audio codes");
  check_length("a song of these audio codes", song_samples(job, info), info);
}

void check_crossfade(double seconds) {
  constexpr double kMost = 3600;
  require(seconds >= 0.0 && seconds <= kMost,
          "the cross-fade of waveforms must be within 0 .. 3600 seconds, not " + text_of(seconds));
}

void check_window(const RenderJob& job, const RendererInfo& info) {
  const auto [start, end] = *job.source.window;
  const int64_t samples = source_samples(job);
  const double seconds = static_cast<double>(samples) / static_cast<double>(info.sample_rate);
  const std::string window = "the window of " + text_of(start) + " to " + text_of(end) + " seconds";
  require(std::isfinite(start) && std::isfinite(end), window + " must have a finite start and end");
  require(start < end, window + " must end after it starts");
  require(start <= seconds && end >= 0.0,
          window + " is outside the source, which lasts " + text_of(seconds) + " seconds");
  check_length("the source with " + window, song_samples(job, info), info);
}

void check_source(const RenderJob& job, const RendererInfo& info) {
  const std::string task = name_of_choice(job.task);
  require(job.source.audio.defined() || job.source.latents.defined(),
          job.task == Task::kCover ? "cover needs source audio, or audio codes" : task + " needs source audio");
  if (job.source.latents.defined()) {
    check_latents("src_latents", job.source.latents, info);
    require(!job.source.gain || (std::isfinite(*job.source.gain) && *job.source.gain > 0.0),
            "the gain of src_latents must be a positive number");
    const int64_t frames = job.source.latents.size(0);
    require(whole_frames(job.samples, info) == frames, "src_latents has " + std::to_string(frames) +
                                                           " frames, too few or too many for " +
                                                           std::to_string(job.samples) + " samples");
  } else {
    check_recording("the source audio", job.source.audio, info);
  }
  if (job.source.window) check_window(job, info);
}

void check_prompt(const PromptIds& prompt, double cover_strength) {
  require(!prompt.text.empty(), "the text prompt has no tokens");
  require(!prompt.lyrics.empty(), "the lyric prompt has no tokens");
  require(cover_strength == 1.0 || !prompt.plain_text.empty(),
          "a cover strength below 1 needs the text2music prompt for the remaining steps");
  if (!prompt.timed_lyrics) return;
  const auto [first, count] = *prompt.timed_lyrics;
  const auto tokens = static_cast<int64_t>(prompt.lyrics.size());
  require(first >= 0 && count >= 1 && count <= tokens - first, "timed lyric tokens are outside the lyric prompt");
}

void check_reference(const RenderJob& job, const RendererInfo& info) {
  const auto& [audio, latents] = job.reference;
  if (latents.defined()) return check_latents("ref_latents", latents, info);
  if (!audio.defined()) return;
  require(audio.dim() == 2 && audio.size(1) > 0, "the reference audio has no samples");
  require(audio.isfinite().all().item<bool>(), "the reference audio contains a value that is not finite");
  require(!is_silent(audio), "the reference audio is silent");
}

}  // namespace

void check_recording(const std::string& what, const at::Tensor& audio, const RendererInfo& info) {
  require(audio.dim() == 2 && audio.scalar_type() == at::kFloat, what + " must be float32 [channels, samples]");
  check_length(what, audio.size(1), info);
  require(audio.isfinite().all().item<bool>(), what + " contains a value that is not finite");
}

void check_latents(const std::string& what, const at::Tensor& latents, const RendererInfo& info) {
  const auto channels = static_cast<int64_t>(info.silent_frame.size());
  require(latents.dim() == 2 && latents.size(1) == channels && latents.scalar_type() == at::kFloat,
          what + " has shape " + c10::str(latents.sizes()) + ", but latents of this model are [frames, " +
              std::to_string(channels) + "]");
  check_length(what, latents.size(0) * info.samples_per_frame, info);
  require(latents.isfinite().all().item<bool>(), what + " contains a value that is not finite");
}

void check_render_job(const RenderJob& job, const RendererInfo& info) {
  require(!job.songs.empty(), "a job needs at least one song");
  require(std::isfinite(job.denoise.latent_rescale) && std::isfinite(job.denoise.latent_shift),
          "latent_rescale and latent_shift must be finite numbers");
  const auto& [eta, momentum, norm_threshold] = job.guidance.projection;
  require(std::isfinite(job.guidance.scale) && std::isfinite(eta) && std::isfinite(momentum),
          "guidance scale, eta and momentum must be finite numbers");
  require_at_least_zero("the norm threshold of the guidance", norm_threshold);
  require_at_least_zero("the norm threshold of velocities", job.denoise.velocity_norm_threshold);
  require_share("the smoothing of velocities", job.denoise.velocity_ema_factor);
  require(job.guidance.interval_start <= job.guidance.interval_end, "the guidance interval ends before it starts");
  require_share("the repaint strength", job.edit.repaint_strength);
  require(job.edit.latent_crossfade_frames.value_or(0) >= 0, "the cross-fade of latents must be 0 frames or more");
  check_crossfade(job.edit.waveform_crossfade_seconds.value_or(0.0));
  require_share("the cover strength", job.denoise.cover_strength);
  require_share("the cover noise strength", job.denoise.cover_noise_strength);
  for (const RenderSong& song : job.songs) {
    check_prompt(song.prompt, job.denoise.cover_strength);
    require(song.codes.size() == job.songs[0].codes.size(), "the audio codes of the songs differ in length");
  }
  require(!job.source.window || job.task == Task::kRepaint || job.task == Task::kLego,
          std::string(name_of_choice(job.task)) + " works on the whole song; only repaint and lego have a window");
  if (has_codes(job)) {
    check_codes(job, info);
  } else if (reads_source(job)) {
    check_source(job, info);
  } else {
    check_length("the song", job.samples, info);
  }
  check_reference(job, info);
}

}  // namespace carillon
