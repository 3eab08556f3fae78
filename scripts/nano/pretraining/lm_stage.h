#pragma once
#include <vector>

#include "core/checkpoint/config.h"
#include "pretraining/latents.h"
#include "pretraining/stage.h"

namespace carillon::pretraining {

/// Ids that the language model's tokenizer gives to what it writes beside text.
struct CodeTokens {
  int64_t first_code;   // of audio code 0; the codes are contiguous
  int64_t end_of_turn;  // <|im_end|>

  /// Reads tokenizer.json. Throws kBadCheckpoint where a token is absent.
  static CodeTokens read(const std::string& directory);
};

/// The language model: prompt, think block, audio codes, end of turn; only what it writes itself is learnt. Some
/// items have the prompt of guidance's unconditional side, and some end with the think block: pieces that were never
/// rendered. From the last token before the codes the piece's facts are read off (words.h), so that the codes know
/// tempo and key. The audio tokenizer is given.
class LmStage : public TrainingStage {
 public:
  LmStage(const Qwen3Config& config, const CodeTokens& tokens, const DitConfig& dit_config, const Pieces& pieces,
          Pieces words, const std::string& latents, std::shared_ptr<Parameters> tokenizer,
          TokenIds unconditional_prompt, int64_t batch, at::Device device);

  Loss loss(const Weights& weights, Draw& draw) const override;
  /// Cross-entropy in nats per token on held-out pieces, of think blocks and of audio codes; error of the facts.
  Figures measure(const Weights& weights) const override;

 private:
  struct Sequence {
    TokenIds ids;
    int64_t prompt, codes;  // where the model's own writing begins, and its audio codes
    const Facts* facts;     // null without a request
  };
  /// Per piece, the codes of its latents from the first frame on, from the second, ...: so many ways to write the same
  /// music, which a small data set needs.
  using Codes = std::vector<std::vector<std::vector<int64_t>>>;
  Codes encode(const std::vector<Piece>& pieces, const Latents& latents, const DitConfig& config,
               const std::shared_ptr<Parameters>& tokenizer, int64_t shifts) const;
  /// With a request of `piece`, or without any.
  Sequence sequence(const Piece& piece, const Request* request, const std::vector<int64_t>& codes) const;

  struct Entropy {
    at::Tensor text, codes;  // means over the batch's tokens; NaN for none
    at::Tensor facts;
  };
  Entropy entropy(const Weights& weights, const std::vector<Sequence>& batch) const;

  Qwen3Config config_;
  CodeTokens tokens_;
  Pieces pieces_, words_;
  TokenIds unconditional_prompt_;
  int64_t batch_;
  at::Device device_;
  Codes train_, held_out_;
};

}  // namespace carillon::pretraining
