#include "core/training/batches.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <map>

namespace carillon {
namespace {

/// A sample and its random draws.
struct Item {
  at::Tensor data, noise, context;  // [T, C], [T, C], [T, 2C]
  at::Tensor conditions;            // [L, D]
  double time;
};

Item draw(const TrainingSample& sample, const SamplingOptions& options, uint64_t seed) {
  PhiloxStream stream(seed);
  Item item{.data = sample.target_latents.to(at::kFloat),
            .noise = stream.normal(sample.target_latents.sizes()),
            .context = sample.context_latents,
            .conditions = sample.encoder_hidden_states,
            .time = options.time.draw(stream)};
  if (stream.uniform() < options.condition_dropout) {
    item.conditions = options.null_condition.cpu().to(item.conditions.scalar_type())[0].expand_as(item.conditions);
  }
  return item;
}

FlowMatchingBatch collate(const std::vector<Item>& items, const Placement& placement) {
  int64_t longest = 0;
  for (const auto& item : items) longest = std::max(longest, item.conditions.size(0));
  std::vector<at::Tensor> data, noise, context, conditions, masks;
  std::vector<float> times;
  bool is_padded = false;
  for (const auto& item : items) {
    const int64_t length = item.conditions.size(0);
    is_padded = is_padded || length < longest;
    data.push_back(item.data);
    noise.push_back(item.noise);
    context.push_back(item.context);
    conditions.push_back(at::constant_pad_nd(item.conditions, {0, 0, 0, longest - length}));
    masks.push_back(at::arange(longest) < length);
    times.push_back(static_cast<float>(item.time));
  }
  const auto placed = [&](const std::vector<at::Tensor>& tensors, at::ScalarType dtype) {
    return at::stack(tensors).to(placement.device, dtype);
  };
  return {.data = placed(data, at::kFloat),
          .noise = placed(noise, at::kFloat),
          .times = at::tensor(times).to(placement.device),
          .context = placed(context, placement.dtype),
          .encoder_states = placed(conditions, placement.dtype),
          .encoder_mask = is_padded ? placed(masks, at::kBool) : at::Tensor()};
}

}  // namespace

std::vector<int64_t> epoch_order(int64_t count, uint64_t seed, int64_t epoch) {
  at::Generator generator = seeded_generator(stream_seed(seed, RandomStream::kOrder, {epoch}), at::kCPU);
  const at::Tensor order = at::randperm(count, generator, at::kLong);
  return {order.const_data_ptr<int64_t>(), order.const_data_ptr<int64_t>() + count};
}

std::vector<MicroBatchPart> make_parts(const std::vector<TrainingSample>& samples, const SamplingOptions& options,
                                       int64_t micro_step, const Placement& placement) {
  std::map<int64_t, std::vector<Item>> by_length;
  int64_t frames = 0;
  for (size_t i = 0; i < samples.size(); ++i) {
    const uint64_t seed = stream_seed(options.seed, RandomStream::kSample, {micro_step, static_cast<int64_t>(i)});
    const int64_t length = samples[i].target_latents.size(0);
    by_length[length].push_back(draw(samples[i], options, seed));
    frames += length;
  }
  std::vector<MicroBatchPart> parts;
  for (const auto& [length, items] : by_length) {
    const double share = static_cast<double>(length) * static_cast<double>(items.size()) / static_cast<double>(frames);
    parts.push_back({collate(items, placement), share});
  }
  return parts;
}

}  // namespace carillon
