#pragma once
#include <string>

namespace carillon {

// Converts tensor names of other layouts to the original ones, which loaders use.

/// Removes one leading `model.`, which the tensor names of only some published language models have.
std::string canonical_name(const std::string& name);

/// The original ACE-Step name of tensor `name` stored in sub-folder `part` of a diffusers directory.
std::string canonical_name_from_diffusers(const std::string& part, const std::string& name);

/// Name of a tensor that identifies an autoencoder in the layout of stable-audio-tools.
inline constexpr const char* kStableAudioSign = "decoder.layers.1.layers.0.alpha";

/// Converts a name of stable-audio-tools, which numbers the layers of an Oobleck autoencoder in this order: a
/// convolution, the blocks, a snake, a convolution. Within a block, the three residual units come before (encoder) or
/// after (decoder) the snake and the resampling convolution.
std::string canonical_name_from_stable_audio(const std::string& name);

}  // namespace carillon
