#pragma once
#include <ATen/core/Tensor.h>

#include <map>
#include <string>
#include <vector>

#include "pretraining/facts.h"

namespace carillon::pretraining {

using TokenIds = std::vector<int64_t>;

/// One way to ask for a piece, as the models read it.
struct Request {
  TokenIds text;       // prompt of text2music
  TokenIds bare_text;  // the same without tempo, key and metre
  TokenIds lyrics;
  TokenIds plan_prompt;  // the language model's prompt, up to where it answers
  TokenIds plan;         // its think block, up to where the audio codes follow
};

/// One piece of the data set: a line of pieces.jsonl (scripts/nano/dataset/record.ts).
struct Piece {
  std::string id;
  Facts facts;
  std::string mix;                           // path of its WAV file
  std::map<std::string, std::string> stems;  // by track; empty where they were not kept
  std::vector<Request> requests;             // the first is the one that the tasks' prompts are of
  std::map<std::string, TokenIds>
      task_texts;  // "cover", "repaint", and "extract TRACK", "lego TRACK", "complete TRACK"
};

/// The data set, split as its generator did.
struct Pieces {
  std::vector<Piece> train, held_out;
  std::vector<std::string> genres;  // that the composer knows, those of no piece included

  /// Throws kBadCheckpoint for a damaged line, naming it, where a split is empty, and without genres.json.
  static Pieces read(const std::string& directory);
  /// The same from words.jsonl, whose pieces were composed and described but not rendered.
  static Pieces read_words(const std::string& directory);
};

}  // namespace carillon::pretraining
