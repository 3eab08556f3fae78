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

Renderer::Renderer(const Directories& directories, const Placement& placement, const Residency& residency,
                   const Control& control)
    : model_([=](const Control& call) { return AceStep::load(directories.model, placement, call); }, residency.model,
             control),
      text_encoder_([=](const Control& call) { return TextEncoder::load(directories.text_encoder, placement, call); },
                    residency.text_encoder_and_vae, control),
      vae_([=](const Control& call) { return Vae::load(directories.vae, placement, call); },
           residency.text_encoder_and_vae, control) {
  // Each is loaded once in any case: a checkpoint's faults show now, and not in the first job.
  const auto model = model_.acquire(control);
  const auto text_encoder = text_encoder_.acquire(control);
  const auto vae = vae_.acquire(control);
  require_match("the text encoder", text_encoder->config().hidden_size, model->config.text_hidden_dim);
  require_match("the VAE's latent space", vae->config().decoder_input_channels,
                model->config.audio_acoustic_hidden_dim);
  info_ = {.placement = placement,
           .is_turbo = model->config.is_turbo,
           .is_lego_sft = model->config.is_lego_sft,
           .sample_rate = vae->config().sampling_rate,
           .samples_per_frame = vae->config().samples_per_frame(),
           .frames_per_code = model->config.pool_window_size,
           .codebook_size = model->tokenizer.codebook_size(),
           .max_frames = model->max_frames(),
           .parameter_count = model->parameter_count + text_encoder->parameter_count() + vae->parameter_count(),
           .unused_tensors = {}};
  const auto add_unused = [&](const std::string& directory, const std::vector<std::string>& names) {
    for (const auto& name : names) info_.unused_tensors.push_back(directory + ": " + name);
  };
  add_unused(directories.model, model->unused_tensors);
  add_unused(directories.vae, vae->unused_tensors());
  add_unused(directories.text_encoder, text_encoder->unused_tensors());
}

ConditionInputs Renderer::read_prompts(const AceStep& model, const RenderJob& job, const Control& control) {
  const auto row = [&](const std::vector<int32_t>& ids) {
    return at::tensor(ids, at::kLong).unsqueeze(0).to(model.placement.device);
  };
  const at::Tensor text = row(job.text_token_ids), lyrics = row(job.lyric_token_ids);
  const auto text_encoder = text_encoder_.acquire(control);
  return {.text_hidden_states = text_encoder->encode(text),
          .text_mask = at::ones_like(text, at::kBool),
          .lyric_embeddings = text_encoder->embed(lyrics),
          .lyric_mask = at::ones_like(lyrics, at::kBool),
          .timbre_latents = model.silence_of(std::min(model.config.timbre_fix_frame, model.max_frames())),
          .timbre_items = at::zeros({1}, at::kLong)};
}

DenoiseJob Renderer::prepare(const AceStep& model, const RenderJob& job, const Control& control) {
  constexpr int64_t kParts = 3;
  control.report(Stage::kConditions, 0, kParts);
  DenoiseJob denoising;
  denoising.schedule = render_schedule(job, model.config.is_turbo);
  denoising.conditions.context = make_context(model, text2music_source(model, job));
  control.report(Stage::kConditions, 1, kParts);
  const ConditionInputs prompts = read_prompts(model, job, control);
  control.report(Stage::kConditions, 2, kParts);
  const auto batch = static_cast<int64_t>(job.seeds.size());
  denoising.conditions.encoder_states = model.encoder.encode(prompts).states.expand({batch, -1, -1});
  denoising.null_condition = model.null_condition;
  denoising.method = job.infer_method;
  denoising.guidance = job.guidance;
  control.report(Stage::kConditions, kParts, kParts);
  return denoising;
}

std::vector<at::Tensor> Renderer::decode(const at::Tensor& latents, const Control& control) {
  const auto vae = vae_.acquire(control);
  const int64_t items = latents.size(0);
  std::vector<at::Tensor> audio;
  for (int64_t item = 0; item < items; ++item) {
    const Control part(nullptr, [&](const Progress& progress) {
      control.report(progress.stage, item * progress.total + progress.done, items * progress.total);
    });
    at::Tensor waveform = vae->decode(latents.narrow(0, item, 1).transpose(1, 2), part)[0];
    normalize_peak(waveform);
    audio.push_back(std::move(waveform));
  }
  return audio;
}

RenderResult Renderer::render(const RenderJob& job, const Control& control) {
  const c10::InferenceMode inference;
  check_render_job(job);
  RenderResult result;
  Stopwatch stopwatch;
  auto model = model_.acquire(control);
  const DenoiseJob denoising = prepare(*model, job, control);
  const int64_t frames = text2music_frames(*model, job);
  result.timings.conditions = stopwatch.lap();

  NoiseStreams noise(job.seeds);
  const at::Tensor latents = denoise(model->dit, denoising, noise, control);
  model.reset();  // before the VAE arrives, where the two do not fit together
  result.timings.denoise = stopwatch.lap();

  result.audio = decode(latents.narrow(1, 0, frames), control);
  result.samples_per_channel = frames * info_.samples_per_frame;
  result.timings.decode = stopwatch.lap();
  return result;
}

}  // namespace carillon
