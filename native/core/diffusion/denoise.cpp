#include "core/diffusion/denoise.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "core/diffusion/velocity.h"
#include "core/runtime/cuda_graph.h"
#include "core/runtime/device.h"
#include "core/runtime/error.h"

namespace carillon {

at::Tensor inject_source(const at::Tensor& state, const Repaint& repaint, const at::Tensor& noise, double time) {
  return at::where(repaint.mask.unsqueeze(-1), state, time * noise + (1.0 - time) * repaint.clean);
}

at::Tensor soft_window(const at::Tensor& mask, int64_t frames) {
  const at::Tensor hard = mask.to(at::kCPU, at::kBool).contiguous();
  at::Tensor soft = hard.to(at::kFloat);
  const int64_t length = hard.size(1);
  for (int64_t item = 0; item < hard.size(0); ++item) {
    const bool* inside = hard.const_data_ptr<bool>() + item * length;
    float* weight = soft.mutable_data_ptr<float>() + item * length;
    const int64_t first = std::find(inside, inside + length, true) - inside;
    if (first == length) continue;
    int64_t end = length;
    while (!inside[end - 1]) --end;
    const int64_t before = std::min(frames, first), after = std::min(frames, length - end);
    for (int64_t i = 1; i <= before; ++i) weight[first - i] = 1.0f - static_cast<float>(i) / (before + 1);
    for (int64_t i = 1; i <= after; ++i) weight[end + i - 1] = 1.0f - static_cast<float>(i) / (after + 1);
  }
  return soft.to(mask.device());
}

at::Tensor blend_edges(const at::Tensor& latents, const Repaint& repaint) {
  const at::Tensor weight = soft_window(repaint.mask, repaint.crossfade_frames).unsqueeze(-1);
  return weight * latents + (1.0 - weight) * repaint.clean;
}

namespace {

/// Encoded conditions, constant over the steps.
struct PreparedConditions {
  CrossCache cross;
  ContextTokens context;
};

/// Evaluates the model. On a GPU, the first call runs directly, the second call captures a graph, and later calls
/// replay the graph on the same input tensors.
class Evaluation {
 public:
  /// Returns the velocity [B or 2 B, T, C] float32 of the state [B, T, C] float32. `modulation` is of one time. The
  /// next call overwrites the returned tensor.
  at::Tensor operator()(const Dit& dit, const PreparedConditions& prepared, const at::Tensor& state,
                        const Modulation& modulation, bool guides) {
    if (!input_.defined()) {
      input_ = state.to(prepared.context.tokens.scalar_type(), /*non_blocking=*/false, /*copy=*/true);
      modulation_ = {modulation.layers.clone(), modulation.output.clone()};
    } else {
      input_.copy_(state);
      modulation_.layers.copy_(modulation.layers);
      modulation_.output.copy_(modulation.output);
    }
    const auto run = [&] { velocity_ = run_model(dit, prepared, guides); };
    if (++calls_ == 2) graph_ = LaunchGraph::capture(state.device(), run);
    if (graph_) {
      graph_->replay();
    } else {
      run();
    }
    return velocity_;
  }

 private:
  at::Tensor run_model(const Dit& dit, const PreparedConditions& prepared, bool guides) const {
    const auto& [cross, context] = prepared;
    if (!guides) return dit.velocity(input_, context, modulation_, cross).to(at::kFloat);
    const auto twice = [](const at::Tensor& x) { return at::cat({x, x}); };
    return dit.velocity(twice(input_), {twice(context.tokens), context.rotary}, modulation_, cross).to(at::kFloat);
  }

  at::Tensor input_, velocity_;
  Modulation modulation_;
  std::unique_ptr<LaunchGraph> graph_;
  int calls_ = 0;
};

class Sampler {
 public:
  Sampler(const Dit& dit, const DenoiseJob& job, Noise& noise);
  at::Tensor run(const Control& control);

 private:
  bool guided() const { return !dit_.is_turbo() && job_.guidance.scale > 1.0; }
  PreparedConditions prepare(const Conditions& conditions) const;
  void start_from_cover();
  at::Tensor velocity(const at::Tensor& state, size_t step, bool corrects);
  at::Tensor advanced(size_t step);
  void inject(size_t step);
  void check_state() const;

  const Dit& dit_;
  const DenoiseJob& job_;
  Noise& noise_;
  const int64_t frames_;
  const at::Device device_;
  Schedule schedule_;
  at::Tensor initial_noise_;  // [B, T, C]
  at::Tensor state_;          // [B, T, C]
  Modulation modulation_;     // for all times of the schedule
  PreparedConditions prepared_;
  Evaluation plain_, guided_;  // without and with guidance; use prepared_
  AdaptiveProjectedGuidance projected_;
  VelocityFilter filter_;
  std::unique_ptr<Solver> solver_;
};

Sampler::Sampler(const Dit& dit, const DenoiseJob& job, Noise& noise)
    : dit_(dit),
      job_(job),
      noise_(noise),
      frames_(job.conditions.context.size(1)),
      device_(job.conditions.context.device()),
      schedule_(schedule_of(job.denoise, dit.is_turbo())),
      projected_(job.guidance.projection),
      filter_(job.denoise.velocity_norm_threshold, job.denoise.velocity_ema_factor),
      solver_(make_solver(job.denoise.infer_method)) {
  require(job.denoise.cover_strength >= 1.0 || job.conditions_after_cover,
          "a cover strength below 1 needs conditions for the remaining steps");
  initial_noise_ = noise_.next(frames_, dit_.latent_channels(), device_);
  state_ = initial_noise_;
  if (job.denoise.cover_noise_strength > 0.0) start_from_cover();
  modulation_ = dit_.modulate(upload(at::tensor(schedule_, at::kFloat), device_));
}

PreparedConditions Sampler::prepare(const Conditions& conditions) const {
  return {
      dit_.make_cross_cache(conditions.encoder_states, guided() ? job_.null_condition : at::Tensor(),
                            conditions.encoder_mask),
      dit_.embed_context(conditions.context)};
}

void Sampler::start_from_cover() {
  const size_t first = nearest_step(schedule_, 1.0 - job_.denoise.cover_noise_strength);
  const double time = schedule_[first];
  state_ = time * initial_noise_ + (1.0 - time) * job_.cover_source.to(at::kFloat);
  schedule_.erase(schedule_.begin(), schedule_.begin() + static_cast<std::ptrdiff_t>(first));
}

at::Tensor Sampler::velocity(const at::Tensor& state, size_t step, bool corrects) {
  const double time = schedule_[step];
  const Modulation modulation = modulation_.at(static_cast<int64_t>(step));
  const bool guides = guided() && job_.guidance.interval_start <= time && time <= job_.guidance.interval_end;
  const at::Tensor velocity = (guides ? guided_ : plain_)(dit_, prepared_, state, modulation, guides);
  if (!guides) return velocity;

  const auto halves = velocity.chunk(2);
  const double scale = job_.guidance.scale;
  const GuidanceVariant variant = job_.guidance.used_variant();
  switch (variant) {
    case GuidanceVariant::kCfg:
      return guide_plainly(halves[0], halves[1], scale);
    case GuidanceVariant::kApg:
      // The momentum may advance only once per step. Heun's method evaluates a step twice, so the second evaluation
      // uses plain guidance.
      return corrects ? guide_plainly(halves[0], halves[1], scale) : projected_.guide(halves[0], halves[1], scale);
    default:
      return guide_by_angle(variant, state, halves[0], halves[1], time, scale);
  }
}

at::Tensor Sampler::advanced(size_t step) {
  const double time = schedule_[step];
  const at::Tensor found = filter_.begin_step(velocity(state_, step, /*corrects=*/false), state_);
  const bool corrects = job_.denoise.corrects_wavelets;
  const at::Tensor data = corrects ? state_ - time * found : at::Tensor();
  const at::Tensor next = solver_->advance(
      state_, found,
      {.time = time,
       .next = next_time(schedule_, step),
       .velocity_at_next =
           [&](const at::Tensor& state) {
             return filter_.end_step(velocity(state, step + 1, /*corrects=*/true), state);
           },
       .noise = [&] { return noise_.next(frames_, dit_.latent_channels(), device_); }});
  return corrects ? job_.denoise.wavelets.apply(next, data, time) : next;
}

void Sampler::inject(size_t step) {
  const double steps = static_cast<double>(schedule_.size());
  const double injected = std::nearbyint(job_.repaint->injection_ratio * steps);  // rounds half to even
  const bool turbo_jump = dit_.is_turbo() && step + 1 == schedule_.size();
  if (static_cast<double>(step) >= injected || turbo_jump) return;
  state_ = inject_source(state_, *job_.repaint, initial_noise_, next_time(schedule_, step));
}

/// Rejects a state that is not finite or all zero. NaN and infinity persist through the steps, so one check at the end
/// of the run is enough. The check waits for the GPU.
void Sampler::check_state() const {
  const at::Tensor facts = at::stack({state_.isfinite().all(), state_.any()}).to(at::kCPU);
  const bool* const is = facts.const_data_ptr<bool>();
  if (!is[0]) {
    fail(ErrorCode::kNotFinite, "denoising produced a value that is not finite");
  }
  if (!is[1]) fail(ErrorCode::kNotFinite, "denoising produced latents that are all zero");
}

at::Tensor Sampler::run(const Control& control) {
  const int64_t steps = static_cast<int64_t>(schedule_.size());
  const auto covered = static_cast<int64_t>(static_cast<double>(steps) * job_.denoise.cover_strength);
  control.report(Stage::kDenoise, 0, steps);
  for (int64_t step = 0; step < steps; ++step) {
    const bool switches = step == covered && job_.denoise.cover_strength < 1.0;
    if (switches) {
      prepared_ = prepare(*job_.conditions_after_cover);
      plain_ = {};
      guided_ = {};
    } else if (step == 0) {
      prepared_ = prepare(job_.conditions);
    }
    state_ = advanced(step);
    if (job_.repaint) inject(step);
    control.report(Stage::kDenoise, step + 1, steps);
  }
  if (job_.repaint && job_.repaint->crossfade_frames > 0) state_ = blend_edges(state_, *job_.repaint);
  check_state();
  return state_;
}

}  // namespace

Schedule schedule_of(const Denoise& denoise, bool is_turbo) {
  if (denoise.timesteps) {
    const Schedule given = custom_schedule(*denoise.timesteps);
    return is_turbo && !denoise.free_timesteps ? snap_to_turbo_times(given) : given;
  }
  return is_turbo ? turbo_schedule(denoise.inference_steps) : shifted_schedule(denoise.inference_steps, denoise.shift);
}

at::Tensor denoise(const Dit& dit, const DenoiseJob& job, Noise& noise, const Control& control) {
  return Sampler(dit, job, noise).run(control);
}

}  // namespace carillon
