#pragma once
#include <ATen/core/Tensor.h>

#include <functional>
#include <string>
#include <vector>

#include "core/checkpoint/checkpoint.h"
#include "core/checkpoint/config.h"
#include "core/dit/embedding.h"
#include "core/nn/attention.h"
#include "core/runtime/control.h"

namespace carillon {

/// Shifts, scales and gates for N flow times. The stored scales already include the added 1.
struct Modulation {
  at::Tensor layers;  // [layers, N, 6, H]: shift, scale, gate of attention, then of the MLP
  at::Tensor output;  // [N, 2, H]: shift, scale

  /// Modulation for one timestep, shared by all items of a batch.
  Modulation at(int64_t index) const { return {layers.narrow(1, index, 1), output.narrow(0, index, 1)}; }
};

/// Context part of the DiT's tokens, constant over the steps of a run.
struct ContextTokens {
  at::Tensor tokens;  // [B, S, H]
  nn::Rotary rotary;  // positions 0 .. S - 1
};

/// Keys and values of the cross-attention of each layer, for one set of conditions. Constant over the steps of a run.
struct CrossCache {
  struct Layer {
    nn::CrossAttention::KeysValues conditional;  // for R rows
    at::Tensor unconditional;                    // [1, 1, H], undefined without guidance
  };
  std::vector<Layer> layers;
};

/// Computes the output of a layer from its input. A LayerRunner calls this function in the forward pass. To save
/// memory, the runner may call it again in the backward pass instead of keeping activations. Apart from its input, a
/// layer depends only on leaves of the autograd graph, so gradients can be computed layer by layer.
using LayerFunction = std::function<at::Tensor(const at::Tensor&)>;
using LayerRunner = std::function<at::Tensor(const LayerFunction& layer, const at::Tensor& x)>;

/// One transformer layer: modulated self-attention, cross-attention, modulated MLP.
struct DitLayer {
  nn::RmsNorm self_attn_norm, cross_attn_norm, mlp_norm;
  nn::SelfAttention self_attn;
  nn::CrossAttention cross_attn;
  nn::SwiGlu mlp;
  int64_t window = 0;  // window of self-attention; 0: full attention
  bool one_sided_window = false;

  static DitLayer load(const Weights& weights, const DitConfig& config, int64_t index);

  /// Runs only the self-attention of the layer: x [B, S, H], modulation [1 or B, 6, H] -> [B, S, H].
  at::Tensor self_attended(const at::Tensor& x, const at::Tensor& modulation, const nn::Rotary& rotary) const;
  /// Runs the whole layer: self-attention, cross-attention, MLP.
  at::Tensor operator()(const at::Tensor& x, const at::Tensor& modulation, const nn::Rotary& rotary,
                        const CrossCache::Layer& cross) const;
};

/// A dense projection of the DiT. A Linear may fuse several projections, so a projection is a range of its rows.
struct Projection {
  std::string name;  // for example layers.0.self_attn.q_proj
  nn::Linear* linear;
  int64_t first_row, rows;

  kernels::Matrix weight() const { return linear->rows(first_row, rows); }  // [rows, in]
};

/// The diffusion transformer. It predicts the velocity (noise - data) of a latent state under conditions. Its functions
/// never write to their arguments, so they work with autograd and in inference mode.
class Dit {
 public:
  /// Reads the weights whose names begin with `decoder.`. Reports Stage::kLoad per layer.
  static Dit load(const Weights& weights, const DitConfig& config, const Control& control);

  /// Projections that adapters can change: attention, MLPs, time embeddings and the condition embedder, in the order of
  /// the forward pass. The pointers are valid until this object moves.
  std::vector<Projection> projections();
  /// Recomputes tensors that are derived from weights. Call refresh() after changing the weights of a projection.
  void refresh();

  bool is_turbo() const { return is_turbo_; }
  int64_t latent_channels() const { return latent_channels_; }

  /// Returns the modulation at `times` [N] float32. Both times of mean flow, t and r, are equal.
  Modulation modulate(const at::Tensor& times) const;
  /// Returns the modulation at `times` [N]. `reference_times` [N] are the second times, r, of mean flow.
  Modulation modulate(const at::Tensor& times, const at::Tensor& reference_times) const;

  /// context [B, T, context channels]: source latents, then the chunk mask.
  ContextTokens embed_context(const at::Tensor& context) const;

  /// Computes the cross-attention keys and values of encoder states [B, L, E]. With `null_condition` [1, 1, E], also
  /// computes the attention output of unconditional rows. `encoder_mask` [B, L] bool is true for visible states; an
  /// undefined mask hides nothing.
  CrossCache make_cross_cache(const at::Tensor& encoder_states, const at::Tensor& null_condition = {},
                              const at::Tensor& encoder_mask = {}) const;

  /// Returns the velocity [B, T, C] of a state [B, T, C]. `modulation` is of 1 or B times. If `cross` has R rows, the
  /// first R rows of the state attend to them, and the other rows are unconditional.
  at::Tensor velocity(const at::Tensor& state, const ContextTokens& context, const Modulation& modulation,
                      const CrossCache& cross) const;

  /// Calls `on_weights` with the cross-attention weights [B, S, L] of each of `heads`. The heads must be sorted by
  /// layer. The forward pass ends after the layer of the last head.
  void visit_attention(const std::vector<AttentionHead>& heads, const at::Tensor& state, const ContextTokens& context,
             const Modulation& modulation, const CrossCache& cross,
             const std::function<void(const at::Tensor& weights)>& on_weights) const;

  /// Returns the velocity for training an adapter. Calls `run` for each layer. Each layer computes the keys and values
  /// of `encoder_states` [B, L, E], because the keys and values depend on the adapter. See make_cross_cache for
  /// `encoder_mask`.
  at::Tensor velocity_by_layer(const at::Tensor& state, const ContextTokens& context, const Modulation& modulation,
                               const at::Tensor& encoder_states, const at::Tensor& encoder_mask,
                               const LayerRunner& run) const;

 private:
  at::Tensor output(const at::Tensor& h, const Modulation& modulation, int64_t frames) const;
  Modulation combine(const TimeEmbedding::Output& t, const TimeEmbedding::Output& r) const;

  bool is_turbo_ = false;
  int64_t latent_channels_ = 0;
  int64_t head_dim_ = 0;
  double rope_theta_ = 0;
  PatchEmbedding patch_in_;
  TimeEmbedding time_embed_, time_embed_r_;
  TimeEmbedding::Output zero_interval_;  // output of time_embed_r for t - r = 0
  nn::Linear condition_embedder_;
  std::vector<DitLayer> layers_;
  at::Tensor layer_tables_;  // [layers, 1, 6, H] float32
  at::Tensor output_table_;  // [1, 2, H] float32
  nn::RmsNorm norm_out_;
  PatchOutput patch_out_;
};

}  // namespace carillon
