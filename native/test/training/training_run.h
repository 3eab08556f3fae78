#pragma once
// Trains adapters of the tiny model in tests, and collects the training events.
#include <ATen/ATen.h>

#include <atomic>
#include <exception>
#include <filesystem>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "core/runtime/error.h"
#include "core/training/adapter_training.h"
#include "core/training/trainable_adapter.h"
#include "core/training/training_sample.h"
#include "test/tiny_ace_step.h"
#include "test/training/designs.h"

namespace carillon::test {

/// Changes every parameter of an adapter, as in the middle of training.
inline void disturb(const TrainableAdapter& adapter) {
  uint64_t seed = 100;
  for (const auto& [name, parameter] : adapter.parameters()) {
    parameter.detach().add_(random_tensor(parameter.sizes(), ++seed, 0.1));
  }
}

/// Returns a random training sample. Multiplies the latents by `scale`.
inline TrainingSample random_sample(int64_t frames, int64_t tokens, uint64_t seed, double scale = 1.0) {
  return {.target_latents = random_tensor({frames, kTinyLatent}, seed, scale),
          .attention_mask = at::ones({frames}, at::kBool),
          .encoder_hidden_states = random_tensor({tokens, kTinyEncoder}, seed + 1),
          .encoder_attention_mask = at::ones({tokens}, at::kBool),
          .context_latents = random_tensor({frames, 2 * kTinyLatent}, seed + 2),
          .metadata = {}};
}

/// Writes samples to a fresh folder and returns their paths.
inline std::vector<std::string> write_samples(const std::vector<TrainingSample>& samples) {
  const std::string directory = fixture_directory();
  std::vector<std::string> paths;
  for (const auto& sample : samples) {
    paths.push_back(directory + "/" + std::to_string(paths.size()) + ".pt");
    write_sample(paths.back(), sample);
  }
  return paths;
}

constexpr LoraDesign kLora{.rank = 2, .alpha = 4, .dropout = 0.1};
inline const LokrDesign kLokr = Lokr{.dimension = 2, .alpha = 4, .decompose_both = true, .use_scalar = true};

/// A short run over three samples of different lengths.
inline TrainingOptions tiny_training(const AdapterDesign& adapter) {
  static const std::string model = write_tiny_ace_step({.is_turbo = true});
  static const std::vector<std::string> samples =
      write_samples({random_sample(12, 5, 1), random_sample(9, 4, 11), random_sample(12, 3, 21)});
  return {.model = model,
          .model_name = "tiny",
          .placement = {at::kCPU, at::kFloat},
          .adapter = adapter,
          .data_set_name = "songs",
          .samples = samples,
          .output_directory = fixture_directory() + "/run",
          .learning_rate = 1e-2,
          .epochs = 6,
          .batch_size = 1,
          .gradient_accumulation = 2,
          .save_every_epochs = 3,
          .shift = 3.0,
          .seed = 42,
          .gradient_checkpointing = false,
          .timestep_sampling = TimestepSampling::kAuto,
          .trim_condition = false};
}

/// Trains and collects the events. Cancels the run once `stop_when` returns true for an event.
struct Trained {
  std::vector<TrainingEvent> events;
  TrainingResult result;

  explicit Trained(
      const TrainingOptions& options,
      const std::function<bool(const TrainingEvent&)>& stop_when = [](const auto&) { return false; }) {
    std::atomic<bool> stop = false;
    const auto note = [&](const TrainingEvent& event) {
      events.push_back(event);
      if (stop_when(event)) stop = true;
    };
    std::exception_ptr failure;
    // Train in a separate thread, because train() lowers the priority of its thread.
    std::thread([&] {
      try {
        result = train(options, note, Control(&stop, {}));
      } catch (...) {
        failure = std::current_exception();
      }
    }).join();
    if (failure) std::rethrow_exception(failure);
  }

  template <typename Event>
  std::vector<Event> all() const {
    std::vector<Event> found;
    for (const auto& event : events) {
      if (const auto* one = std::get_if<Event>(&event)) found.push_back(*one);
    }
    return found;
  }
};

/// Error code of a run that fails.
inline ErrorCode code_of(const TrainingOptions& options) {
  try {
    Trained run(options);
  } catch (const Error& error) {
    return error.code();
  }
  throw std::runtime_error("the run did not fail");
}

inline std::string text_of(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

/// Bytes of the adapter file in a checkpoint folder, or in the folder `final`.
inline std::string adapter_bytes(const std::string& folder) {
  const std::string lokr = folder + "/lokr_weights.safetensors";
  return text_of(std::filesystem::exists(lokr) ? lokr : folder + "/adapter/adapter_model.safetensors");
}

/// Checkpoint folder whose name starts with `begin`.
inline std::string checkpoint(const TrainingOptions& options, const std::string& begin) {
  for (const auto& entry : std::filesystem::directory_iterator(options.output_directory + "/checkpoints")) {
    if (entry.path().filename().string().rfind(begin, 0) == 0) return entry.path().string();
  }
  throw std::runtime_error("there is no checkpoint " + begin);
}

}  // namespace carillon::test
