#pragma once
#include <vector>

#include "core/checkpoint/config.h"
#include "core/checkpoint/parameters.h"

namespace carillon::pretraining {

/// The weight of a strided convolution of kernel 2 s that is a lapped cosine transform (Princen and Bradley, 1986) of s
/// bins, of every one of `before` bands: what it computes of `bands`, counted from 0 Hz, [bands, before, 2 stride].
at::Tensor lapped_matrix(int64_t before, const std::vector<int64_t>& bands, int64_t stride);

/// A cascade of such transforms, one a stride, as one bank of filters: of the lowest `count` bands, [count, samples].
at::Tensor lapped_filters(const std::vector<int64_t>& strides, int64_t count);

/// Both channels' middle, (left + right) / sqrt(2), through such filters: audio [B, 2, frames * product of the strides]
/// -> [B, count, frames].
at::Tensor lapped_transform(const at::Tensor& audio, const at::Tensor& filters, const std::vector<int64_t>& strides);

/// The weight of a convolution of kernel 7 from left and right to middle and side, its first channels: [channels, 2,
/// 7].
at::Tensor middle_and_side_weight(int64_t channels);

/// 0 .. count - 1.
std::vector<int64_t> lowest(int64_t count);

/// Gives a decoder that has no weights yet those of the way back, of middle and side: a transposed convolution is the
/// inverse transform. Low tones sound from the first step; the residual units learn the rest. Those at the sampling
/// rate, which cost most, are given zeros: they are skipped (core/vae/networks.h) and never learn. So are the columns
/// of the clock.
void begin_decoder(Parameters& parameters, const VaeConfig& config, const at::Tensor& wave_deviations);

}  // namespace carillon::pretraining
