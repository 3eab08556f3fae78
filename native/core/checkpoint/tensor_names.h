#pragma once
#include <string>

namespace carillon {

// Converts tensor names of other layouts to the original ones, which loaders use.

/// Removes one leading `model.`: published language models are saved with and without it.
std::string canonical_name(const std::string& name);

/// The original ACE-Step name of tensor `name` stored in sub-folder `part` of a diffusers directory.
std::string canonical_name_from_diffusers(const std::string& part, const std::string& name);

/// A tensor that identifies an autoencoder in the layout of stable-audio-tools.
inline constexpr const char* kStableAudioSign = "decoder.layers.1.layers.0.alpha";

/// Converts a name of stable-audio-tools, which numbers the layers of an Oobleck autoencoder: a convolution, blocks, a
/// snake and a convolution. Within a block, the three residual units come before (encoder) or after (decoder) the snake
/// and the resampling convolution.
std::string canonical_name_from_stable_audio(const std::string& name);

}  // namespace carillon
