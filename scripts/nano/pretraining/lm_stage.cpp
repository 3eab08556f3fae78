#include "pretraining/lm_stage.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "core/checkpoint/json.h"
#include "core/dit/audio_tokenizer.h"
#include "core/nn/linear.h"
#include "core/qwen3/stack.h"
#include "core/runtime/error.h"
#include "pretraining/words.h"

namespace carillon::pretraining {
namespace {

constexpr double kUnconditionalShare = 0.1, kWordsShare = 0.25;
constexpr double kFactsWeight = 0.5;
constexpr int64_t kHeldOutItems = 32;
constexpr int64_t kNotLearnt = -100;

}  // namespace

CodeTokens CodeTokens::read(const std::string& directory) {
  const std::string path = directory + "/tokenizer.json";
  CodeTokens tokens{-1, -1};
  const Json tokenizer = Json::read_file(path);
  for (const Json& token : tokenizer.at("added_tokens").as_array()) {
    const std::string& content = token.at("content").as_string();
    if (content == "<|audio_code_0|>") tokens.first_code = token.get_int("id");
    if (content == "<|im_end|>") tokens.end_of_turn = token.get_int("id");
  }
  if (tokens.first_code < 0 || tokens.end_of_turn < 0) {
    fail(ErrorCode::kBadCheckpoint, path + ": lacks <|audio_code_0|> or <|im_end|>");
  }
  return tokens;
}

LmStage::LmStage(const Qwen3Config& config, const CodeTokens& tokens, const DitConfig& dit_config, const Pieces& pieces,
                 Pieces words, const std::string& latents, std::shared_ptr<Parameters> tokenizer,
                 TokenIds unconditional_prompt, int64_t batch, at::Device device)
    : config_(config),
      tokens_(tokens),
      pieces_(pieces),
      words_(std::move(words)),
      unconditional_prompt_(std::move(unconditional_prompt)),
      batch_(batch),
      device_(device),
      train_(encode(pieces.train, Latents(latents, pieces.train), dit_config, tokenizer, dit_config.pool_window_size)),
      held_out_(encode(pieces.held_out, Latents(latents, pieces.held_out), dit_config, tokenizer, 1)) {}

LmStage::Codes LmStage::encode(const std::vector<Piece>& pieces, const Latents& latents, const DitConfig& config,
                               const std::shared_ptr<Parameters>& parameters, int64_t shifts) const {
  const at::NoGradGuard no_grad;
  const Weights weights = Checkpoint::of(parameters).weights({device_, at::kFloat});
  const AudioTokenizer tokenizer = AudioTokenizer::load(weights.sub("tokenizer"), config);
  const at::Tensor silence = latents.silence().to(device_);
  Codes codes;
  for (const Piece& piece : pieces) {
    const at::Tensor frames = latents.of(piece, kMix).unsqueeze(0).to(device_);
    std::vector<std::vector<int64_t>> shifted;
    for (int64_t shift = 0; shift < shifts; ++shift) {
      const at::Tensor indices = tokenizer.tokenize(frames.slice(1, shift), silence).indices[0].cpu().contiguous();
      shifted.emplace_back(indices.const_data_ptr<int64_t>(), indices.const_data_ptr<int64_t>() + indices.numel());
    }
    codes.push_back(std::move(shifted));
  }
  return codes;
}

LmStage::Sequence LmStage::sequence(const Piece& piece, const Request* request,
                                    const std::vector<int64_t>& codes) const {
  Sequence sequence;
  sequence.facts = request ? &piece.facts : nullptr;
  sequence.ids = request ? request->plan_prompt : unconditional_prompt_;
  sequence.prompt = std::ssize(sequence.ids);
  if (request) sequence.ids.insert(sequence.ids.end(), request->plan.begin(), request->plan.end());
  sequence.codes = std::ssize(sequence.ids);
  for (const int64_t code : codes) sequence.ids.push_back(tokens_.first_code + code);
  if (!codes.empty()) sequence.ids.push_back(tokens_.end_of_turn);
  return sequence;
}

LmStage::Entropy LmStage::entropy(const Weights& weights, const std::vector<Sequence>& batch) const {
  int64_t longest = 0;
  for (const Sequence& sequence : batch) longest = std::max(longest, std::ssize(sequence.ids));
  const at::Tensor ids = at::zeros({std::ssize(batch), longest}, at::kLong);
  const at::Tensor text = at::full_like(ids, kNotLearnt), codes = text.clone();
  const at::Tensor planned = at::zeros_like(ids, at::kBool);  // up to the last token before the codes
  std::vector<int64_t> with_facts;
  std::vector<at::Tensor> facts;
  for (int64_t row = 0; row < std::ssize(batch); ++row) {
    const Sequence& sequence = batch[static_cast<size_t>(row)];
    const int64_t length = std::ssize(sequence.ids);
    const at::Tensor values = at::tensor(sequence.ids, at::kLong);
    ids[row].narrow(0, 0, length).copy_(values);
    text[row].slice(0, sequence.prompt, sequence.codes).copy_(values.slice(0, sequence.prompt, sequence.codes));
    codes[row].slice(0, sequence.codes, length).copy_(values.slice(0, sequence.codes, length));
    planned[row].narrow(0, 0, sequence.codes).fill_(true);
    if (sequence.facts == nullptr) continue;
    with_facts.push_back(row);
    facts.push_back(as_numbers(*sequence.facts, words_.genres));
  }
  const Qwen3Stack stack = Qwen3Stack::load(weights, config_, Control());
  const at::Tensor hidden = stack.encode(ids);
  const at::Tensor before_last = hidden.narrow(1, 0, longest - 1);
  const at::Tensor logits = nn::linear(before_last, stack.embeddings, {}).flatten(0, 1).to(at::kFloat);
  const auto mean = [&](const at::Tensor& targets) {
    const at::Tensor next = targets.slice(1, 1).flatten().to(device_);
    return at::cross_entropy_loss(logits, next, {}, at::Reduction::Mean, kNotLearnt);
  };
  const at::Tensor rows = at::tensor(with_facts, at::kLong).to(device_);
  const at::Tensor read = read_facts(weights, hidden.index_select(0, rows), planned.to(device_).index_select(0, rows),
                                     number_count(words_.genres.size()));
  return {mean(text), mean(codes), facts_error(read, at::stack(facts).to(device_))};
}

Loss LmStage::loss(const Weights& weights, Draw& draw) const {
  std::vector<Sequence> batch;
  for (int64_t item = 0; item < batch_; ++item) {
    if (item > 0 && draw.uniform() < kWordsShare) {
      const Piece& piece = words_.train[static_cast<size_t>(draw.below(std::ssize(words_.train)))];
      batch.push_back(
          sequence(piece, &piece.requests[static_cast<size_t>(draw.below(std::ssize(piece.requests)))], {}));
      continue;
    }
    const auto index = static_cast<size_t>(draw.below(std::ssize(pieces_.train)));
    // The first item always has a prompt, so that a batch has text to learn.
    const bool conditional = item == 0 || draw.uniform() >= kUnconditionalShare;
    const auto& requests = pieces_.train[index].requests;
    const Request& request = requests[static_cast<size_t>(draw.below(std::ssize(requests)))];
    const auto& shifted = train_[index];
    const auto shift = static_cast<size_t>(draw.below(std::ssize(shifted)));
    batch.push_back(sequence(pieces_.train[index], conditional ? &request : nullptr, shifted[shift]));
  }
  const Entropy found = entropy(weights, batch);
  return {found.text + found.codes + kFactsWeight * found.facts,
          {{"text", found.text}, {"codes", found.codes}, {"facts", found.facts}}};
}

Figures LmStage::measure(const Weights& weights) const {
  std::vector<Sequence> batch;
  for (size_t i = 0; i < std::min<size_t>(kHeldOutItems, held_out_.size()); ++i) {
    batch.push_back(sequence(pieces_.held_out[i], &pieces_.held_out[i].requests[0], held_out_[i][0]));
  }
  const Entropy found = entropy(weights, batch);
  return {{"text", found.text.item<double>()},
          {"codes", found.codes.item<double>()},
          {"facts", found.facts.item<double>()}};
}

}  // namespace carillon::pretraining
