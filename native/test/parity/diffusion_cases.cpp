// Goldens of guidance and of the whole denoising loop.
#include <ATen/ATen.h>

#include "core/diffusion/denoise.h"
#include "core/diffusion/flow_matching.h"
#include "core/diffusion/guidance.h"
#include "core/runtime/error.h"
#include "core/tasks/task_inputs.h"
#include "test/parity/case.h"
#include "test/parity/masked_conditions.h"

namespace carillon::parity {
namespace {

void guidance(Case& golden) {
  const double scale = golden.params.get_double("guidance_scale");
  const auto input = [&](const char* name) { return golden.input(name).to(at::kFloat); };
  if (golden.has_output("velocity")) {
    golden.compare("velocity", guide_by_angle(GuidanceVariant::kAdg, input("latents"), input("cond"), input("uncond"),
                                              golden.params.get_double("sigma"), scale));
    return;
  }
  AdaptiveProjectedGuidance projected({});
  golden.compare("first", projected.guide(input("cond"), input("uncond"), scale));
  golden.compare("second_swapped", projected.guide(input("uncond"), input("cond"), scale));
}

std::vector<double> numbers(const Json& list) {
  std::vector<double> values;
  for (const Json& value : list.as_array()) values.push_back(value.as_double());
  return values;
}

InferMethod method_of(const std::string& name) {
  const auto method = find_choice(kChoices<InferMethod>, name);
  require(method.has_value(), "unknown solver in the golden: " + name);
  return *method;
}

WaveletCorrection wavelets_of(const Json& params) {
  if (!params.has("dcw_mode")) return {};
  return {.band = find_choice(kChoices<WaveletBand>, params.at("dcw_mode").as_string()).value(),
          .low = params.get_double("dcw_scaler"),
          .high = params.get_double("dcw_high_scaler")};
}

/// Times of turbo models in the reference, which has tables of eight steps for the shifts 1, 2 and 3 only.
Schedule turbo_table(double shift) {
  const double rounded = shift <= 1.5 ? 1.0 : shift <= 2.5 ? 2.0 : 3.0;
  return shifted_schedule(8, rounded);
}

Denoise denoise_of(const Json& params, bool is_turbo) {
  const double shift = params.get_double("shift", 1.0);
  std::optional<std::vector<double>> timesteps;
  if (params.has("timesteps")) timesteps = numbers(params.at("timesteps"));
  if (!timesteps && is_turbo) timesteps = turbo_table(shift);
  return {.inference_steps = static_cast<int>(params.get_int("num_inference_steps", 0)),
          .shift = shift,
          .timesteps = timesteps,
          .infer_method = method_of(params.get_string("infer_method", "ode")),
          .corrects_wavelets = params.has("dcw_mode"),
          .wavelets = wavelets_of(params),
          .cover_strength = params.get_double("audio_cover_strength", 1.0),
          .cover_noise_strength = params.get_double("cover_noise_strength", 0.0)};
}

Guidance guidance_of(const Json& params) {
  return {.scale = params.get_double("guidance_scale", 1.0),
          .interval_start = params.get_double("cfg_interval_start", 0.0),
          .interval_end = params.get_double("cfg_interval_end", 1.0),
          .use_adg = params.get_bool("use_adg", false)};
}

MaskedConditions conditions_of(const Case& golden, const std::string& text) {
  return {
      .text_hidden_states = golden.input(text + "_hidden_states"),
      .text_mask = golden.input(text + "_attention_mask").to(at::kBool),
      .lyric_embeddings = golden.input("lyric_hidden_states"),
      .lyric_mask = golden.input("lyric_attention_mask").to(at::kBool),
      .timbre_latents = golden.input("timbre_latents"),
      .timbre_items = golden.input("timbre_order"),
  };
}

/// Goldens of base checkpoints come from a fork of the reference. In the fork, windows are one-sided (all later tokens
/// are visible) and padded conditions are masked. Neither is true of the official release and of render jobs.
AceStep load_reference_model(const Case& golden) {
  DitConfig config = DitConfig::read(golden.checkpoint_directory);
  config.one_sided_windows = !config.is_turbo;
  return AceStep::load(golden.checkpoint_directory, config, golden.placement, Control());
}

/// Builds a context as render jobs do.
ContextInputs context_inputs(const Case& golden) {
  const at::Tensor source = golden.input("src_latents"), chunk_mask = golden.input("chunk_masks");
  if (!golden.has_input("lm_hints")) return {source, chunk_mask, golden.input("is_covers").any().item<bool>()};
  // Hints have 5 frames per audio code, so they can be longer than the source. Cut the hints to the source's length.
  return {golden.input("lm_hints").narrow(1, 0, source.size(1)), chunk_mask};
}

std::optional<Repaint> repaint_of(const Case& golden) {
  if (!golden.has_input("repaint_mask")) return std::nullopt;
  return make_repaint(golden.input("src_latents").to(at::kFloat), golden.input("repaint_mask").to(at::kBool),
                      {.injection_ratio = golden.params.get_double("repaint_injection_ratio", 0.0),
                       .crossfade_frames = golden.params.get_int("repaint_crossfade_frames", 0),
                       .crossfade_seconds = 0,
                       .keeps_waveform = false});
}

DenoiseJob job_of(const Case& golden, const AceStep& model) {
  const Json& params = golden.params;
  const TaskInputs inputs{context_inputs(golden), repaint_of(golden)};
  // Padding of the conditions is masked only in models with one-sided windows.
  const auto encoded = [&](const char* prompt) {
    const PaddedStates states = encode(model.encoder, conditions_of(golden, prompt));
    return PaddedStates{states.states, model.config.one_sided_windows ? states.mask : at::Tensor()};
  };
  const PaddedStates plain =
      golden.has_input("non_cover_text_hidden_states") ? encoded("non_cover_text") : PaddedStates();
  DenoiseJob job = denoise_job(model, inputs, denoise_of(params, model.dit.is_turbo()), guidance_of(params),
                               encoded("text"), plain, golden.input("src_latents").size(0));
  if (inputs.context.reads_codes) {  // unlike the songs of a render job, only some items of the batch may be covers
    const at::Tensor is_cover = golden.input("is_covers").to(at::kBool).view({-1, 1, 1});
    const at::Tensor recorded = make_context(model, {inputs.context.source, inputs.context.chunk_mask});
    job.conditions.context = at::where(is_cover, job.conditions.context, recorded);
  }
  return job;
}

/// Noise source for a single draw, which returns the tensor stored in a golden.
class GivenNoise final : public Noise {
 public:
  explicit GivenNoise(at::Tensor noise) : noise_(std::move(noise)) {}
  at::Tensor next(int64_t, int64_t, at::Device device) override { return noise_.to(device, at::kFloat); }

 private:
  at::Tensor noise_;
};

void sampler(Case& golden) {
  const AceStep model = load_reference_model(golden);
  GivenNoise noise(golden.stored_input("noise"));
  golden.compare("latents", denoise(model.dit, job_of(golden, model), noise, Control()));
}

/// Runs a solver on the velocity field tanh(x * A) + t * b, where t is the flow time.
void solver(Case& golden) {
  const auto input = [&](const char* name) { return golden.stored_input(name).to(golden.placement.device); };
  const at::Tensor field = input("field"), slope = input("slope"), noise = input("noise");
  const auto velocity = [&](const at::Tensor& x, double time) { return at::tanh(x.matmul(field)) + time * slope; };
  const Schedule times = numbers(golden.params.at("times"));
  const auto solver = make_solver(method_of(golden.params.get_string("infer_method", "")));
  at::Tensor state = input("state");
  for (size_t step = 0; step < times.size(); ++step) {
    const double next = next_time(times, step);
    state = solver->advance(state, velocity(state, times[step]),
                            {.time = times[step],
                             .next = next,
                             .velocity_at_next = [&](const at::Tensor& x) { return velocity(x, next); },
                             .noise = [&] { return noise[static_cast<int64_t>(step)]; }});
  }
  golden.compare("final", state);
}

void wavelet_correction(Case& golden) {
  const auto input = [&](const char* name) { return golden.stored_input(name).to(golden.placement.device); };
  golden.compare("corrected", wavelets_of(golden.params).apply(input("state"), input("data"),
                                                                golden.params.get_double("time")));
}

[[maybe_unused]] const bool diffusion_registered[] = {
    register_module("solver", Depth::kModule, solver),
    register_module("wavelet_correction", Depth::kModule, wavelet_correction),
    register_module("guidance", Depth::kModule, guidance),
    register_module("sampler", Depth::kSampler, sampler),
};

}  // namespace
}  // namespace carillon::parity
