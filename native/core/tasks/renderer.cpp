#include "core/tasks/renderer.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <chrono>

#include "core/runtime/error.h"
#include "core/tasks/postprocess.h"
#include "core/tasks/text2music.h"

namespace carillon {
namespace {

/// Seconds since the last call, or since construction.
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
                                      std::to_string(expected) + "; these checkpoints do not belong together");
}

}  // namespace

Renderer Renderer::load(const Directories& directories, const Placement& placement, const Control& control) {
  AceStep model = AceStep::load(directories.model, placement, control);
  TextEncoder text_encoder = TextEncoder::load(directories.text_encoder, placement, control);
  Vae vae = Vae::load(directories.vae, placement, control);
  require_match("the text encoder", text_encoder.config().hidden_size, model.config.text_hidden_dim);
  require_match("the VAE's latent space", vae.config().decoder_input_channels, model.config.audio_acoustic_hidden_dim);
  const int64_t parameters = model.parameter_count + text_encoder.parameter_count() + vae.parameter_count();
  return Renderer(std::move(model), std::move(vae), std::move(text_encoder), parameters);
}

Renderer::Renderer(AceStep model, Vae vae, TextEncoder text_encoder, int64_t parameter_count)
    : model_(std::move(model)),
      vae_(std::move(vae)),
      text_encoder_(std::move(text_encoder)),
      info_{.placement = model_.placement,
            .is_turbo = model_.config.is_turbo,
            .sample_rate = vae_.config().sampling_rate,
            .samples_per_frame = vae_.config().samples_per_frame(),
            .frames_per_code = model_.config.pool_window_size,
            .codebook_size = model_.tokenizer.codebook_size(),
            .max_frames = model_.max_frames(),
            .parameter_count = parameter_count} {}

ConditionInputs Renderer::read_prompts(const RenderJob& job) const {
  const auto row = [&](const std::vector<int32_t>& ids) {
    return at::tensor(ids, at::kLong).unsqueeze(0).to(model_.placement.device);
  };
  const at::Tensor text = row(job.text_token_ids), lyrics = row(job.lyric_token_ids);
  return {.text_hidden_states = text_encoder_.encode(text),
          .text_mask = at::ones_like(text, at::kBool),
          .lyric_embeddings = text_encoder_.embed(lyrics),
          .lyric_mask = at::ones_like(lyrics, at::kBool),
          .timbre_latents = model_.silence_of(std::min(model_.config.timbre_fix_frame, model_.max_frames())),
          .timbre_items = at::zeros({1}, at::kLong)};
}

DenoiseJob Renderer::prepare(const RenderJob& job, const Control& control) const {
  constexpr int64_t kParts = 3;
  control.report(Stage::kConditions, 0, kParts);
  DenoiseJob denoising;
  denoising.schedule = render_schedule(job, model_.config.is_turbo);
  denoising.conditions.context = make_context(model_, text2music_source(model_, job));
  control.report(Stage::kConditions, 1, kParts);
  const ConditionInputs prompts = read_prompts(job);
  control.report(Stage::kConditions, 2, kParts);
  const auto batch = static_cast<int64_t>(job.seeds.size());
  denoising.conditions.encoder_states = model_.encoder.encode(prompts).states.expand({batch, -1, -1});
  denoising.null_condition = model_.null_condition;
  denoising.method = job.infer_method;
  denoising.guidance = job.guidance;
  control.report(Stage::kConditions, kParts, kParts);
  return denoising;
}

std::vector<at::Tensor> Renderer::decode(const at::Tensor& latents, const Control& control) const {
  const int64_t items = latents.size(0);
  std::vector<at::Tensor> audio;
  for (int64_t item = 0; item < items; ++item) {
    const Control part(nullptr, [&](const Progress& progress) {
      control.report(progress.stage, item * progress.total + progress.done, items * progress.total);
    });
    at::Tensor waveform = vae_.decode(latents.narrow(0, item, 1).transpose(1, 2), part)[0];
    normalize_peak(waveform);
    audio.push_back(std::move(waveform));
  }
  return audio;
}

RenderResult Renderer::render(const RenderJob& job, const Control& control) const {
  const c10::InferenceMode inference;
  check_render_job(job);
  RenderResult result;
  Stopwatch stopwatch;
  const DenoiseJob denoising = prepare(job, control);
  result.timings.conditions = stopwatch.lap();

  NoiseStreams noise(job.seeds);
  const at::Tensor latents = denoise(model_.dit, denoising, noise, control);
  result.timings.denoise = stopwatch.lap();

  const int64_t frames = text2music_frames(model_, job);
  result.audio = decode(latents.narrow(1, 0, frames), control);
  result.samples_per_channel = frames * info_.samples_per_frame;
  result.timings.decode = stopwatch.lap();
  return result;
}

}  // namespace carillon
