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

/// Tensors of one model, by the tensor names of the original ACE-Step layout, such as
/// `decoder.layers.0.self_attn.q_proj.weight`. Language models omit the leading `model.`. Tensor names of diffusers and
/// stable-audio-tools are converted.
///
/// open() reads the first of these that a directory contains: model.safetensors or its index,
/// diffusion_pytorch_model.safetensors or its index, one .gguf file, the sub-folders of the diffusers layout. Files are
/// mapped once, and stay mapped while a tensor uses them. Copies of a Checkpoint share the mapped files.
class Checkpoint {
 public:
  /// Throws kBadCheckpoint if weights are missing, a shard is missing or damaged, or an indexed tensor is absent.
  static Checkpoint open(const ModelSource& source);

  /// Path of the checkpoint: a directory or a file.
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

/// The tensors of a checkpoint that share a name prefix. Modules load their weights from these tensors. The placement
/// sets the device and dtype of loaded tensors. Objects are cheap to copy.
class Weights {
 public:
  /// Returns the tensors of a sub-module. Their prefix is the prefix of these tensors, followed by `name.`.
  Weights sub(const std::string& name) const;
  /// Returns the same tensors without quantization, for a module whose dtype differs from the dtype of the model.
  Weights unquantized(at::ScalarType dtype) const;
  /// Returns the same tensors with 8-bit instead of 4-bit codes, for tables whose rounding affects every token.
  Weights at_least_int8() const;
  /// Returns the same tensors for a language model. Fused projections are copied to memory with huge pages. With the
  /// 4 KiB pages of a mapped file, a decoding step would be up to 1.6 times slower.
  Weights for_decoding() const;
  bool copies_fused() const { return copies_fused_; }
  bool has(const std::string& name) const;
  /// Whether `matrix`, which was loaded as the weight `name`, is a view of the mapped file.
  bool is_mapped(const kernels::Matrix& matrix, const std::string& name) const;

  /// Returns tensor `name` on the placement's device, converted to `dtype` or else to the placement's dtype. On the
  /// CPU, a tensor that needs no conversion is a view of the mapped file: never write to such a tensor. Throws
  /// kBadCheckpoint if the tensor is missing or does not have exactly `shape`.
  at::Tensor get(const std::string& name, at::IntArrayRef shape,
                 std::optional<at::ScalarType> dtype = std::nullopt) const;

  /// Returns the weight [outputs, columns] of a projection in the placement's storage type. A weight that needs no
  /// conversion is a view of the mapped file, or keeps the codes of its GGUF file.
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

/// Reads the VAE latents of silence: [1, T, channels], float32, on the CPU. The latents depend on the position in the
/// song, so always slice from frame 0. The source is the file `silence_latent.pt`, or the buffer `silence_latent` of
/// the diffusers condition encoder. Returns an undefined tensor if the checkpoint has neither.
at::Tensor read_silence_latent(const Checkpoint& checkpoint, int64_t channels);

}  // namespace carillon
