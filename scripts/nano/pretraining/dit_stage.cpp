#include "pretraining/dit_stage.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <cmath>
#include <filesystem>

#include "core/diffusion/flow_matching.h"
#include "core/dit/audio_tokenizer.h"
#include "core/dit/condition_encoder.h"
#include "core/qwen3/stack.h"
#include "pretraining/beats.h"
#include "pretraining/latent_parts.h"
#include "pretraining/neighbour_attention.h"
#include "pretraining/train_state.h"

namespace carillon::pretraining {
namespace {

constexpr double kFramesPerSecond = 25, kUnconditionalShare = 0.1;
constexpr int kTurboSteps = 8;
constexpr int64_t kTimeFrequencies = 256;  // of every published model; its config does not say
constexpr int64_t kHeldOutItems = 24;
constexpr double kWordsWeight = 0.5;
constexpr double kBeatsWeight = 4;  // of an error of the clock beside one of other channels: few, and all follows them
constexpr double kTempoTolerance = 0.04;

at::Tensor beats_of(const at::Tensor& by_channel) {
  const LatentParts parts = LatentParts::of(by_channel.size(-1));
  return by_channel.narrow(-1, parts.waves, parts.beats);
}

at::Tensor structure_of(const at::Tensor& by_channel) {
  const LatentParts parts = LatentParts::of(by_channel.size(-1));
  return by_channel.narrow(-1, parts.first_of_structure(), parts.structure());
}

double mean_of(const at::Tensor& values) { return values.numel() == 0 ? 0 : values.mean().item<double>(); }

/// Mean over the frames that count, [B, C], of latents [B, T, C].
at::Tensor mean_over_time(const at::Tensor& latents, const at::Tensor& counted) {
  return (latents * counted).sum(1) / counted.sum({1, 2}).unsqueeze(1);
}

/// Mean pitch classes [B, 12] of latents against one another, without what all the items share.
at::Tensor harmony(const at::Tensor& latents, const at::Tensor& counted) {
  const LatentParts parts = LatentParts::of(latents.size(2));
  const at::Tensor pitches =
      mean_over_time(latents, counted).narrow(1, parts.first_of_structure() + parts.timbre, parts.pitches);
  const at::Tensor relative = pitches - pitches.mean(1, /*keepdim=*/true);
  return relative - relative.mean(0, /*keepdim=*/true);
}

}  // namespace

DitStage::DitStage(const DitConfig& config, const Qwen3Config& text_config, const Pieces& pieces,
                   const std::string& latents, std::shared_ptr<Parameters> tokenizer, bool with_guidance, int64_t batch,
                   double longest_seconds, at::Device device)
    : config_(config),
      text_config_(text_config),
      pieces_(pieces),
      train_(latents, pieces_.train),
      held_out_(latents, pieces_.held_out),
      train_batches_(config, pieces_.train, pieces_.genres, train_, std::llround(longest_seconds * kFramesPerSecond)),
      held_out_batches_(config, pieces_.held_out, pieces_.genres, held_out_,
                        std::llround(longest_seconds * kFramesPerSecond)),
      tokenizer_(std::move(tokenizer)),
      with_guidance_(with_guidance),
      batch_(batch),
      device_(device) {}

void DitStage::begin(Parameters& parameters, const DitConfig& config, const std::string& words_state) {
  const bool is_new = !parameters.has(std::string(kTextEncoder) + ".norm.weight");
  if (is_new && std::filesystem::exists(words_state)) {
    for (const auto& [name, tensor] : TrainState::read_average(words_state)) parameters.set(name, tensor);
  }
  begin_with_neighbours(parameters, config);
  for (const char* name : {"decoder.time_embed.linear_1.weight", "decoder.time_embed_r.linear_1.weight"}) {
    parameters.leaf(name, {config.hidden_size, kTimeFrequencies});
  }
}

at::Tensor DitStage::source_of(const TaskBatch& batch) const {
  const at::Tensor source = batch.source.to(device_);
  const at::Tensor covers = batch.is_cover.nonzero().flatten().to(device_);
  if (covers.numel() == 0) return source;
  const at::NoGradGuard no_grad;
  const Weights codes = Checkpoint::of(tokenizer_).weights({device_, at::kFloat});
  const auto tokenizer = AudioTokenizer::load(codes.sub("tokenizer"), config_);
  const auto detokenizer = AudioDetokenizer::load(codes.sub("detokenizer"), config_);
  const at::Tensor sources = source.index_select(0, covers);
  const at::Tensor hints = detokenizer.hints(tokenizer.tokenize(sources, train_.silence().to(device_)).quantized);
  return source.index_copy(0, covers, hints.narrow(1, 0, source.size(1)));
}

DitStage::Prepared DitStage::prepare(const Weights& weights, const TaskBatch& batch,
                                     const at::Tensor& unconditional) const {
  const auto placed = [&](const at::Tensor& tensor) { return tensor.to(device_); };
  const auto as_input = [&](const at::Tensor& tensor) { return tensor.to(device_, weights.placement().dtype); };
  const Qwen3Stack text = Qwen3Stack::load(weights.sub(kTextEncoder), text_config_, Control());
  const at::Tensor words = text.encode(batch.text), mask = placed(batch.text_mask);
  const ConditionEncoder encoder = ConditionEncoder::load(weights.sub("encoder"), config_);
  const PackedStates conditions = encoder.encode({.text_hidden_states = words,
                                                  .text_mask = mask,
                                                  .lyric_embeddings = text.embed(batch.lyrics),
                                                  .lyric_mask = placed(batch.lyric_mask),
                                                  .timbre_latents = as_input(batch.timbre),
                                                  .timbre_items = at::arange(batch.timbre.size(0), at::kLong)});
  const at::Tensor null_condition = weights.get("null_condition_emb", {1, 1, config_.encoder_hidden_size});
  const at::Tensor states = at::where(placed(unconditional).view({-1, 1, 1}), null_condition, conditions.states);
  Prepared prepared{.dit = Dit::load(weights.sub("decoder"), config_, Control()),
                    .dtype = weights.placement().dtype,
                    .context = {},
                    .conditions = {},
                    .facts = {}};
  prepared.context = prepared.dit.embed_context(as_input(at::cat({source_of(batch), placed(batch.chunk_mask)}, 2)));
  prepared.conditions = prepared.dit.attend_to(states, {}, conditions.mask);
  prepared.facts = read_facts(weights, words, mask, number_count(pieces_.genres.size()));
  return prepared;
}

at::Tensor DitStage::velocity(const Prepared& prepared, const at::Tensor& state, const at::Tensor& times) const {
  return prepared.dit.velocity(state.to(prepared.dtype), prepared.context, prepared.dit.modulate(times.to(device_)),
                               prepared.conditions);
}

at::Tensor DitStage::guidance(const Weights& weights, const Prepared& prepared, const at::Tensor& velocity,
                              const at::Tensor& state, const at::Tensor& times, const at::Tensor& shares) const {
  const at::NoGradGuard no_grad;
  const at::Tensor nothing = weights.get("null_condition_emb", {1, 1, config_.encoder_hidden_size});
  Prepared without = prepared;
  without.conditions = prepared.dit.attend_to(nothing.expand({state.size(0), 1, -1}));
  const at::Tensor change = velocity.detach() - this->velocity(without, state, times);
  return shares.to(device_).view({-1, 1, 1}) * change.to(at::kFloat);
}

at::Tensor DitStage::velocity_error(const Prepared& prepared, const TaskBatch& batch, const at::Tensor& times,
                                    const at::Tensor& noise) const {
  const at::Tensor data = batch.target.to(device_), at_noise = noise.to(device_);
  const at::Tensor found = velocity(prepared, noised(data, at_noise, times.to(device_)), times);
  return mean_over_time((found - (at_noise - data)).square(), batch.counted.to(device_));
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
  const at::Tensor noise = draw.normal(batch.target.sizes()).to(device_), data = batch.target.to(device_);
  const at::Tensor time = at::tensor(times).to(device_), without = at::tensor(unconditional).to(at::kBool);
  const Prepared prepared = prepare(weights, batch, without);
  const at::Tensor state = noised(data, noise, time), found = velocity(prepared, state, time);
  at::Tensor target = noise - data;
  if (with_guidance_) {
    const at::Tensor shares = at::where(batch.is_track_task, kGuidedTrackShare, kGuidedShare).masked_fill(without, 0);
    target = target + guidance(weights, prepared, found, state, time, shares);
  }
  const at::Tensor error = mean_over_time((found - target).square(), batch.counted.to(device_)).mean(0);
  const at::Tensor words = facts_error(prepared.facts, batch.facts.to(device_));
  const LatentParts channels = LatentParts::of(error.size(0));
  const double weights_in_all =
      static_cast<double>(error.size(0)) + (kBeatsWeight - 1) * static_cast<double>(channels.beats);
  const at::Tensor weighted = (error.sum() + (kBeatsWeight - 1) * beats_of(error).sum()) / weights_in_all;
  Loss loss = {weighted + kWordsWeight * words,
               {{"waves", error.narrow(0, 0, channels.waves).mean()},
                {"structure", structure_of(error).mean()},
                {"words", words}}};
  if (channels.beats > 0) loss.parts["beats"] = beats_of(error).mean();
  return loss;
}

Figures DitStage::measure_samples(const Prepared& prepared, const TaskBatch& batch, const at::Tensor& noise) const {
  const Schedule schedule = turbo_schedule(kTurboSteps);
  at::Tensor state = noise.to(device_);
  for (size_t step = 0; step < schedule.size(); ++step) {
    const double next = step + 1 < schedule.size() ? schedule[step + 1] : 0;
    const at::Tensor times = at::full({state.size(0)}, schedule[step]);
    state = state + (next - schedule[step]) * velocity(prepared, state, times).to(at::kFloat);
  }
  const at::Tensor counted = batch.counted.to(device_), data = batch.target.to(device_);
  Figures figures;
  if (LatentParts::of(data.size(2)).beats > 1) {
    const at::Tensor hands = (beats_of(state) * counted).cpu();
    for (size_t item = 0; item < batch.bpm.size(); ++item) {
      const double tempo = tempo_of(hands[static_cast<int64_t>(item)]);
      const bool is_met = std::abs(tempo / batch.bpm[item] - 1) < kTempoTolerance;
      figures["sampledTempo"] += is_met / static_cast<double>(batch.bpm.size());
    }
  }
  if (LatentParts::of(data.size(2)).pitches > 0) {
    const at::Tensor made = harmony(state, counted), wanted = harmony(data, counted);
    figures["sampledKey"] = ((made * wanted).sum() / (made.norm() * wanted.norm())).item<double>();
  }
  const auto deviation = [&](const at::Tensor& latents) {
    return structure_of(latents * counted).std().item<double>();
  };
  figures["sampledDeviation"] = deviation(state) / deviation(data);
  return figures;
}

Figures DitStage::measure(const Weights& weights) const {
  const TaskBatch batch = held_out_batches_.spread(kHeldOutItems);
  const int64_t items = batch.target.size(0);
  const Schedule schedule = turbo_schedule(kTurboSteps);
  Draw draw(0, 0);
  const at::Tensor noise = draw.normal(batch.target.sizes()), conditional = at::zeros({items}, at::kBool);
  const Prepared prepared = prepare(weights, batch, conditional);
  Figures figures = measure_samples(prepared, batch, noise);
  for (const double time : schedule) {
    const at::Tensor error = velocity_error(prepared, batch, at::full({items}, time), noise);
    const std::string percent = std::to_string(std::lround(time * 100));
    const auto share = 1 / static_cast<double>(schedule.size());
    figures["lossAt" + percent] = mean_of(error);
    figures["structureAt" + percent] = mean_of(structure_of(error));
    figures["loss"] += share * mean_of(error);
    figures["structure"] += share * mean_of(structure_of(error));
    figures["beats"] += share * mean_of(beats_of(error));
  }
  TaskBatch others = batch;
  others.text = batch.text.roll(1, 0);
  others.text_mask = batch.text_mask.roll(1, 0);
  const at::Tensor error = velocity_error(prepare(weights, others, conditional), batch, at::ones({items}), noise);
  figures["otherWordsAt100"] = mean_of(structure_of(error));
  return figures;
}

}  // namespace carillon::pretraining
