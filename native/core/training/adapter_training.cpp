#include "core/training/adapter_training.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <torch/optim/adamw.h>
#if defined(__linux__)
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <chrono>
#include <cmath>
#include <cstdio>

#include "core/checkpoint/checkpoint.h"
#include "core/checkpoint/config.h"
#include "core/checkpoint/file_io.h"
#include "core/checkpoint/json.h"
#include "core/diffusion/flow_matching.h"
#include "core/dit/dit.h"
#include "core/runtime/error.h"
#include "core/training/adapter_formats.h"
#include "core/training/batches.h"
#include "core/training/optimizer.h"
#include "core/training/random_draws.h"
#include "core/training/run_files.h"
#include "core/training/trainable_adapter.h"
#include "core/training/training_sample.h"

namespace carillon {
namespace {

constexpr double kGradientNormLimit = 1.0;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

double condition_dropout(const TrainingOptions& options, const DitConfig& model) {
  constexpr double kGuidedModels = 0.15;
  return options.condition_dropout.value_or(is_turbo(options, model) ? 0.0 : kGuidedModels);
}

std::string fixed(double value, int decimals) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", decimals, value);
  return text;
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Reads a sample, and trims its condition if the options say so.
TrainingSample sample_at(const TrainingOptions& options, const std::string& path) {
  TrainingSample sample = read_sample(path);
  if (options.trim_condition) drop_condition_padding(sample, path);
  return sample;
}

/// Validates all samples before the model is loaded and the output directory changes.
void check_samples(const TrainingOptions& options, const Control& control) {
  const DitConfig model = DitConfig::read(options.model);
  for (const auto& path : options.samples) {
    if (control.is_cancelled()) return;  // the run then stops before its first step
    check_sample(sample_at(options, path), model, path);
  }
}

/// The modules of a checkpoint that training uses.
struct TrainedModel {
  DitConfig config;
  Dit dit;
  at::Tensor null_condition;  // [1, 1, D]
};

TrainedModel load_model(const ModelSource& source, const Placement& placement) {
  const c10::NoGradGuard no_grad;
  const DitConfig config = DitConfig::read(source);
  const Weights weights = carillon::Checkpoint::open(source).weights(placement);
  return {config, Dit::load(weights.sub("decoder"), config, Control()),
          weights.get("null_condition_emb", {1, 1, config.encoder_hidden_size})};
}

/// Runs the training loop of train(), reports events and writes checkpoints.
class TrainingRun {
 public:
  TrainingRun(const TrainingOptions& options, std::function<void(const TrainingEvent&)> on_event,
              const Control& control);

  TrainingResult execute();

 private:
  void restore(const std::string& folder);
  /// Restore a training state, or only the weights of an adapter. Both return the text for a RunNotice event.
  std::optional<std::string> restore_state(const std::string& folder);
  std::string restore_weights(const std::string& folder);
  /// Trains one epoch; false if the caller has cancelled.
  bool run_epoch();
  /// Accumulates the gradients of the next `count` micro-batches. Returns the mean loss, or nullopt if cancelled.
  std::optional<double> accumulate(const std::vector<int64_t>& order, int64_t count);
  /// Returns the loss of one micro-batch of the epoch. Adds the gradient of the loss divided by `group`.
  double micro_step(const std::vector<int64_t>& order, int64_t batch, int64_t group);
  void optimizer_step(double loss);
  void finish_epoch(double seconds);
  std::string save_checkpoint(const std::string& name);
  std::string save_final();
  /// JSON description of the run, stored in the files that it writes.
  std::string run_json() const;
  std::string config_json() const;

  const TrainingOptions options_;
  const std::function<void(const TrainingEvent&)> on_event_;
  const Control control_;
  RunFiles files_;
  TrainedModel model_;
  TrainableAdapter adapter_;
  std::vector<at::Tensor> parameters_;  // parameters of the adapter
  torch::optim::AdamW optimizer_;
  TrainingIdentity identity_;
  SamplingOptions sampling_;
  LayerRunner runner_;
  int64_t batches_per_epoch_;
  int64_t steps_per_epoch_;
  int64_t total_steps_;
  LearningRate learning_rate_;
  TrainingPosition position_;
};

TrainingRun::TrainingRun(const TrainingOptions& options, std::function<void(const TrainingEvent&)> on_event,
                         const Control& control)
    : options_(options),
      on_event_(std::move(on_event)),
      control_(control),
      files_(options.output_directory, options.resume_from.has_value()),
      model_(load_model(options.model, options.placement)),
      adapter_(model_.dit, options.adapter, options.seed),
      parameters_(tensors_of(adapter_.parameters())),
      optimizer_(make_adamw(parameters_)),
      identity_(TrainingIdentity::of(options, adapter_)),
      sampling_{FlowTimeDistribution::choose(options, model_.config),
                condition_dropout(options, model_.config), model_.null_condition, options.seed},
      runner_(options.gradient_checkpointing ? run_layer_checkpointed : run_layer),
      batches_per_epoch_(ceil_div(static_cast<int64_t>(options.samples.size()), options.batch_size)),
      steps_per_epoch_(ceil_div(batches_per_epoch_, options.gradient_accumulation)),
      total_steps_(steps_per_epoch_ * options.epochs),
      learning_rate_(LearningRate::plan(options.learning_rate, total_steps_)) {}

TrainingResult TrainingRun::execute() {
  on_event_(training_event::SamplesLoaded{static_cast<int64_t>(options_.samples.size())});
  if (options_.resume_from) restore(*options_.resume_from);
  on_event_(training_event::RunStart{.device = options_.placement.device.is_cuda() ? "cuda" : "cpu",
                                     .precision = options_.placement.dtype == at::kBFloat16 ? "bf16-mixed" : "32-true",
                                     .trainable_parameters = adapter_.parameter_count(),
                                     .total_steps = total_steps_});
  while (position_.epoch < options_.epochs) {
    if (!run_epoch()) {
      const std::string name =
          "stopped_epoch_" + std::to_string(position_.epoch + 1) + "_step_" + std::to_string(position_.step);
      return {.completed = false, .path = save_checkpoint(name), .steps = position_.step};
    }
  }
  return {.completed = true, .path = save_final(), .steps = position_.step};
}

void TrainingRun::restore(const std::string& folder) {
  const bool has_state = has_training_state(folder);
  const std::optional<std::string> notice = has_state ? restore_state(folder) : restore_weights(folder);
  if (position_.epoch >= options_.epochs) {
    fail(ErrorCode::kBadArgument, folder + " has " + std::to_string(position_.epoch) +
                                      " finished epochs and train_epochs is " + std::to_string(options_.epochs) +
                                      ": nothing is left to train; increase train_epochs");
  }
  if (notice) on_event_(training_event::RunNotice{*notice});
  on_event_(training_event::RunResume{position_.epoch, position_.step, has_state});
}

std::optional<std::string> TrainingRun::restore_state(const std::string& folder) {
  const RestoredTraining restored = restore_training(folder, identity_, adapter_, optimizer_);
  position_ = restored.position;
  if (restored.is_exact) return std::nullopt;
  return "samples, batch size or seed differ from " + folder +
         ": restarting at the beginning of epoch " + std::to_string(position_.epoch + 1);
}

std::string TrainingRun::restore_weights(const std::string& folder) {
  import_adapter(folder, adapter_);
  const int64_t epoch = epochs_in_name(folder);
  position_ = {.epoch = epoch, .step = epoch * steps_per_epoch_};
  return folder + " contains an adapter without a training state: starting at the beginning of epoch " +
         std::to_string(epoch + 1) + " with a fresh optimiser";
}

bool TrainingRun::run_epoch() {
  const auto start = std::chrono::steady_clock::now();
  const auto order = epoch_order(static_cast<int64_t>(options_.samples.size()), options_.seed, position_.epoch);
  while (position_.batches < batches_per_epoch_) {
    const int64_t count = std::min(options_.gradient_accumulation, batches_per_epoch_ - position_.batches);
    const std::optional<double> loss = accumulate(order, count);
    if (!loss) return false;
    optimizer_step(*loss);
    position_.batches += count;
  }
  finish_epoch(seconds_since(start));
  return true;
}

std::optional<double> TrainingRun::accumulate(const std::vector<int64_t>& order, int64_t count) {
  optimizer_.zero_grad();
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    if (control_.is_cancelled()) return std::nullopt;
    sum += micro_step(order, position_.batches + i, count);
  }
  return sum / static_cast<double>(count);
}

double TrainingRun::micro_step(const std::vector<int64_t>& order, int64_t batch, int64_t group) {
  const int64_t micro_step = position_.epoch * batches_per_epoch_ + batch;
  const int64_t first = batch * options_.batch_size;
  const int64_t end = std::min(first + options_.batch_size, static_cast<int64_t>(order.size()));
  std::vector<TrainingSample> samples;
  for (int64_t i = first; i < end; ++i) {
    samples.push_back(sample_at(options_, options_.samples[static_cast<size_t>(order[static_cast<size_t>(i)])]));
  }
  const std::vector<MicroBatchPart> parts = make_parts(samples, sampling_, micro_step, options_.placement);
  double sum = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    adapter_.set_dropout(stream_seed(options_.seed, RandomStream::kDropout, {micro_step, static_cast<int64_t>(i)}));
    const at::Tensor loss = flow_matching_loss(model_.dit, parts[i].batch, runner_) * parts[i].weight;
    (loss / static_cast<double>(group)).backward();
    sum += loss.item<double>();
  }
  return sum;
}

void TrainingRun::optimizer_step(double loss) {
  const GradientNorm gradient = clip_gradients(parameters_, kGradientNormLimit);
  if (gradient.not_finite > 0) {
    on_event_(training_event::StepSkipped{.epoch = position_.epoch + 1,
                                          .step = position_.step,
                                          .not_finite = gradient.not_finite,
                                          .parameters = static_cast<int64_t>(parameters_.size())});
    return;
  }
  const double rate = learning_rate_.at(position_.step);
  apply_gradients(optimizer_, rate);
  position_.step += 1;
  position_.epoch_steps += 1;
  position_.epoch_loss_sum += loss;
  files_.log(json_object({{"epoch", std::to_string(position_.epoch + 1)},
                          {"step", std::to_string(position_.step)},
                          {"loss", json_number(loss)},
                          {"learning_rate", json_number(rate)},
                          {"gradient_norm", json_number(gradient.norm)}}));
  on_event_(training_event::StepDone{.epoch = position_.epoch + 1,
                                     .step = position_.step,
                                     .loss = loss,
                                     .learning_rate = rate,
                                     .gradient_norm = gradient.norm});
}

void TrainingRun::finish_epoch(double seconds) {
  const int64_t epoch = position_.epoch + 1;
  if (position_.epoch_steps == 0) {
    fail(ErrorCode::kNotFinite, "no optimiser step of epoch " + std::to_string(epoch) +
                                    " had finite gradients: the run has diverged; try a lower learning rate");
  }
  const double loss = position_.epoch_loss_sum / static_cast<double>(position_.epoch_steps);
  position_ = position_.at_beginning_of(epoch);
  on_event_(training_event::EpochDone{.epoch = epoch, .seconds = seconds, .loss = loss});
  if (epoch % options_.save_every_epochs == 0) {
    const std::string path = save_checkpoint("epoch_" + std::to_string(epoch) + "_loss_" + fixed(loss, 4));
    on_event_(training_event::CheckpointSaved{.epoch = epoch, .path = path});
  }
}

std::string TrainingRun::save_checkpoint(const std::string& name) {
  return files_.publish("checkpoints/" + name, [&](const std::string& folder) {
    save_adapter(adapter_, folder, options_.model_name, run_json());
    save_training_state(folder + "/" + kTrainingStateFile, position_, identity_, adapter_, optimizer_);
    write_file_atomically(folder + "/training_info.json", run_json() + "\n");
  });
}

std::string TrainingRun::save_final() {
  return files_.publish("final", [&](const std::string& folder) {
    save_adapter(adapter_, folder, options_.model_name, run_json());
    write_file_atomically(folder + "/training_info.json", run_json() + "\n");
  });
}

std::string TrainingRun::run_json() const {
  return json_object({{"model", json_string(options_.model_name)},
                      {"adapter", design_json(options_.adapter)},
                      {"tensor_dir", json_string(options_.data_set_name)},
                      {"num_samples", std::to_string(options_.samples.size())},
                      {"finished_epochs", std::to_string(position_.epoch)},
                      {"steps", std::to_string(position_.step)},
                      {"training_config", config_json()}});
}

std::string TrainingRun::config_json() const {
  return json_object({{"epochs", std::to_string(options_.epochs)},
                      {"learning_rate", json_number(options_.learning_rate)},
                      {"batch_size", std::to_string(options_.batch_size)},
                      {"gradient_accumulation", std::to_string(options_.gradient_accumulation)},
                      {"shift", json_number(options_.shift)},
                      {"seed", std::to_string(options_.seed)},
                      {"timestep_sampling", json_string(name_of_choice(options_.timestep_sampling))},
                      {"trim_condition", json_bool(options_.trim_condition)},
                      {"condition_dropout", json_number(sampling_.condition_dropout)}});
}

void check(const TrainingOptions& options) {
  require(!options.samples.empty(), "there are no samples to train on");
  require(std::isfinite(options.learning_rate) && options.learning_rate > 0, "the learning rate must be above 0");
  require(std::isfinite(options.shift) && options.shift >= 0, "the shift must be 0 or more");
  const double dropout = options.condition_dropout.value_or(0.0);
  require(dropout >= 0 && dropout <= 1, "condition dropout must be 0 to 1");
  for (const auto& [name, value] : {std::pair{"epochs", options.epochs},
                                    {"the batch size", options.batch_size},
                                    {"gradient accumulation", options.gradient_accumulation},
                                    {"the epochs between checkpoints", options.save_every_epochs}}) {
    require(value >= 1, std::string(name) + " must be 1 or more");
  }
}

/// Lowers the priority of the thread, because requests are more urgent than training. Threads that libtorch starts
/// later inherit the priority.
void lower_priority() {
#if defined(__linux__)
  constexpr int kNice = 10;
  ::setpriority(PRIO_PROCESS, static_cast<id_t>(::syscall(SYS_gettid)), kNice);
#endif
}

}  // namespace

TrainingResult train(const TrainingOptions& options, const std::function<void(const TrainingEvent&)>& on_event,
                     const Control& control) {
  check(options);
  lower_priority();
  check_samples(options, control);
  const c10::AutoGradMode gradients(true);
  try {
    return TrainingRun(options, on_event, control).execute();
  } catch (...) {
    const Error error = current_error();
    if (error.code() != ErrorCode::kOutOfMemory || options.gradient_checkpointing) throw error;
    fail(error.code(), std::string("gradient_checkpointing would need less memory; ") + error.what());
  }
}

}  // namespace carillon
