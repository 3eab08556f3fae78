#include "core/training/run_files.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <fcntl.h>
#include <torch/optim/adamw.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <regex>

#include "core/checkpoint/file_io.h"
#include "core/checkpoint/json.h"
#include "core/checkpoint/tensor_file.h"
#include "core/runtime/error.h"
#include "core/training/adapter_formats.h"

namespace carillon {

namespace fs = std::filesystem;

namespace {

constexpr const char* kLog = "/logs/metrics.jsonl";

/// Runs `work` and converts filesystem_error to kStorage.
template <typename Work>
void on_disk(const std::string& path, const Work& work) {
  try {
    work();
  } catch (const fs::filesystem_error& error) {
    fail(ErrorCode::kStorage, path + " cannot be written: " + error.code().message());
  }
}

/// Flushes the entries of a folder to disk.
void flush_folder(const fs::path& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  ::fsync(descriptor);
  ::close(descriptor);
}

}  // namespace

RunFiles::RunFiles(const std::string& output_directory, bool is_resumed) : root_(output_directory) {
  const std::string path = root_ + kLog;
  on_disk(path, [&] { fs::create_directories(root_ + "/logs"); });
  // O_NONBLOCK, so that opening does not block if the path is a pipe.
  constexpr int kFlags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  log_ = ::open(path.c_str(), kFlags | (is_resumed ? 0 : O_TRUNC), 0666);
  if (log_ < 0) fail(ErrorCode::kStorage, path + " cannot be written: " + std::strerror(errno));
}

RunFiles::~RunFiles() { ::close(log_); }

std::string RunFiles::publish(const std::string& name, const std::function<void(const std::string& folder)>& fill) {
  // One run at a time writes here, so leftovers in these two folders are from a killed run.
  const fs::path target = fs::path(root_) / name, staging = fs::path(root_) / ".partial",
                 replaced = fs::path(root_) / ".replaced";
  try {
    on_disk(target.string(), [&] {
      fs::remove_all(staging);
      fs::remove_all(replaced);
      fs::create_directories(staging);
      fs::create_directories(target.parent_path());
      fill(staging.string());
      flush_folder(staging);
      if (fs::exists(target)) fs::rename(target, replaced);
      fs::rename(staging, target);
      flush_folder(target.parent_path());
      fs::remove_all(replaced);
    });
  } catch (...) {
    std::error_code ignored;  // only the first error is reported
    fs::remove_all(staging, ignored);
    throw;
  }
  return target.string();
}

void RunFiles::log(const std::string& json) {
  const std::string path = root_ + kLog, line = json + "\n";
  const off_t end = ::lseek(log_, 0, SEEK_END);
  const int error = write_all(log_, line.data(), line.size());
  if (error == 0) return;
  // Removes a partial line, which would corrupt the next line that a resumed run appends.
  std::error_code ignored;  // only the first error is reported
  fs::resize_file(path, static_cast<uintmax_t>(end), ignored);
  fail(ErrorCode::kStorage, path + " cannot be written: " + std::strerror(error));
}

namespace {

constexpr const char* kFormatVersion = "1";

/// FNV-1a, 64 bits.
class Digest {
 public:
  void add(const void* data, size_t size) {
    const auto* bytes = static_cast<const unsigned char*>(data);
    for (size_t i = 0; i < size; ++i) state_ = (state_ ^ bytes[i]) * 0x100000001b3;
  }
  void add(const std::string& text) { add(text.c_str(), text.size() + 1); }
  std::string text() const {
    char digits[17];
    std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(state_));
    return digits;
  }

 private:
  uint64_t state_ = 0xcbf29ce484222325;
};

/// Digest of some elements of each trained projection. Reading all elements would take as long as loading the model.
std::string digest_of_weights(const TrainableAdapter& adapter) {
  constexpr int64_t kElements = 256;
  Digest digest;
  for (const auto& module : adapter.modules()) {
    const at::Tensor flat = module.weight.reshape({-1});
    const int64_t stride = std::max<int64_t>(1, flat.numel() / kElements);
    const at::Tensor some = flat.slice(0, 0, flat.numel(), stride).to(at::kCPU, at::kFloat).contiguous();
    digest.add(module.name);
    digest.add(some.const_data_ptr(), some.nbytes());
  }
  return digest.text();
}

/// The tensors of a training state, by their names in the file.
std::map<std::string, at::Tensor> state_tensors(const TrainableAdapter& adapter, torch::optim::AdamW& optimizer) {
  std::map<std::string, at::Tensor> tensors;
  for (const auto& [name, parameter] : adapter.parameters()) {
    tensors["parameter." + name] = parameter.detach();
    tensors["exp_avg." + name] = adamw_state(optimizer, parameter).exp_avg();
    tensors["exp_avg_sq." + name] = adamw_state(optimizer, parameter).exp_avg_sq();
  }
  return tensors;
}

/// Path of the training state in the folder or its parent; nullopt if there is none.
std::optional<std::string> state_file_of(const std::string& folder) {
  const fs::path root(folder);
  for (const fs::path& place : {root, root.parent_path()}) {
    if (fs::exists(place / kTrainingStateFile)) return (place / kTrainingStateFile).string();
  }
  return std::nullopt;
}

/// Removes the dropout from `design`. Like the learning rate, the dropout may change when a run resumes.
std::string without_dropout(const std::string& design) {
  static const std::regex kDropout(R"re("dropout": [^,}]*, )re");
  return std::regex_replace(design, kDropout, "");
}

}  // namespace

TrainingIdentity TrainingIdentity::of(const TrainingOptions& options, const TrainableAdapter& adapter) {
  Digest samples;
  for (const auto& path : options.samples) samples.add(fs::path(path).filename().string());
  if (options.trim_condition) samples.add("trim_condition");
  return {.adapter = design_json(adapter.design()),
          .weights = digest_of_weights(adapter),
          .order = json_object({{"samples", json_string(samples.text())},
                                {"seed", std::to_string(options.seed)},
                                {"batch_size", std::to_string(options.batch_size)},
                                {"gradient_accumulation", std::to_string(options.gradient_accumulation)}})};
}

bool has_training_state(const std::string& folder) { return state_file_of(folder).has_value(); }

void save_training_state(const std::string& path, const TrainingPosition& position, const TrainingIdentity& identity,
                         const TrainableAdapter& adapter, torch::optim::AdamW& optimizer) {
  const int64_t optimizer_steps = adamw_state(optimizer, adapter.parameters()[0].second).step();
  save_safetensors(path, state_tensors(adapter, optimizer),
                   {{"format_version", kFormatVersion},
                    {"adapter", identity.adapter},
                    {"weights", identity.weights},
                    {"order", identity.order},
                    {"position", json_object({{"epoch", std::to_string(position.epoch)},
                                              {"micro_step", std::to_string(position.batches)},
                                              {"global_step", std::to_string(position.step)},
                                              {"first_step", std::to_string(position.step - optimizer_steps)},
                                              {"epoch_steps", std::to_string(position.epoch_steps)},
                                              {"epoch_loss_sum", json_number(position.epoch_loss_sum)}})}});
}

RestoredTraining restore_training(const std::string& folder, const TrainingIdentity& identity,
                                  const TrainableAdapter& adapter, torch::optim::AdamW& optimizer) {
  const Safetensors file = Safetensors(state_file_of(folder).value());
  const auto text = [&](const char* key) {
    const auto entry = file.metadata().find(key);
    if (entry == file.metadata().end()) {
      fail(ErrorCode::kBadCheckpoint, file.path() + ": the metadata has no '" + key + "'");
    }
    return entry->second;
  };
  const auto require = [&](const std::string& found, const std::string& expected, const std::string& what) {
    if (found == expected) return;
    fail(ErrorCode::kBadArgument,
         file.path() + " cannot be resumed: " + what + " (the file has " + found + ", this run " + expected + ")");
  };
  require(text("format_version"), kFormatVersion, "it was written by another release");
  require(without_dropout(text("adapter")), without_dropout(identity.adapter), "it has another adapter design");
  require(text("weights"), identity.weights, "it was trained on other model weights");

  const auto tensors = state_tensors(adapter, optimizer);
  for (const auto& [name, tensor] : tensors) {
    if (file.shape(name) != tensor.sizes().vec()) {
      fail(ErrorCode::kBadCheckpoint, file.path() + ": the shape of tensor '" + name + "' does not match this run");
    }
  }
  const c10::NoGradGuard no_grad;
  for (auto [name, tensor] : tensors) tensor.copy_(file.tensor(name));

  const Json position = Json::parse(text("position"), file.path() + " (position)");
  RestoredTraining restored{{.epoch = position.get_int("epoch"),
                             .batches = position.get_int("micro_step"),
                             .step = position.get_int("global_step"),
                             .epoch_steps = position.get_int("epoch_steps"),
                             .epoch_loss_sum = position.get_double("epoch_loss_sum")},
                            text("order") == identity.order};
  // A run can start from the adapter of an earlier run. The position then also counts the steps of the earlier run; the
  // optimiser counts only the steps of this run.
  const int64_t optimizer_steps = restored.position.step - position.get_int("first_step", 0);
  for (const auto& [name, parameter] : adapter.parameters()) adamw_state(optimizer, parameter).step(optimizer_steps);
  if (!restored.is_exact) {
    restored.position = restored.position.at_beginning_of(restored.position.epoch);
  }
  return restored;
}

}  // namespace carillon
