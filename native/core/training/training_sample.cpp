#include "core/training/training_sample.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <filesystem>
#include <functional>

#include "core/checkpoint/tensor_file.h"
#include "core/diffusion/noise.h"
#include "core/runtime/error.h"

namespace carillon {
namespace {

constexpr const char* kTargetLatents = "target_latents";
constexpr const char* kAttentionMask = "attention_mask";
constexpr const char* kEncoderHiddenStates = "encoder_hidden_states";
constexpr const char* kEncoderAttentionMask = "encoder_attention_mask";
constexpr const char* kContextLatents = "context_latents";
constexpr const char* kMetadata = "metadata";

[[noreturn]] void bad(const std::string& path, const char* key, const std::string& what) {
  fail(ErrorCode::kBadCheckpoint, path + ": " + key + " " + what);
}

/// An open sample file, .safetensors or .pt.
struct SampleFile {
  std::function<at::Tensor(const char* key)> tensor;  // returns a copy
  TorchMetadata metadata;
};

SampleFile open_safetensors(const std::string& path) {
  const auto file = Safetensors(path);
  const auto metadata = file.metadata().find(kMetadata);
  return {[file](const char* key) {
            const at::Tensor stored = file.tensor(key);
            // The file may contain bytes other than 0 and 1. Reading such a byte as a C++ bool is undefined behaviour.
            return stored.scalar_type() == at::kBool ? stored.view(at::kByte).ne(0) : stored.clone();
          },
          metadata == file.metadata().end() ? TorchMetadata()
                                            : sample_metadata(Json::parse(metadata->second, path + " (metadata)"))};
}

SampleFile open_sample(const std::string& path) {
  if (std::filesystem::path(path).extension() == ".safetensors") return open_safetensors(path);
  const auto file = TorchFile(path);
  return {[file](const char* key) { return file.tensor(key); }, file.metadata_at(kMetadata)};
}

at::Tensor read_rows(const SampleFile& file, const std::string& path, const char* key) {
  const at::Tensor stored = file.tensor(key);
  if (!stored.is_floating_point()) {
    bad(path, key, "has type " + std::string(at::toString(stored.scalar_type())) + ", expected floating point");
  }
  if (stored.dim() != 2) bad(path, key, "has shape " + shape_text(stored.sizes()) + ", expected two dimensions");
  if (stored.numel() == 0) bad(path, key, "is empty");
  const at::Tensor rows = stored.to(at::kFloat);
  if (!rows.isfinite().all().item<bool>()) bad(path, key, "contains a value that is not finite");
  return rows;
}

/// Reads a mask. It may be stored as bool, as integers, or in the dtype of the latents.
at::Tensor read_mask(const SampleFile& file, const std::string& path, const char* key, const at::Tensor& rows) {
  const at::Tensor stored = file.tensor(key);
  if (stored.dim() != 1 || stored.size(0) != rows.size(0)) {
    bad(path, key, "has shape " + shape_text(stored.sizes()) + ", expected [" + std::to_string(rows.size(0)) + "]");
  }
  return stored.ne(0);
}

}  // namespace

TorchMetadata sample_metadata(const Json& object) {
  TorchMetadata result;
  for (const auto& [name, value] : object.as_object()) {
    if (value.is_null()) result[name] = nullptr;
    if (value.is_bool()) result[name] = value.as_bool();
    if (value.is_integer()) result[name] = value.as_int();
    if (value.is_string()) result[name] = value.as_string();
  }
  return result;
}

TrainingSample read_sample(const std::string& path) {
  const SampleFile file = open_sample(path);
  TrainingSample sample;
  sample.target_latents = read_rows(file, path, kTargetLatents);
  sample.attention_mask = read_mask(file, path, kAttentionMask, sample.target_latents);
  sample.encoder_hidden_states = read_rows(file, path, kEncoderHiddenStates);
  sample.encoder_attention_mask = read_mask(file, path, kEncoderAttentionMask, sample.encoder_hidden_states);
  sample.context_latents = read_rows(file, path, kContextLatents);
  const int64_t frames = sample.target_latents.size(0), channels = sample.target_latents.size(1);
  if (sample.context_latents.size(0) != frames || sample.context_latents.size(1) != 2 * channels) {
    bad(path, kContextLatents,
        "has shape " + shape_text(sample.context_latents.sizes()) + ", expected [" + std::to_string(frames) + ", " +
            std::to_string(2 * channels) + "]");
  }
  sample.metadata = file.metadata;
  return sample;
}

void drop_condition_padding(TrainingSample& sample, const std::string& path) {
  const at::Tensor real = sample.encoder_attention_mask.nonzero().view({-1});
  if (real.numel() == 0) bad(path, kEncoderAttentionMask, "has no real token: trim_condition would leave nothing");
  sample.encoder_hidden_states = sample.encoder_hidden_states.index_select(0, real);
  sample.encoder_attention_mask = sample.encoder_attention_mask.index_select(0, real);
}

void check_sample(const TrainingSample& sample, const DitConfig& model, const std::string& path) {
  const auto require_width = [&](const char* key, const at::Tensor& rows, int64_t expected) {
    if (rows.size(1) == expected) return;
    bad(path, key, "has width " + std::to_string(rows.size(1)) + ", but the model needs " + std::to_string(expected));
  };
  require_width(kTargetLatents, sample.target_latents, model.audio_acoustic_hidden_dim);
  require_width(kEncoderHiddenStates, sample.encoder_hidden_states, model.encoder_hidden_size);
  require_width(kContextLatents, sample.context_latents, 2 * model.audio_acoustic_hidden_dim);
}

void write_sample(const std::string& path, const TrainingSample& sample) {
  write_torch_file(path,
                   {{kTargetLatents, sample.target_latents},
                    {kAttentionMask, sample.attention_mask.to(sample.target_latents.scalar_type())},
                    {kEncoderHiddenStates, sample.encoder_hidden_states},
                    {kEncoderAttentionMask, sample.encoder_attention_mask},
                    {kContextLatents, sample.context_latents}},
                   kMetadata, sample.metadata);
}

namespace {

/// The FNV-1a hash of the audio samples (http://www.isthe.com/chongo/tech/comp/fnv), 32 bits at a time.
uint64_t hash_of(const at::Tensor& audio) {
  const at::Tensor dense = audio.contiguous();
  const auto* const words = static_cast<const uint32_t*>(dense.const_data_ptr());
  uint64_t hash = 0xcbf29ce484222325;
  for (int64_t i = 0; i < dense.numel(); ++i) hash = (hash ^ words[i]) * 0x100000001b3;
  return hash;
}

at::Tensor draw(const Vae::Posterior& posterior, uint64_t seed) {
  return posterior.mean + posterior.std * PhiloxStream(seed).normal(posterior.mean.sizes());
}

}  // namespace

TrainingSample prepare_sample(Renderer& renderer, const PreparationJob& job, const Control& control) {
  const c10::InferenceMode inference;
  const Vae::Posterior posterior = renderer.encode_posterior(job.audio, control);
  TrainingSample sample;
  sample.target_latents = draw(posterior, hash_of(job.audio))[0].t().contiguous();
  if (!sample.target_latents.isfinite().all().item<bool>()) {
    fail(ErrorCode::kNotFinite, "the latents of the audio contain a value that is not finite");
  }
  const int64_t frames = sample.target_latents.size(0);
  sample.attention_mask = at::ones({frames}, at::kBool);
  sample.context_latents = renderer.silent_context(frames, control)[0].cpu();
  sample.encoder_hidden_states = renderer.encode_conditions(job.prompts, at::Tensor(), control)[0].cpu();
  sample.encoder_attention_mask = at::ones({sample.encoder_hidden_states.size(0)}, at::kBool);
  sample.metadata = job.metadata;
  return sample;
}

}  // namespace carillon
