#pragma once
#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/runtime/device.h"
#include "kernels/matrix.h"

namespace carillon {

class TensorFile;
class Weights;

/// The parts of a DiT checkpoint in the diffusers layout, one sub-folder each.
inline constexpr const char* kDiffusersParts[] = {"transformer", "condition_encoder", "audio_tokenizer",
                                                  "audio_token_detokenizer"};

/// The tensors of one checkpoint directory behind canonical names: those of the original ACE-Step layout
/// (`decoder.layers.0.self_attn.q_proj.weight`), language models without the leading `model.`.
///
/// A directory holds, in this order of preference, model.safetensors, model.safetensors.index.json,
/// diffusion_pytorch_model.safetensors or its index, one .gguf file; or the sub-folders of the diffusers layout
/// (transformer, condition_encoder, audio_tokenizer, audio_token_detokenizer), which are renamed.
/// Files are mapped once and stay mapped while any tensor on them lives. Copies share their state.
class Checkpoint {
 public:
  /// Throws kBadCheckpoint: no weights there, a shard missing or damaged, an indexed tensor absent.
  static Checkpoint open(const std::string& directory);

  const std::string& directory() const;
  Weights weights(const Placement& placement) const;
  /// Throws kOutOfMemory where all tensors together take more memory than there is: before any of them is loaded.
  void require_memory(const Placement& placement) const;

  /// Names that no Weights handed out yet, sorted: what a loader did not expect. `rotary_emb.inv_freq` is left out.
  std::vector<std::string> unused() const;

 private:
  friend class Weights;
  struct State;
  std::shared_ptr<State> state_;
};

/// The tensors below one prefix, placed: what a module's `load` reads. Cheap to copy.
class Weights {
 public:
  /// The tensors below `name.`.
  Weights sub(const std::string& name) const;
  /// The same tensors, all dense, for a module that keeps another dtype than its model's.
  Weights as(at::ScalarType dtype) const;
  /// The same tensors, codes of 8 bits in place of 4: for tables whose rounding is heard in every token.
  Weights finer() const;
  bool has(const std::string& name) const;

  /// The tensor `name`, which must have exactly `shape`, on the placement's device in its dtype (or `dtype`).
  /// On the CPU a tensor already of that dtype is a view on the mapped file: never write to it.
  /// Throws kBadCheckpoint naming directory, tensor, expected and found shape.
  at::Tensor get(const std::string& name, at::IntArrayRef shape,
                 std::optional<at::ScalarType> dtype = std::nullopt) const;

  /// The weight [outputs, depth] of a projection in the placement's form. One that stays as it is stored is a view on the
  /// mapped file, or has the codes of a GGUF file.
  kernels::Matrix matrix(const std::string& name, int64_t outputs, int64_t depth) const;

  /// The shape as stored, for the few tensors whose sizes the config does not give.
  std::vector<int64_t> shape(const std::string& name) const;

  const Placement& placement() const { return placement_; }

 private:
  friend class Checkpoint;
  Weights(std::shared_ptr<Checkpoint::State> state, Placement placement, std::string prefix)
      : state_(std::move(state)), placement_(placement), prefix_(std::move(prefix)) {}

  /// The file that holds the tensor, and its name there; marks it used.
  struct Place {
    const TensorFile& file;
    const std::string& name;
  };
  Place place(const std::string& name) const;
  /// As stored, on the map.
  at::Tensor stored(const std::string& name) const;
  /// The same of a known shape, or the leaf of a model in training.
  at::Tensor stored(const std::string& name, at::IntArrayRef shape) const;
  void check_shape(const std::string& name, at::IntArrayRef found, at::IntArrayRef expected) const;

  std::shared_ptr<Checkpoint::State> state_;
  Placement placement_;
  std::string prefix_;  // "" or ending in '.'
};

/// The VAE latent of silence, [1, T, C] float32 on the CPU, T frames from the start of a song. It is position
/// dependent: always slice from frame 0. Read from `silence_latent.pt` (a zip archive stored as [1, C, T],
/// float32 or bfloat16, C = `channels`, T from its size) or from the `silence_latent` buffer of the diffusers condition encoder.
at::Tensor read_silence_latent(const Checkpoint& checkpoint, int64_t channels);

}  // namespace carillon
