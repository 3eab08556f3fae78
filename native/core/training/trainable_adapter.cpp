#include "core/training/trainable_adapter.h"

#include <ATen/ATen.h>

#include <string_view>

#include "core/runtime/error.h"
#include "core/training/lokr.h"
#include "core/training/lora.h"

namespace carillon {
namespace {

/// The query, key, value and output projections of self- and cross-attention.
bool is_target(std::string_view name) {
  const auto ends_with = [&](std::string_view end) {
    return name.size() >= end.size() && name.substr(name.size() - end.size()) == end;
  };
  return ends_with(".q_proj") || ends_with(".k_proj") || ends_with(".v_proj") || ends_with(".o_proj");
}

void check_range(const char* what, double value, double least, double most) {
  if (value >= least && value <= most) return;
  fail(ErrorCode::kBadArgument, std::string(what) + " is " + std::to_string(value) + ", expected " +
                                    std::to_string(least) + " to " + std::to_string(most));
}

void check(const LoraDesign& design) {
  constexpr double kMost = 1e6;
  check_range("the rank of LoRA", static_cast<double>(design.rank), 1, kMost);
  check_range("the alpha of LoRA", design.alpha, 0, kMost);
  check_range("the dropout of LoRA", design.dropout, 0, 1);
}

void check(const LokrDesign& design) {
  constexpr double kMost = 1e6;
  check_range("the dimension of LoKr", static_cast<double>(design.dimension), 1, kMost);
  check_range("the alpha of LoKr", design.alpha, 0, kMost);
  if (design.factor != -1) check_range("the factor of LoKr", static_cast<double>(design.factor), 1, kMost);
}

std::shared_ptr<TrainedDelta> make_delta(const AdapterDesign& design, const at::Tensor& weight,
                                         at::Generator& generator) {
  if (const auto* lora = std::get_if<LoraDesign>(&design)) {
    return std::make_shared<TrainedLora>(*lora, weight, generator);
  }
  return std::make_shared<TrainedLokr>(std::get<LokrDesign>(design), weight, generator);
}

}  // namespace

TrainableAdapter::TrainableAdapter(Dit& dit, const AdapterDesign& design, uint64_t seed)
    : design_(design), dropout_seed_(std::make_shared<std::optional<uint64_t>>()) {
  std::visit([](const auto& chosen) { check(chosen); }, design);
  for (const Projection& projection : dit.projections()) {
    if (!is_target(projection.name)) continue;
    const auto index = static_cast<int64_t>(modules_.size());
    at::Generator generator = seeded_generator(stream_seed(seed, Stream::kInitialWeights, {index}), at::kCPU);
    const at::Tensor weight = projection.weight();
    const auto delta = make_delta(design, weight, generator);
    projection.linear->branches.push_back(
        {projection.first_row, projection.rows, [weight, delta, index, dropout = dropout_seed_](const at::Tensor& x) {
           const auto generator = *dropout
                                      ? seeded_generator(stream_seed(**dropout, Stream::kDropout, {index}), x.device())
                                      : at::Generator();
           return delta->apply(x, weight, generator);
         }});
    linears_.push_back(projection.linear);
    for (const auto& [name, tensor] : delta->parameters()) {
      parameters_.emplace_back(projection.name + "." + name, tensor);
    }
    modules_.push_back({projection.name, weight, delta});
  }
  if (modules_.empty()) fail(ErrorCode::kBadArgument, "this model has no attention projections to train");
}

TrainableAdapter::~TrainableAdapter() {
  for (nn::Linear* linear : linears_) linear->branches.clear();
}

int64_t TrainableAdapter::parameter_count() const {
  int64_t count = 0;
  for (const auto& [name, tensor] : parameters_) count += tensor.numel();
  return count;
}

}  // namespace carillon
