#pragma once
#include <vector>

#include "core/checkpoint/config.h"
#include "core/checkpoint/parameters.h"
#include "pretraining/latent_space.h"

namespace carillon::pretraining {

/// Of the encoder, the blocks that stay a lapped transform of the middle: the others learn.
inline constexpr size_t kExactBlocks = 2;
std::vector<int64_t> exact_strides(const VaeConfig& config);
/// How many bands they give: half of the channels, so that there is room to say how loud each of them is.
int64_t exact_bands(const VaeConfig& config);

/// Gives an encoder that has no weights yet those that say what `space` says of `audio` [B, 2, samples], as well as it
/// can be said without learning by gradients. The waves go through a cascade of lapped transforms and are exact. The
/// units of the last blocks square the sine of every band at three frequencies 12 dB apart: where one no longer grows
/// with the level, the next still does, and their sum is about a logarithm. From such sums the last convolutions tell
/// the structure, with the weights of least squares. Throws kBadArgument unless the encoder has four blocks.
void begin_encoder(Parameters& parameters, const VaeConfig& config, const LatentSpace& space, const at::Tensor& audio);

}  // namespace carillon::pretraining
