#pragma once
#include <ATen/ATen.h>

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "core/lm/decoder.h"
#include "test/lm/lm_vocabulary.h"

namespace carillon::test {

using History = std::vector<int32_t>;

/// A model whose logits are a function of the row's history. Records its calls.
class ScriptedDecoder : public Decoder {
 public:
  ScriptedDecoder(int64_t rows, std::function<at::Tensor(const History&)> logits)
      : histories_(static_cast<size_t>(rows)), logits_(std::move(logits)) {}

  at::Tensor feed(const at::Tensor& ids, c10::ArrayRef<int64_t> rows) override {
    feeds.push_back({static_cast<int64_t>(rows.size()), ids.size(1)});
    auto hidden = at::empty({static_cast<int64_t>(rows.size()), 2}, at::kDouble);
    for (size_t line = 0; line < rows.size(); ++line) {
      auto& history = histories_[static_cast<size_t>(rows[line])];
      for (int64_t i = 0; i < ids.size(1); ++i) history.push_back(ids[static_cast<int64_t>(line)][i].item<int32_t>());
      hidden[static_cast<int64_t>(line)][0] = rows[line];
      hidden[static_cast<int64_t>(line)][1] = static_cast<int64_t>(history.size());
    }
    return hidden;
  }

  at::Tensor logits(const at::Tensor& hidden, int64_t first, int64_t count) override {
    windows.push_back({first, count});
    std::vector<at::Tensor> lines;
    for (int64_t line = 0; line < hidden.size(0); ++line) {
      const auto& whole = histories_[static_cast<size_t>(hidden[line][0].item<int64_t>())];
      const History seen(whole.begin(), whole.begin() + hidden[line][1].item<int64_t>());
      lines.push_back(logits_(seen).narrow(0, first, count));
    }
    return at::stack(lines);
  }

  void copy_row(int64_t from, int64_t to) override {
    histories_[static_cast<size_t>(to)] = histories_[static_cast<size_t>(from)];
  }

  void clear_row(int64_t row) override { histories_[static_cast<size_t>(row)].clear(); }

  const History& history(size_t row) const { return histories_[row]; }

  std::vector<std::pair<int64_t, int64_t>> feeds;    // number of rows, tokens per row
  std::vector<std::pair<int64_t, int64_t>> windows;  // first id, number of ids

 private:
  std::vector<History> histories_;
  std::function<at::Tensor(const History&)> logits_;
};

/// Logits that depend only on the last token and on the length of the history. They differ enough for sampling.
inline at::Tensor varied(const History& history) {
  const auto column = at::arange(kVocabularySize, at::kFloat);
  return (column * 0.37 + history.back() * 1.7 + static_cast<double>(history.size()) * 0.61).sin() * 3.0;
}

}  // namespace carillon::test
