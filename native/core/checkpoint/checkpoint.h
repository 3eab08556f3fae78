#pragma once
#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/checkpoint/model_source.h"
#include "core/runtime/device.h"
#include "kernels/matrix.h"

namespace carillon {

class TensorFile;
class Weights;

/// Sub-folders of a DiT checkpoint in the diffusers layout.
inline constexpr const char* kDiffusersParts[] = {"transformer", "condition_encoder", "audio_tokenizer",
                                                  "audio_token_detokenizer"};

/// Tensors of one model by canonical name. That is the name in the original ACE-Step layout
/// (`decoder.layers.0.self_attn.q_proj.weight`) or, for language models, the name without the leading `model.`.
///
/// A directory is searched for the first of these: model.safetensors, model.safetensors.index.json,
/// diffusion_pytorch_model.safetensors or its index, one .gguf file, the sub-folders of the diffusers layout
/// (transformer, condition_encoder, audio_tokenizer, audio_token_detokenizer). Tensor names of the diffusers layout are
/// converted, and so are the autoencoder names of stable-audio-tools, which ComfyUI files use. Files are mapped once
/// and stay mapped as long as a tensor uses them. Copies of a Checkpoint share their state.
class Checkpoint {
 public:
  /// Throws kBadCheckpoint if weights are missing, a shard is missing or damaged, or an indexed tensor is absent.
  static Checkpoint open(const ModelSource& source);

  /// Path of the directory or file.
  const std::string& path() const;
  bool is_file() const;
  Weights weights(const Placement& placement) const;
  /// Throws kOutOfMemory before loading if the tensors exceed the available memory.
  void require_memory(const Placement& placement) const;

  /// Sorted names of tensors that no loader has read. `rotary_emb.inv_freq` is omitted.
  std::vector<std::string> unused() const;

 private:
  friend class Weights;
  struct State;
  std::shared_ptr<State> state_;
};

/// The tensors of a checkpoint whose names start with a prefix, and the placement (device and dtype) to load them with.
/// The `load` functions of modules read tensors from it. Cheap to copy.
class Weights {
 public:
  /// The tensors whose names continue with `name.` after the prefix.
  Weights sub(const std::string& name) const;
  /// The same tensors without quantization, for a module whose dtype differs from the model's.
  Weights unquantized(at::ScalarType dtype) const;
  /// The same tensors with 8-bit instead of 4-bit codes, for tables whose rounding affects every token.
  Weights at_least_int8() const;
  /// The same tensors for a language model. Fused projections are copied to new memory, which has huge pages, whereas
  /// many file systems map 4 KiB pages. From 4 KiB pages a decoding step is up to 1.6 times slower, because it reads
  /// every weight for only a few rows.
  Weights for_decoding() const;
  bool copies_fused() const { return copies_fused_; }
  bool has(const std::string& name) const;
  /// Whether `matrix`, which was loaded as the weight `name`, is a view of the mapped file.
  bool is_mapped(const kernels::Matrix& matrix, const std::string& name) const;

  /// Tensor `name` of exactly `shape`, on the placement's device in its dtype (or `dtype`). On the CPU a tensor stored
  /// in that dtype is a view of the mapped file: never write to it. Throws kBadCheckpoint with directory, tensor,
  /// expected and found shape.
  at::Tensor get(const std::string& name, at::IntArrayRef shape,
                 std::optional<at::ScalarType> dtype = std::nullopt) const;

  /// Weight [outputs, columns] of a projection in the placement's storage type. A weight that needs no conversion is a
  /// view of the mapped file or has the codes of a GGUF file.
  kernels::Matrix matrix(const std::string& name, int64_t outputs, int64_t columns) const;

  /// Stored shape, for tensors whose sizes are not in the config.
  std::vector<int64_t> shape(const std::string& name) const;

  const Placement& placement() const { return placement_; }

 private:
  friend class Checkpoint;
  Weights(std::shared_ptr<Checkpoint::State> state, const Placement& placement)
      : state_(std::move(state)), placement_(placement) {}

  /// File that contains a tensor, and the tensor's name in it.
  struct StoredTensor {
    const TensorFile& file;
    const std::string& name;
  };
  /// Finds a tensor in the files and marks it as used.
  StoredTensor locate(const std::string& name) const;
  /// Tensor as stored: a view of the mapped file.
  at::Tensor stored(const std::string& name) const;
  /// Tensor as stored, after checking its shape.
  at::Tensor stored(const std::string& name, at::IntArrayRef shape) const;
  void check_shape(const std::string& name, at::IntArrayRef found, at::IntArrayRef expected) const;

  std::shared_ptr<Checkpoint::State> state_;
  Placement placement_;
  std::string prefix_;  // "" or ending in '.'
  bool copies_fused_ = false;
};

/// VAE latents of silence, [1, T, C] float32 on the CPU, T frames from the start of a song. They depend on the
/// position, so always slice from frame 0. Read from `silence_latent.pt` (zip archive of [1, C, T], float32 or
/// bfloat16, C = `channels`) in a directory or beside a file, or from the `silence_latent` buffer of the diffusers
/// condition encoder. Undefined if the checkpoint has neither, like single files of ComfyUI.
at::Tensor read_silence_latent(const Checkpoint& checkpoint, int64_t channels);

}  // namespace carillon
