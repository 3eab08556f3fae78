#include "core/tasks/renderer.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <chrono>

#include "core/runtime/error.h"
#include "core/tasks/loudness.h"
#include "core/tasks/lyric_times.h"
#include "core/tasks/postprocess.h"

namespace carillon {
namespace {

/// lap() returns the seconds since the last call, or since construction.
class Stopwatch {
 public:
  double lap() {
    const auto now = Clock::now();
    const double seconds = std::chrono::duration<double>(now - last_).count();
    last_ = now;
    return seconds;
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point last_ = Clock::now();
};

void require_match(const char* what, int64_t found, int64_t expected) {
  if (found == expected) return;
  fail(ErrorCode::kBadCheckpoint, std::string(what) + " has " + std::to_string(found) + " channels, the DiT expects " +
                                      std::to_string(expected) + "; these checkpoints do not match");
}

std::vector<float> numbers_of(const at::Tensor& frame) {
  return {frame.const_data_ptr<float>(), frame.const_data_ptr<float>() + frame.numel()};
}

/// Rejects latents that are not finite, because rescaling can overflow float32.
void require_finite(const at::Tensor& latents) {
  if (latents.isfinite().all().item<bool>()) return;
  fail(ErrorCode::kNotFinite, "latent_rescale and latent_shift produced latents that are not finite");
}

bool has_timed_lyrics(const RenderJob& job) {
  return std::ranges::any_of(job.songs, [](const RenderSong& song) { return song.prompt.timed_lyrics.has_value(); });
}

std::vector<int32_t> tokenize(const AceStep& model, const at::Tensor& latents) {
  const at::Tensor codes = model.tokenizer.tokenize(latents, model.silence).indices.to(at::kCPU, at::kInt);
  return {codes.const_data_ptr<int32_t>(), codes.const_data_ptr<int32_t>() + codes.numel()};
}

/// Steps of Stage::kConditions that report progress: encode the recordings, encode the prompts, run the condition
/// encoder.
constexpr int64_t kConditionParts = 3;

/// Length of the silence table: ten minutes, as in the published tables.
constexpr int64_t kSilenceFrames = 15000;

}  // namespace

Renderer::Renderer(const Directories& directories, const Placement& placement, const Residency& residency,
                   const Control& control)
    : model_(
          [=, this](const Control& call) {
            merged_.reset();
            return load_model(directories, placement, call);
          },
          residency.model, control),
      text_encoder_([=](const Control& call) { return TextEncoder::load(directories.text_encoder, placement, call); },
                    residency.text_encoder_and_vae, control),
      vae_([=](const Control& call) { return Vae::load(directories.vae, placement, call); },
           residency.text_encoder_and_vae, control) {
  // Loads each model once to report a damaged checkpoint before the first job.
  const auto model = model_.acquire(control);
  const auto text_encoder = text_encoder_.acquire(control);
  const auto vae = vae_.acquire(control);
  adapter_targets_ = adapter_targets(model->dit);
  require_match("the text encoder", text_encoder->config().hidden_size, model->config.text_hidden_dim);
  require_match("the VAE's latent space", vae->config().decoder_input_channels,
                model->config.audio_acoustic_hidden_dim);
  info_ = {.placement = placement,
           .is_turbo = model->config.is_turbo,
           .is_lego_sft = model->config.is_lego_sft,
           .music = model->config.music,
           .sample_rate = vae->config().sampling_rate,
           .samples_per_frame = vae->config().samples_per_frame(),
           .frames_per_code = model->config.pool_window_size,
           .codebook_size = model->tokenizer.codebook_size(),
           .max_frames = model->max_frames(),
           .timbre_frames = model->config.timbre_fix_frame,
           .silent_frame = numbers_of(model->silent_frame),
           .unused_tensors = {}};
  const auto add_unused = [&](const ModelSource& source, const std::vector<std::string>& names) {
    for (const auto& name : names) info_.unused_tensors.push_back(source.path + ": " + source.prefix + name);
  };
  add_unused(directories.model, model->unused_tensors);
  add_unused(directories.vae, vae->unused_tensors());
  add_unused(directories.text_encoder, text_encoder->unused_tensors());
}

AceStep Renderer::load_model(const Directories& directories, const Placement& placement, const Control& control) {
  AceStep model = AceStep::load(directories.model, placement, control);
  if (model.silence.defined()) return model;
  if (!silence_.defined()) {
    silence_ = Vae::load(directories.vae, placement, control).encode_silence(kSilenceFrames, control);
    require_match("the VAE's latent space", silence_.size(2), model.config.audio_acoustic_hidden_dim);
  }
  model.silence = silence_.to(placement.device, placement.dtype);
  model.silent_frame = first_frame(silence_);
  return model;
}

std::shared_ptr<const AceStep> Renderer::acquire_model(const std::vector<ActiveAdapter>& adapters,
                                                       const Control& control) {
  const auto model = model_.acquire(control);
  if (merged_ != adapters) {
    merged_.reset();
    merge_adapters(model->dit, model->decoder_weights, adapters);
    merged_ = adapters;
  }
  return model;
}

RenderResult Renderer::render(const RenderJob& job, const Control& control, const Vae::Listener& listener) {
  const c10::InferenceMode inference;
  check_render_job(job, info_);
  RenderResult result;
  Stopwatch stopwatch;
  control.report(Stage::kConditions, 0, kConditionParts);
  const Recordings recordings =
      encode_recordings(vae_, job, info_, control.part(Stage::kConditions, 0, kConditionParts));
  control.report(Stage::kConditions, 1, kConditionParts);
  const std::vector<PromptStates> prompts =
      encode_prompts(*text_encoder_.acquire(control), job.songs, job.denoise.cover_strength < 1.0, control);
  control.report(Stage::kConditions, 2, kConditionParts);
  auto model = acquire_model(job.adapters, control);
  const DenoiseJob denoising = make_denoise_job(*model, job, recordings, prompts, control);
  const int64_t frames = song_frames(job, info_);
  control.report(Stage::kConditions, kConditionParts, kConditionParts);
  result.timings.conditions = stopwatch.lap();

  NoiseStreams noise(seeds_of(job));
  at::Tensor latents = denoise(model->dit, denoising, noise, control);
  // Without a cross-fade, replaces the latents outside the window by the source. The decoder smooths the edges.
  if (denoising.repaint && denoising.repaint->crossfade_frames == 0) latents = blend_edges(latents, *denoising.repaint);
  result.songs.resize(job.songs.size());
  if (has_timed_lyrics(job) && !model->config.lyric_heads.empty()) {
    time_lyrics(*model, job, denoising.conditions, latents, control, result.songs);
  }
  latents = latents * job.denoise.latent_rescale + job.denoise.latent_shift;
  require_finite(latents);
  model.reset();  // frees the model before the VAE is loaded, in case both do not fit in memory
  result.timings.denoise = stopwatch.lap();

  result.samples_per_channel = song_samples(job, info_);
  latents = latents.narrow(1, 0, frames);
  const bool keeps_part = recordings.source && recordings.source->keeps_part(info_.samples_per_frame);
  const bool has_level = keeps_part && recordings.source->gain;
  const double level = has_level ? *recordings.source->gain : 1.0;
  const std::vector<at::Tensor> decoded = decode(latents, result.samples_per_channel, level, control, listener);
  const at::Tensor on_host = latents.to(at::kCPU);
  for (size_t i = 0; i < decoded.size(); ++i) {
    RenderedSong& song = result.songs[i];
    song.latents = on_host[static_cast<int64_t>(i)].contiguous();
    song.audio = keeps_part ? join_source(decoded[i], job.edit, *recordings.source) : decoded[i];
    song.gain = has_level ? level : normalize_peak(song.audio);
  }
  result.timings.decode = stopwatch.lap();
  return result;
}

DenoiseJob Renderer::make_denoise_job(const AceStep& model, const RenderJob& job, const Recordings& recordings,
                                      const std::vector<PromptStates>& prompts, const Control& control) {
  const EncodedPrompts encoded = carillon::encode_conditions(model, prompts, recordings.timbre_latents, control);
  return denoise_job(model, task_inputs(model, job, recordings.source, info_), job.denoise, job.guidance,
                     stack_padded(encoded.task), stack_padded(encoded.plain), static_cast<int64_t>(job.songs.size()));
}

void Renderer::time_lyrics(const AceStep& model, const RenderJob& job, const Conditions& conditions,
                           const at::Tensor& latents, const Control& control, std::vector<RenderedSong>& songs) const {
  const int64_t patch = model.config.patch_size * info_.samples_per_frame;
  const int64_t patches = (song_frames(job, info_) + model.config.patch_size - 1) / model.config.patch_size;
  const auto steps = static_cast<int>(schedule_of(job.denoise, info_.is_turbo).size());
  NoiseStreams noise(seeds_of(job));
  const at::Tensor fresh = noise.next(latents.size(1), latents.size(2), latents.device());
  for (size_t i = 0; i < songs.size(); ++i) {
    const auto& timed_lyrics = job.songs[i].prompt.timed_lyrics;
    if (!timed_lyrics) continue;
    const auto item = static_cast<int64_t>(i);
    const auto of_item = [&](const at::Tensor& x) { return x.narrow(0, item, 1); };
    const at::Tensor& mask = conditions.encoder_mask;
    const int64_t tokens = mask.defined() ? mask[item].sum().item<int64_t>() : conditions.encoder_states.size(1);
    const Conditions own{of_item(conditions.encoder_states).narrow(1, 0, tokens), of_item(conditions.context)};
    for (const int64_t at : sung_patches(model, of_item(latents), of_item(fresh), own, *timed_lyrics, steps, patches,
                                         control)) {
      songs[i].lyric_seconds.push_back(static_cast<float>(at * patch) / static_cast<float>(info_.sample_rate));
    }
  }
}

std::vector<at::Tensor> Renderer::decode(const at::Tensor& latents, int64_t samples, double level,
                                         const Control& control, const Vae::Listener& listener) {
  const auto vae = vae_.acquire(control);
  std::vector<int64_t> left(static_cast<size_t>(latents.size(0)), samples);
  const Vae::Listener until_end = [&](int64_t item, const at::Tensor& part) {
    const int64_t heard = std::min(left[static_cast<size_t>(item)], part.size(0));
    left[static_cast<size_t>(item)] -= heard;
    if (heard > 0) listener(item, part.narrow(0, 0, heard) * level);
  };
  std::vector<at::Tensor> audio = vae->decode(latents.transpose(1, 2), control, listener ? until_end : nullptr);
  for (at::Tensor& item : audio) item = item.narrow(1, 0, samples).contiguous();
  return audio;
}

at::Tensor Renderer::join_source(const at::Tensor& decoded, const EditParameters& edit,
                                 const SourceRecording& source) const {
  const RepaintBlend blend = repaint_blend(edit);
  const auto fade = static_cast<int64_t>(blend.crossfade_seconds * static_cast<double>(info_.sample_rate));
  const int64_t begin = source.window.begin, end = source.window.end;
  const double level = source.gain.value_or(1.0);
  const bool has_audio = source.audio.defined();
  const at::Tensor heard = has_audio ? source.audio / level : decoded;
  std::optional<double> original;
  if (has_audio) original = loudness_of(heard.slice(1, begin, end));
  at::Tensor song =
      fit_part(decoded, begin, end, source.gain, suitable_loudness(loudness_beside(heard, begin, end), original));
  restore_outside_window(song, has_audio && blend.keeps_waveform ? source.audio : decoded * level, begin, end, fade);
  return song;
}

std::vector<int32_t> Renderer::encode_codes(const at::Tensor& audio, const Control& control) {
  const c10::InferenceMode inference;
  check_recording("the audio", audio, info_);
  control.report(Stage::kConditions, 0, 1);
  at::Tensor heard;
  if (!is_silent(audio)) {
    const at::Tensor levelled = at_music_level(audio, level_to_music(audio, info_.music));
    heard = encode_latents(*vae_.acquire(control), levelled, control);
  }
  const auto model = model_.acquire(control);
  const at::Tensor latents =
      heard.defined() ? heard.to(info_.placement.device) : model->silence_of(audio.size(1) / info_.samples_per_frame);
  return tokenize(*model, latents);
}

std::vector<int32_t> Renderer::codes_of_latents(const at::Tensor& latents, const Control& control) {
  const c10::InferenceMode inference;
  check_latents("src_latents", latents, info_);
  control.report(Stage::kConditions, 0, 1);
  return tokenize(*model_.acquire(control), latents.unsqueeze(0).to(info_.placement.device));
}

at::Tensor Renderer::encode_recording(const at::Tensor& audio, const Control& control) {
  const c10::InferenceMode inference;
  check_recording("the audio", audio, info_);
  const int64_t frame = info_.samples_per_frame;
  const int64_t missing = (frame - audio.size(1) % frame) % frame;
  return encode_latents(*vae_.acquire(control), at::constant_pad_nd(audio, {0, missing}), control)[0].contiguous();
}

at::Tensor Renderer::decode_latents(const at::Tensor& latents, const Control& control) {
  const c10::InferenceMode inference;
  check_latents("src_latents", latents, info_);
  const at::Tensor item = latents.unsqueeze(0).to(info_.placement.device);
  return decode(item, latents.size(0) * info_.samples_per_frame, 1.0, control, {})[0];
}

Vae::Posterior Renderer::encode_posterior(const at::Tensor& audio, const Control& control) {
  const c10::InferenceMode inference;
  return vae_.acquire(control)->encode(audio.unsqueeze(0), control);
}

at::Tensor Renderer::encode_conditions(const PromptIds& prompts, const at::Tensor& timbre_latents,
                                       const Control& control) {
  const c10::InferenceMode inference;
  const auto states =
      encode_prompts(*text_encoder_.acquire(control), {{.prompt = prompts}}, /*with_plain_text=*/false, control);
  return carillon::encode_conditions(*model_.acquire(control), states, timbre_latents, control).task[0];
}

at::Tensor Renderer::silent_context(int64_t frames, const Control& control) {
  const c10::InferenceMode inference;
  const auto model = model_.acquire(control);
  const at::Tensor silence = model->silence_of(frames);
  return make_context(*model, {.source = silence, .chunk_mask = at::ones_like(silence)});
}

}  // namespace carillon
