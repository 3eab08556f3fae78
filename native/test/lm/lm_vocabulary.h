#pragma once
// A small vocabulary that resembles a real one. It has all bytes, merged tokens, special tokens, and more code tokens
// than valid codes. Some merged tokens end in LF or begin with spaces.
#include <string>
#include <vector>

#include "core/lm/vocabulary.h"

namespace carillon::test {

constexpr int32_t kFirstWord = 256;
inline const std::vector<std::string> kWords = {
    "  ",    " a",    " b", ".\n", " \n", "\n\n", "\n ", "\n  ", " major", " minor", "bpm", ":",
    " warm", "calm",  " G", " F",  "#",   "♭",    "12",  " 12",  "major",  "maj",    "dur", "duration",
    "song",  " song", "en", " en", "yue", " yue", "--",  "\r\n", " piano", "slow",   " é",  "caption",
};
constexpr int32_t kFirstSpecial = kFirstWord + 36;
constexpr int32_t kPad = kFirstSpecial, kTurnEnd = kFirstSpecial + 1;
constexpr int32_t kThink = kFirstSpecial + 2, kThinkEnd = kFirstSpecial + 3;
constexpr int32_t kFirstCode = kFirstSpecial + 4;
constexpr int32_t kCodes = 64, kCodeTokens = 80;
constexpr int32_t kVocabularySize = kFirstCode + kCodeTokens;

inline Vocabulary small_vocabulary() {
  std::vector<uint8_t> bytes;
  std::vector<int32_t> offsets = {0};
  for (int byte = 0; byte < 256; ++byte) {
    bytes.push_back(static_cast<uint8_t>(byte));
    offsets.push_back(static_cast<int32_t>(bytes.size()));
  }
  for (const auto& word : kWords) {
    bytes.insert(bytes.end(), word.begin(), word.end());
    offsets.push_back(static_cast<int32_t>(bytes.size()));
  }
  offsets.resize(kVocabularySize + 1, static_cast<int32_t>(bytes.size()));
  return Vocabulary(std::move(bytes), std::move(offsets), {kTurnEnd, kPad}, kFirstCode, kCodes);
}

inline int32_t word(const std::string& text) {
  if (text.size() == 1) return static_cast<uint8_t>(text[0]);
  for (size_t i = 0; i < kWords.size(); ++i) {
    if (kWords[i] == text) return kFirstWord + static_cast<int32_t>(i);
  }
  return -1;
}

inline std::string text_of(const Vocabulary& vocabulary, const std::vector<int32_t>& ids) {
  std::string text;
  for (const int32_t id : ids) text += vocabulary.bytes(id);
  return text;
}

inline const Vocabulary& vocabulary() {
  static const Vocabulary shared = small_vocabulary();
  return shared;
}

}  // namespace carillon::test
