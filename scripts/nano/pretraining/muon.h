#pragma once
#include <ATen/core/Tensor.h>

#include <string>

namespace carillon::pretraining {

/// Whether a weight learns by Muon (Jordan et al., 2024): the matrices of attention and feed-forward layers do. Lookup
/// tables, convolutions, norms and what embeds times learn by AdamW.
bool learns_by_muon(const std::string& name, const at::Tensor& weight);

/// The step that Muon takes for a momentum [rows, columns]: the matrix with its singular vectors and singular values
/// near 1, by five Newton-Schulz iterations in `dtype`, at the root mean square 0.2 that AdamW's steps have (Liu et
/// al., 2025), so that both share a learning rate.
at::Tensor muon_step(const at::Tensor& momentum, at::ScalarType dtype);

}  // namespace carillon::pretraining
