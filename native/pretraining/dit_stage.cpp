#include "pretraining/dit_stage.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <cmath>

#include "core/diffusion/flow_matching.h"
#include "core/diffusion/schedule.h"
#include "core/dit/audio_tokenizer.h"
#include "core/dit/condition_encoder.h"
#include "core/dit/dit.h"
#include "core/qwen3/stack.h"
#include "pretraining/neighbour_attention.h"
#include "pretraining/structure.h"

namespace carillon::pretraining {
namespace {

constexpr double kFramesPerSecond = 25, kUnconditionalShare = 0.1;
constexpr int kTurboSteps = 8;
constexpr int64_t kTimeFrequencies = 256;  // of every published model; its config does not say
constexpr int64_t kHeldOutItems = 16;
// Of the error of a channel of structure beside one of waves: words say nothing of waves, whose signs are chance.
constexpr double kStructureWeight = 4;
constexpr double kWordsWeight = 0.5;

/// Mean over the channels of structure of errors [B, C].
double structure_of(const at::Tensor& error) {
  const int64_t structure = structure_channels(error.size(1));
  return error.narrow(1, error.size(1) - structure, structure).mean().item<double>();
}

}  // namespace

DitStage::DitStage(const DitConfig& config, const Qwen3Config& text_config, const Pieces& pieces,
                   const std::string& latents, std::shared_ptr<Parameters> tokenizer, int64_t batch,
                   double longest_seconds, at::Device device)
    : config_(config),
      text_config_(text_config),
      pieces_(pieces),
      train_(latents, pieces_.train),
      held_out_(latents, pieces_.held_out),
      train_batches_(config, pieces_.train, train_, std::llround(longest_seconds * kFramesPerSecond)),
      held_out_batches_(config, pieces_.held_out, held_out_, std::llround(longest_seconds * kFramesPerSecond)),
      tokenizer_(std::move(tokenizer)),
      batch_(batch),
      device_(device) {}

void DitStage::begin(Parameters& parameters, const DitConfig& config) {
  begin_with_neighbours(parameters, config);
  for (const char* name : {"decoder.time_embed.linear_1.weight", "decoder.time_embed_r.linear_1.weight"}) {
    parameters.leaf(name, {config.hidden_size, kTimeFrequencies});
  }
}

DitStage::Errors DitStage::errors(const Weights& weights, const TaskBatch& batch, const at::Tensor& times,
                                  const at::Tensor& noise, const at::Tensor& unconditional) const {
  const auto placed = [&](const at::Tensor& tensor) { return tensor.to(device_); };
  const auto as_input = [&](const at::Tensor& tensor) { return tensor.to(device_, weights.placement().dtype); };
  at::Tensor source = placed(batch.source);
  if (const at::Tensor covers = placed(batch.is_cover.nonzero().flatten()); covers.numel() > 0) {
    const at::NoGradGuard no_grad;
    const Weights codes = Checkpoint::of(tokenizer_).weights({device_, at::kFloat});
    const auto tokenizer = AudioTokenizer::load(codes.sub("tokenizer"), config_);
    const auto detokenizer = AudioDetokenizer::load(codes.sub("detokenizer"), config_);
    const at::Tensor sources = source.index_select(0, covers);
    const at::Tensor hints = detokenizer.hints(tokenizer.tokenize(sources, placed(train_.silence())).quantized);
    source = source.index_copy(0, covers, hints.narrow(1, 0, source.size(1)));
  }
  const Qwen3Stack text = Qwen3Stack::load(weights.sub(kTextEncoder), text_config_, Control());
  const at::Tensor words = text.encode(batch.text);
  const ConditionEncoder encoder = ConditionEncoder::load(weights.sub("encoder"), config_);
  const PackedStates conditions = encoder.encode({.text_hidden_states = words,
                                                  .text_mask = placed(batch.text_mask),
                                                  .lyric_embeddings = text.embed(batch.lyrics),
                                                  .lyric_mask = placed(batch.lyric_mask),
                                                  .timbre_latents = as_input(batch.timbre),
                                                  .timbre_items = at::arange(batch.timbre.size(0), at::kLong)});
  const at::Tensor null_condition = weights.get("null_condition_emb", {1, 1, config_.encoder_hidden_size});
  const at::Tensor states =
      at::where(placed(unconditional).view({-1, 1, 1}), null_condition, conditions.states);

  const Dit dit = Dit::load(weights.sub("decoder"), config_, Control());
  const at::Tensor data = placed(batch.target), target = placed(noise) - data;
  const at::Tensor velocity = dit.velocity(as_input(noised(data, placed(noise), placed(times))),
                                           dit.embed_context(as_input(at::cat({source, placed(batch.chunk_mask)}, 2))),
                                           dit.modulate(placed(times)), dit.attend_to(states, {}, conditions.mask));
  const at::Tensor counted = placed(batch.counted), frames = counted.sum({1, 2}).unsqueeze(1);
  const at::Tensor mean = (data * counted).sum(1) / frames;
  return {((velocity - target).square() * counted).sum(1) / frames,
          words_error(weights, words, placed(batch.text_mask), mean)};
}

at::Tensor DitStage::words_error(const Weights& weights, const at::Tensor& words, const at::Tensor& mask,
                                 const at::Tensor& mean_latents) const {
  const int64_t structure = structure_channels(mean_latents.size(1));
  const at::Tensor last = mask.sum(1) - 1, items = at::arange(last.size(0), last.options());
  const Weights head = weights.sub(kWordsHead);
  const at::Tensor guessed = at::linear(words.index({items, last}), head.get("weight", {structure, words.size(2)}),
                                        head.get("bias", {structure}));
  const at::Tensor mean_structure = mean_latents.narrow(1, mean_latents.size(1) - structure, structure);
  return at::mse_loss(guessed.to(at::kFloat), character(mean_structure));
}

Loss DitStage::loss(const Weights& weights, Draw& draw) const {
  const TaskBatch batch = train_batches_.draw(batch_, draw);
  const Schedule schedule = turbo_schedule(kTurboSteps);
  std::vector<float> times;
  std::vector<int64_t> unconditional;
  for (int64_t item = 0; item < batch_; ++item) {
    times.push_back(static_cast<float>(schedule[static_cast<size_t>(draw.below(std::ssize(schedule)))]));
    unconditional.push_back(draw.uniform() < kUnconditionalShare);
  }
  const at::Tensor noise = draw.normal(batch.target.sizes());
  const at::Tensor without_words = at::tensor(unconditional).to(at::kBool);
  const Errors found = errors(weights, batch, at::tensor(times), noise, without_words);
  const at::Tensor error = found.velocity.mean(0);
  const int64_t structure = structure_channels(error.size(0)), waves = error.size(0) - structure;
  const at::Tensor of_waves = error.narrow(0, 0, waves), of_structure = error.narrow(0, waves, structure);
  const at::Tensor weighted =
      (of_waves.sum() + kStructureWeight * of_structure.sum()) / (waves + kStructureWeight * structure);
  return {weighted + kWordsWeight * found.words,
          {{"waves", of_waves.mean()}, {"structure", of_structure.mean()}, {"words", found.words}}};
}

Figures DitStage::measure(const Weights& weights) const {
  const TaskBatch batch = held_out_batches_.spread(kHeldOutItems);
  const int64_t items = batch.target.size(0);
  const Schedule schedule = turbo_schedule(kTurboSteps);
  Draw draw(0, 0);
  const at::Tensor noise = draw.normal(batch.target.sizes()), conditional = at::zeros({items}, at::kBool);
  Figures figures;
  for (const double time : schedule) {
    const at::Tensor error = errors(weights, batch, at::full({items}, time), noise, conditional).velocity;
    const std::string percent = std::to_string(std::lround(time * 100));
    figures["lossAt" + percent] = error.mean().item<double>();
    figures["structureAt" + percent] = structure_of(error);
    figures["loss"] += figures["lossAt" + percent] / static_cast<double>(schedule.size());
  }
  TaskBatch others = batch;
  others.text = batch.text.roll(1, 0);
  others.text_mask = batch.text_mask.roll(1, 0);
  figures["otherWordsAt100"] = structure_of(errors(weights, others, at::ones({items}), noise, conditional).velocity);
  return figures;
}

}  // namespace carillon::pretraining
