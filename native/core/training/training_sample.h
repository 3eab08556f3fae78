#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "core/checkpoint/config.h"
#include "core/checkpoint/json.h"
#include "core/checkpoint/torch_file.h"
#include "core/tasks/renderer.h"

namespace carillon {

/// A training sample, contiguous on the CPU: T latent frames, L condition tokens, C latent channels, D condition width.
struct TrainingSample {
  at::Tensor target_latents;          // [T, C] floating
  at::Tensor attention_mask;          // [T] bool, true for real frames
  at::Tensor encoder_hidden_states;   // [L, D] floating
  at::Tensor encoder_attention_mask;  // [L] bool, true for real tokens
  at::Tensor context_latents;         // [T, 2 C] floating: source latents, then chunk mask
  TorchMetadata metadata;             // metadata of the file
};

/// The metadata of a sample from a JSON object. Values are dropped if TorchMetadata cannot hold their type.
TorchMetadata sample_metadata(const Json& object);

/// Reads a sample file. A `.pt` may come from any trainer of this model family; code in it is not executed. A
/// `.safetensors` has the same tensors, and a JSON object `metadata` in its header. Floating tensors become float32.
///
/// Throws kBadCheckpoint with the file and key: for a damaged or foreign file, a missing key, mismatched ranks or
/// lengths, or a value that is not finite.
TrainingSample read_sample(const std::string& path);

/// Removes the condition tokens that encoder_attention_mask marks as padding. Throws kBadCheckpoint if all tokens are
/// padding. The message names `path`, the file of the sample.
void drop_condition_padding(TrainingSample& sample, const std::string& path);

/// Throws kBadCheckpoint if a tensor's width does not fit the model. The message names the tensor's key and `path`, the
/// file of the sample.
void check_sample(const TrainingSample& sample, const DitConfig& model, const std::string& path);

/// Atomically writes a sample file for Python's `torch.load(weights_only=True)`. attention_mask gets the dtype of
/// target_latents, as in other trainers; other tensors keep their dtypes. Throws kBadArgument for an integer beyond 32
/// bits, and kStorage if writing fails.
void write_sample(const std::string& path, const TrainingSample& sample);

/// A piece of music and its prompts.
struct PreparationJob {
  PromptIds prompts;
  at::Tensor audio;     // [channels, samples] float32 at the VAE's sample rate
  TorchMetadata metadata;  // written unchanged
};

/// Makes the training sample of a recording. The condition is encoded as in inference for text2music, without padding
/// and with silence as timbre reference. The context is silence. The target is drawn from the VAE's posterior of the
/// audio, as in the original training of the model. The draw depends only on the audio, so equal audio gives equal
/// files.
///
/// Reports Stage::kConditions. Throws kNotFinite and kCancelled. Throws kBadArgument if the audio is shorter than one
/// frame or longer than the silence table, or if a token is outside the vocabulary.
TrainingSample prepare_sample(Renderer& renderer, const PreparationJob& job, const Control& control);

}  // namespace carillon
