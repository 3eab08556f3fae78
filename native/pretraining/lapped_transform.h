#pragma once
#include "core/checkpoint/config.h"
#include "core/checkpoint/parameters.h"

namespace carillon::pretraining {

/// Gives an autoencoder that has no weights yet those of a transform: middle and side go through a cascade of lapped
/// cosine transforms (Princen and Bradley, 1986), one a stride, whose lowest bins become the latents, and back. A
/// strided convolution of kernel 2 s is such a transform of s bins, the transposed one its inverse, so that bass and
/// chords below about 12.5 Hz a latent channel sound from the first step; the residual units learn the rest. Those at
/// the sampling rate, which cost most, are given zeros: they are skipped (core/vae/networks.h) and never learn.
void begin_as_lapped_transform(Parameters& parameters, const VaeConfig& config);

/// Divides the means of the latents by `deviations` [C], and lets the decoder multiply by them.
void scale_latents(Parameters& parameters, const at::Tensor& deviations);

}  // namespace carillon::pretraining
