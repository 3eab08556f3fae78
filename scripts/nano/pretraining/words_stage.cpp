#include "pretraining/words_stage.h"

#include <ATen/ATen.h>

#include <cmath>

#include "core/qwen3/stack.h"

namespace carillon::pretraining {
namespace {

constexpr int64_t kHeldOutPieces = 256;
constexpr double kTempoTolerance = 0.02;
constexpr double kTaskShare = 0.2;  // texts of tasks other than text2music

const TokenIds& any_text(const Piece& piece, Draw& draw) {
  if (draw.uniform() < kTaskShare) {
    return std::next(piece.task_texts.begin(), draw.below(std::ssize(piece.task_texts)))->second;
  }
  return piece.requests[static_cast<size_t>(draw.below(std::ssize(piece.requests)))].text;
}

}  // namespace

WordsStage::WordsStage(const Qwen3Config& config, Pieces pieces, int64_t batch, at::Device device)
    : config_(config), pieces_(std::move(pieces)), batch_(batch), device_(device) {}

at::Tensor WordsStage::logits(const Weights& weights, const PaddedIds& texts) const {
  const Qwen3Stack encoder = Qwen3Stack::load(weights.sub(kTextEncoder), config_, Control());
  return read_facts(weights, encoder.encode(texts.ids), texts.mask.to(device_), number_count(pieces_.genres.size()));
}

Loss WordsStage::loss(const Weights& weights, Draw& draw) const {
  std::vector<const TokenIds*> texts;
  std::vector<at::Tensor> numbers;
  for (int64_t item = 0; item < batch_; ++item) {
    const Piece& piece = pieces_.train[static_cast<size_t>(draw.below(std::ssize(pieces_.train)))];
    texts.push_back(&any_text(piece, draw));
    numbers.push_back(as_numbers(piece.facts, pieces_.genres));
  }
  return {facts_error(logits(weights, pad(texts)), at::stack(numbers).to(device_)), {}};
}

Figures WordsStage::measure(const Weights& weights) const {
  std::vector<const TokenIds*> texts;
  std::vector<at::Tensor> numbers;
  for (const Piece& piece : pieces_.held_out) {
    if (std::ssize(texts) == kHeldOutPieces) break;
    texts.push_back(&piece.requests.back().text);
    numbers.push_back(as_numbers(piece.facts, pieces_.genres));
  }
  const at::Tensor read = logits(weights, pad(texts));
  Figures figures = {{"loss", facts_error(read, at::stack(numbers).to(device_)).item<double>()}};
  const at::Tensor shares = read.to(at::kFloat).sigmoid().cpu();
  const double each = 1.0 / static_cast<double>(texts.size());
  for (size_t i = 0; i < texts.size(); ++i) {
    const Facts& wanted = pieces_.held_out[i].facts;
    const Facts found = from_numbers(shares[static_cast<int64_t>(i)], pieces_.genres);
    figures["key"] += each * (found.tonic == wanted.tonic && found.is_minor == wanted.is_minor);
    figures["tempo"] += each * (std::abs(found.bpm / wanted.bpm - 1) < kTempoTolerance);
    figures["metre"] += each * (found.metre == wanted.metre);
    figures["genre"] += each * (found.genre == wanted.genre);
  }
  return figures;
}

}  // namespace carillon::pretraining
