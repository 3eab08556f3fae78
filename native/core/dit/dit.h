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

/// Shifts, scales and gates for N flow times. Scales are stored as 1 + scale. Values are summed in float32, then
/// rounded to the model's dtype.
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

/// A layer as a function of its input. A LayerRunner calls the layer once in the forward pass. To save memory, the
/// runner may call the layer again in the backward pass instead of keeping activations. Apart from its input, a layer
/// depends only on leaves of the autograd graph, so gradients can be computed layer by layer.
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

  /// Only self-attention, the first part of the layer. x [B, S, H], modulation [1 or B, 6, H] -> [B, S, H].
  at::Tensor self_attended(const at::Tensor& x, const at::Tensor& modulation, const nn::Rotary& rotary) const;
  /// The whole layer: self-attention, cross-attention, MLP.
  at::Tensor operator()(const at::Tensor& x, const at::Tensor& modulation, const nn::Rotary& rotary,
                        const CrossCache::Layer& cross) const;
};

/// A dense projection of the checkpoint: a range of rows of a Linear, which may fuse several projections. The name is
/// relative to the decoder.
struct Projection {
  std::string name;  // for example layers.0.self_attn.q_proj
  nn::Linear* linear;
  int64_t first_row, rows;

  kernels::Matrix weight() const { return linear->rows(first_row, rows); }  // [rows, in]
};

/// The diffusion transformer: velocity (noise - data) of a latent state under conditions. Dimensions, depth and
/// windows come from the config. No function writes to its arguments, so all work with autograd and in inference mode.
class Dit {
 public:
  /// Reads the weights whose names begin with `decoder.`. Reports Stage::kLoad per layer.
  static Dit load(const Weights& weights, const DitConfig& config, const Control& control);

  /// Projections that adapters can change: attention, MLPs, time embeddings and the condition embedder, in the order of
  /// the forward pass. The pointers are valid until this object moves.
  std::vector<Projection> projections();
  /// Recomputes the tensors derived from weights. Call it after weights of projections have changed.
  void refresh();

  bool is_turbo() const { return is_turbo_; }
  int64_t latent_channels() const { return latent_channels_; }

  /// Modulation at `times` [N] float32. The second time r of mean flow equals t, as always in inference, so the
  /// embedding of t - r is constant.
  Modulation modulate(const at::Tensor& times) const;
  /// Modulation at `times` [N], with `reference_times` [N] as the second time r of mean flow.
  Modulation modulate(const at::Tensor& times, const at::Tensor& reference_times) const;

  /// context [B, T, context channels]: source latents, then the chunk mask.
  ContextTokens embed_context(const at::Tensor& context) const;

  /// Computes the cross-attention keys and values of encoder states [B, L, E]. With `null_condition` [1, 1, E] also
  /// computes the attention output of unconditional rows, which is a constant vector because all their keys are equal.
  /// `encoder_mask` [B, L] bool hides padding; undefined hides nothing, as in the reference.
  CrossCache make_cross_cache(const at::Tensor& encoder_states, const at::Tensor& null_condition = {},
                              const at::Tensor& encoder_mask = {}) const;

  /// state [B, T, C], context of the same rows, modulation of 1 or B times -> velocity [B, T, C]. The first R rows
  /// attend to the R rows of `cross`; further rows are unconditional.
  at::Tensor velocity(const at::Tensor& state, const ContextTokens& context, const Modulation& modulation,
                      const CrossCache& cross) const;

  /// Runs a forward pass and calls `on_weights` with the cross-attention weights [B, S, L] of each of `heads`, which
  /// must be sorted by layer. Layers after the last of these heads are not run.
  void visit_attention(const std::vector<AttentionHead>& heads, const at::Tensor& state, const ContextTokens& context,
             const Modulation& modulation, const CrossCache& cross,
             const std::function<void(const at::Tensor& weights)>& on_weights) const;

  /// Velocity for training an adapter of the attention. `run` is called for each layer. A layer computes the keys and
  /// values of the encoder states [B, L, E] itself, because they depend on the adapter. See make_cross_cache for
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
