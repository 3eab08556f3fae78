#include "core/checkpoint/checkpoint.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <mutex>
#include <set>
#include <string_view>

#include "core/checkpoint/json.h"
#include "core/checkpoint/tensor_file.h"
#include "core/checkpoint/tensor_names.h"
#include "core/checkpoint/torch_file.h"
#include "core/runtime/error.h"
#include "kernels/linear.h"

namespace carillon {

namespace fs = std::filesystem;

struct Checkpoint::State {
  struct Entry {
    std::shared_ptr<const TensorFile> file;
    std::string stored_name;
  };
  std::string path;
  bool is_file = false;
  std::map<std::string, Entry> entries;  // canonical name to entry
  std::mutex mutex;                      // protects `used`
  std::set<std::string> used;

  void add(const std::string& canonical, const std::shared_ptr<const TensorFile>& file, const std::string& stored) {
    if (!entries.emplace(canonical, Entry{file, stored}).second) {
      fail(ErrorCode::kBadCheckpoint, path + ": tensor '" + canonical + "' is stored twice; the second is '" +
                                          stored + "' in " + file->path());
    }
  }

  /// Adds each tensor of a file if its name begins with `source.prefix`.
  void add_file(const ModelSource& source) {
    const auto file = std::make_shared<const Safetensors>(source.path);
    const bool is_stable_audio = file->has(source.prefix + kStableAudioSign);
    for (const auto& stored : file->names()) {
      if (!stored.starts_with(source.prefix)) continue;
      const std::string name = stored.substr(source.prefix.size());
      add(is_stable_audio ? canonical_name_from_stable_audio(name) : canonical_name(name), file, stored);
    }
  }
};

namespace {

/// Calls add(file, stored name) for every tensor of the sharded checkpoint with the index `index_path`.
template <typename Add>
void add_shards(const fs::path& index_path, const Add& add) {
  const Json index = Json::read_file(index_path.string());
  std::map<std::string, std::shared_ptr<const Safetensors>> shards;
  for (const auto& [name, shard] : index.at("weight_map").as_object()) {
    const std::string& file_name = shard.as_string();
    if (fs::path(file_name).filename() != file_name) {
      fail(ErrorCode::kBadCheckpoint, index_path.string() + ": shard '" + file_name + "' is not a plain file name");
    }
    auto& file = shards[file_name];
    if (!file) file = std::make_shared<const Safetensors>((index_path.parent_path() / file_name).string());
    if (!file->has(name)) {
      fail(ErrorCode::kBadCheckpoint,
           file->path() + ": there is no tensor '" + name + "', although " + index_path.string() + " lists it");
    }
    add(file, name);
  }
}

/// The GGUF file of `directory`, if it has one. Throws if there are several.
std::optional<fs::path> gguf_file(const fs::path& directory) {
  std::vector<fs::path> found;
  std::error_code ignored;  // an unreadable folder counts as empty
  for (const auto& item : fs::directory_iterator(directory, ignored)) {
    if (item.path().extension() == ".gguf") found.push_back(item.path());
  }
  if (found.size() > 1) {
    std::sort(found.begin(), found.end());
    fail(ErrorCode::kBadCheckpoint, directory.string() + ": more than one GGUF file, keep only one: " +
                                        found[0].filename().string() + ", " + found[1].filename().string());
  }
  return found.empty() ? std::nullopt : std::optional(found[0]);
}

/// Calls add(file, stored name) for every tensor of `directory`. Returns false if the directory has no weights.
template <typename Add>
bool add_directory(const fs::path& directory, const Add& add) {
  for (const char* stem : {"model", "diffusion_pytorch_model"}) {
    const fs::path single = directory / (std::string(stem) + ".safetensors");
    const fs::path index = directory / (std::string(stem) + ".safetensors.index.json");
    if (fs::exists(single)) {
      const auto file = std::make_shared<const Safetensors>(single.string());
      for (const auto& name : file->names()) add(file, name);
      return true;
    }
    if (fs::exists(index)) {
      add_shards(index, add);
      return true;
    }
  }
  const auto gguf = gguf_file(directory);
  if (!gguf) return false;
  const auto file = std::make_shared<const Gguf>(gguf->string());
  for (const auto& name : file->names()) add(file, name);
  return true;
}

}  // namespace

Checkpoint Checkpoint::open(const ModelSource& source) {
  Checkpoint checkpoint;
  checkpoint.state_ = std::make_shared<State>();
  State& state = *checkpoint.state_;
  state.path = source.path;
  state.is_file = source.is_file();
  if (source.is_file()) {
    state.add_file(source);
    return checkpoint;
  }
  const std::string& directory = source.path;
  const auto add = [&](const auto& file, const std::string& stored) {
    state.add(canonical_name(stored), file, stored);
  };
  if (add_directory(directory, add)) return checkpoint;

  if (!fs::is_directory(fs::path(directory) / kDiffusersParts[0])) {
    fail(ErrorCode::kBadCheckpoint,
         directory +
             ": no weights here (looked for model.safetensors, diffusion_pytorch_model.safetensors, their "
             ".index.json, a .gguf file, and the sub-folders of a diffusers model)");
  }
  for (const std::string part : kDiffusersParts) {
    const auto add_part = [&](const auto& file, const std::string& stored) {
      state.add(canonical_name_from_diffusers(part, stored), file, stored);
    };
    if (!add_directory(fs::path(directory) / part, add_part)) {
      fail(ErrorCode::kBadCheckpoint,
           directory + ": sub-folder '" + part + "' of the diffusers model holds no weights");
    }
  }
  return checkpoint;
}

const std::string& Checkpoint::path() const { return state_->path; }

bool Checkpoint::is_file() const { return state_->is_file; }

Weights Checkpoint::weights(const Placement& placement) const { return Weights(state_, placement); }

void Checkpoint::require_memory(const Placement& placement) const {
  const double of_dtype = static_cast<double>(c10::elementSize(placement.dtype));
  // Minimum bytes per weight in memory. Weights that stay in their stored type have at least 2 bytes each; only GGUF
  // files store smaller ones.
  const auto bytes_each = [&](const TensorFile& file) {
    if (placement.weights == WeightForm::kInt4 ||
        (placement.weights == WeightForm::kStored && file.drops_leading_ones()))
      return 0.5;
    if (placement.weights == WeightForm::kInt8) return 1.0;
    return placement.weights == WeightForm::kStored && placement.device.is_cpu() ? 2.0 : of_dtype;
  };
  double needed = 0;
  for (const auto& [name, entry] : state_->entries) {
    needed +=
        bytes_each(*entry.file) * static_cast<double>(c10::multiply_integers(entry.file->shape(entry.stored_name)));
  }
  const auto available = static_cast<double>(available_memory(placement.device));
  if (needed <= available) return;
  char sizes[96];
  std::snprintf(sizes, sizeof sizes, "take at least %.1f GB, and %s has %.1f GB", needed / 1e9,
                placement.device.str().c_str(), available / 1e9);
  fail(ErrorCode::kOutOfMemory, path() + ": the weights " + sizes +
                                    ": choose a smaller model, set SVC_QUANTIZATION to int8 or int4, or free memory " +
                                    "on that device");
}

std::vector<std::string> Checkpoint::unused() const {
  constexpr std::string_view kRotaryBuffer = "rotary_emb.inv_freq";
  std::vector<std::string> names;
  const std::lock_guard lock(state_->mutex);
  for (const auto& [name, entry] : state_->entries) {
    if (!name.ends_with(kRotaryBuffer) && state_->used.count(name) == 0) names.push_back(name);
  }
  return names;
}

Weights Weights::sub(const std::string& name) const {
  Weights weights = *this;
  weights.prefix_ += name + ".";
  return weights;
}

Weights Weights::unquantized(at::ScalarType dtype) const {
  Weights weights = *this;
  weights.placement_ = {placement_.device, dtype};
  return weights;
}

Weights Weights::at_least_int8() const {
  Weights weights = *this;
  if (placement_.weights == WeightForm::kInt4) weights.placement_.weights = WeightForm::kInt8;
  return weights;
}

Weights Weights::for_decoding() const {
  Weights weights = *this;
  weights.copies_fused_ = true;
  return weights;
}

kernels::Matrix Weights::matrix(const std::string& name, int64_t outputs, int64_t columns) const {
  if (placement_.weights == WeightForm::kStored) {
    const auto [file, stored_name] = locate(name);
    check_shape(name, file.shape(stored_name), {outputs, columns});
    const auto codes = file.codes(stored_name);
    if (codes) return {upload(codes->data, placement_.device), upload(codes->scales, placement_.device)};
  }
  const at::Tensor weight = stored(name, {outputs, columns});
  const auto dense = [&] { return upload(weight.to(placement_.dtype), placement_.device); };
  const auto codes = [&](kernels::Quantization quantization) -> kernels::Matrix {
    const kernels::Matrix matrix = kernels::quantize(upload(weight, placement_.device), quantization);
    return matrix.is_quantized() ? matrix : dense();
  };
  switch (placement_.weights) {
    case WeightForm::kInt8:
      return codes(kernels::Quantization::kInt8);
    case WeightForm::kInt4:
      return codes(kernels::Quantization::kInt4);
    case WeightForm::kStored:
      return kernels::is_stored_form_fast(weight, placement_.dtype, placement_.device) ? weight : dense();
    case WeightForm::kDense:
      break;
  }
  return dense();
}

bool Weights::is_mapped(const kernels::Matrix& matrix, const std::string& name) const {
  return !matrix.is_quantized() && matrix.data.is_cpu() &&
         matrix.data.const_data_ptr() == stored(name).const_data_ptr();
}

bool Weights::has(const std::string& name) const { return state_->entries.count(prefix_ + name) != 0; }

Weights::StoredTensor Weights::locate(const std::string& name) const {
  const auto entry = state_->entries.find(prefix_ + name);
  if (entry == state_->entries.end()) {
    fail(ErrorCode::kBadCheckpoint, state_->path + ": tensor '" + prefix_ + name + "' is missing");
  }
  const std::lock_guard lock(state_->mutex);
  state_->used.insert(entry->first);
  return {*entry->second.file, entry->second.stored_name};
}

at::Tensor Weights::stored(const std::string& name) const {
  const auto [file, stored_name] = locate(name);
  return file.tensor(stored_name);
}

at::Tensor Weights::stored(const std::string& name, at::IntArrayRef shape) const {
  const at::Tensor tensor = stored(name);
  check_shape(name, tensor.sizes(), shape);
  return tensor.view(shape);
}

void Weights::check_shape(const std::string& name, at::IntArrayRef found, at::IntArrayRef expected) const {
  const auto without_leading_ones = [](at::IntArrayRef shape) {
    return shape.slice(static_cast<size_t>(std::find_if(shape.begin(), shape.end(), [](int64_t n) { return n != 1; }) -
                                           shape.begin()));
  };
  const bool drops_ones = state_->entries.at(prefix_ + name).file->drops_leading_ones();
  if (drops_ones ? without_leading_ones(found) != without_leading_ones(expected) : found != expected) {
    fail(ErrorCode::kBadCheckpoint, state_->path + ": tensor '" + prefix_ + name + "' has shape " +
                                        shape_text(found) + ", expected " + shape_text(expected));
  }
}

at::Tensor Weights::get(const std::string& name, at::IntArrayRef shape, std::optional<at::ScalarType> dtype) const {
  return upload(stored(name, shape).to(dtype.value_or(placement_.dtype)), placement_.device);
}

std::vector<int64_t> Weights::shape(const std::string& name) const { return stored(name).sizes().vec(); }

namespace {

constexpr const char* kBuffer = "silence_latent";  // in the diffusers condition encoder, [1, T, C]

/// Reads silence_latent.pt, which stores the latents as [1, C, T].
at::Tensor read_silence_file(const std::string& path, int64_t channels) {
  const at::Tensor stored = TorchFile(path).tensor(TorchFile::kTopTensor);
  if (stored.dim() != 3 || stored.size(0) != 1 || stored.size(1) != channels) {
    fail(ErrorCode::kBadCheckpoint, path + ": the tensor has shape " + shape_text(stored.sizes()) + ", expected [1, " +
                                        std::to_string(channels) + ", frames]");
  }
  return stored.transpose(1, 2).to(at::kFloat).contiguous();
}

}  // namespace

at::Tensor read_silence_latent(const Checkpoint& checkpoint, int64_t channels) {
  const auto weights = checkpoint.weights(Placement{});
  if (weights.has(kBuffer)) {
    const auto shape = weights.shape(kBuffer);
    if (shape.size() == 2) return weights.get(kBuffer, {shape[0], channels}).unsqueeze(0);  // GGUF drops dimension 0
    if (shape.size() != 3) {
      fail(ErrorCode::kBadCheckpoint, checkpoint.path() + ": tensor 'silence_latent' is not [1, T, C]");
    }
    return weights.get(kBuffer, {1, shape[1], channels}).contiguous();
  }
  const fs::path place = checkpoint.path();
  const bool is_file = checkpoint.is_file();
  const fs::path path = (is_file ? place.parent_path() : place) / "silence_latent.pt";
  return is_file && !fs::exists(path) ? at::Tensor() : read_silence_file(path.string(), channels);
}

}  // namespace carillon
