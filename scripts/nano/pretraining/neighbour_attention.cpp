#include "pretraining/neighbour_attention.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace carillon::pretraining {
namespace {

constexpr double kGate = 0.3;
constexpr int64_t kAttentionGate = 2, kMlpGate = 5, kRows = 6;  // of a layer's scale_shift_table; row 0 shifts
constexpr int64_t kFrequencies = 6;  // the fastest, which tell neighbours apart
constexpr double kConstant = 5;      // beside values of deviation 1
constexpr double kContent = 0.3;     // share that the random weights keep
constexpr double kSharpness = 2;     // of queries and of keys

/// The angle of frequency `index` between one patch and the next.
double angle(const DitConfig& config, int64_t index) {
  return std::pow(config.rope_theta, -2.0 * static_cast<double>(index) / static_cast<double>(config.head_dim));
}

/// weight [heads * head_dim, width]: turns the constant in the last channel into a vector whose angles are those of
/// `distances[head]` patches.
void add_constant(at::Tensor& weight, const DitConfig& config, const std::vector<int64_t>& distances) {
  const int64_t half = config.head_dim / 2;
  for (size_t head = 0; head < distances.size(); ++head) {
    const at::Tensor rows = weight.narrow(0, static_cast<int64_t>(head) * config.head_dim, config.head_dim);
    for (int64_t i = 0; i < std::min(kFrequencies, half); ++i) {
      const double turned = static_cast<double>(distances[head]) * angle(config, i);
      rows[i][-1] += std::cos(turned);
      rows[half + i][-1] += std::sin(turned);
    }
  }
}

/// Every second head looks back, the others ahead.
std::vector<int64_t> both_ways(int64_t heads, int64_t distance) {
  std::vector<int64_t> distances;
  for (int64_t head = 0; head < heads; ++head) distances.push_back(head % 2 == 0 ? -distance : distance);
  return distances;
}

}  // namespace

void begin_with_neighbours(Parameters& parameters, const DitConfig& config) {
  const std::string first = "decoder.layers.0.scale_shift_table";
  if (parameters.has(first)) return;
  const int64_t width = config.hidden_size, heads = config.num_attention_heads, pairs = config.num_key_value_heads;
  int64_t distance = 1;
  for (int64_t index = 0; index < config.num_hidden_layers; ++index) {
    const std::string layer = "decoder.layers." + std::to_string(index) + ".", attention = layer + "self_attn.";
    const auto random = [&](const std::string& name, at::IntArrayRef shape) {
      return parameters.leaf(name, shape).detach().clone();
    };
    at::Tensor table = random(layer + "scale_shift_table", {1, kRows, width});
    table.select(1, kAttentionGate).add_(kGate);
    table.select(1, kMlpGate).add_(kGate);
    if (config.window_of_layer(index) > 0) {
      table[0][0][-1] += kConstant;
      at::Tensor query = random(attention + "q_proj.weight", {heads * config.head_dim, width}) * kContent;
      at::Tensor key = random(attention + "k_proj.weight", {pairs * config.head_dim, width}) * kContent;
      add_constant(query, config, both_ways(heads, distance));
      add_constant(key, config, std::vector<int64_t>(static_cast<size_t>(pairs), 0));
      parameters.set(attention + "q_proj.weight", query);
      parameters.set(attention + "k_proj.weight", key);
      for (const char* norm : {"q_norm.weight", "k_norm.weight"}) {
        parameters.set(attention + norm, at::full({config.head_dim}, kSharpness));
      }
      distance = distance % 2 + 1;  // 1, 2, 1, ...
    }
    parameters.set(layer + "scale_shift_table", table);
  }
}

}  // namespace carillon::pretraining
