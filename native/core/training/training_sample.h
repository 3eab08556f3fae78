#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "core/checkpoint/config.h"
#include "core/checkpoint/torch_file.h"
#include "core/tasks/renderer.h"

namespace carillon {

/// One piece of music as adapters train on it: T latent frames, L condition tokens, C latent channels, D condition
/// width. On the CPU, contiguous.
struct TrainingSample {
  at::Tensor target_latents;          // [T, C] floating
  at::Tensor attention_mask;          // [T] bool, true for real frames
  at::Tensor encoder_hidden_states;   // [L, D] floating
  at::Tensor encoder_attention_mask;  // [L] bool, true for real tokens
  at::Tensor context_latents;         // [T, 2 C] floating: source latents, then chunk mask
  TorchNotes metadata;                // what the file says of its piece of music beside the tensors
};

struct SampleInfo {
  int64_t frames;            // T
  int64_t condition_tokens;  // L
};

/// Reads a sample file: a `.pt` as any trainer of this model family writes it, nothing in it executed, or a
/// `.safetensors` of the same tensors, `metadata` a JSON object in its own metadata. Floating tensors come as float32,
/// whatever the file holds. Metadata of other types than TorchNotes has is left out.
/// Throws kBadCheckpoint naming file and key: a damaged or foreign file, a key missing, a rank or length that does not
/// fit the others, a value that is not finite.
TrainingSample read_sample(const std::string& path);

/// Leaves out the tokens of the condition that encoder_attention_mask says are padding. Throws kBadCheckpoint naming
/// `path` where that is all of them.
void trim_condition(TrainingSample& sample, const std::string& path);

/// Throws kBadCheckpoint naming `path` and the key where the sample's widths are not those of the model.
void check_sample(const TrainingSample& sample, const DitConfig& model, const std::string& path);

/// Reads and checks one file against a model.
SampleInfo inspect_sample(const std::string& path, const DitConfig& model);

/// Writes a sample file that Python's `torch.load(weights_only=True)` reads; tensors keep their dtypes, and
/// attention_mask takes that of target_latents, as elsewhere. A file at `path` is replaced once the new one is whole.
/// Throws kBadArgument for an integer beyond 32 bits, kStorage where the disk refuses.
void write_sample(const std::string& path, const TrainingSample& sample);

/// A piece of music and its prompts.
struct PreparationJob {
  PromptIds prompts;
  at::Tensor audio;     // [channels, samples] float32 at the VAE's sample rate
  TorchNotes metadata;  // kept as it is
};

/// What an adapter is trained on, as inference would see it: the condition of
/// text2music, of real tokens only and with the timbre of silence; the context of silence; as target the latents of the
/// audio, drawn from the VAE's posterior as they were when the model was trained. The draw depends on nothing but the
/// audio, so the same audio gives the same file.
/// Reports Stage::kConditions. Throws kBadArgument for audio below one frame or beyond the silence table and for a
/// token outside the vocabulary, kNotFinite, kCancelled.
TrainingSample prepare_sample(Renderer& renderer, const PreparationJob& job, const Control& control);

}  // namespace carillon
