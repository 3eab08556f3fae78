#include "core/lm/vocabulary.h"

#include <ATen/ATen.h>

#include <set>

#include "test/lm/lm_vocabulary.h"
#include "test/test.h"

using namespace carillon;
using namespace carillon::test;

namespace {

const char* const kIndentedText = " [^\n]+\n(  [^\n]*\n)*";

std::set<int32_t> allowed(const TokenMask& mask) {
  std::set<int32_t> ids;
  const auto columns = mask.block(mask.columns(at::zeros({1, kVocabularySize}), 0));
  for (int64_t i = 0; i < columns.size(1); ++i) {
    if (columns[0][i].item<float>() == 0.0f) ids.insert(static_cast<int32_t>(mask.id(i)));
  }
  return ids;
}

std::set<int32_t> allowed_one_by_one(Pattern& pattern, int32_t state, const Vocabulary& vocabulary) {
  std::set<int32_t> ids;
  for (int32_t id = 0; id < vocabulary.size(); ++id) {
    if (!vocabulary.bytes(id).empty() && pattern.walk(state, vocabulary.bytes(id)) != Pattern::kDead) ids.insert(id);
  }
  return ids;
}

}  // namespace

TEST("token mask: the trie walk allows the same tokens as testing each token alone, in every state") {
  const auto vocabulary = small_vocabulary();
  MaskCache cache(vocabulary, at::kCPU);
  for (const char* text : {kIndentedText, " ([3-9][0-9]|[12][0-9][0-9]|300)\n", " [A-G](#|b|♯|♭)? (major|minor)\n",
                           " (en|yue|de)\n", ".*", "(song|son)", "[^x]{3}"}) {
    const auto masks = cache.pattern(text);
    std::set<int32_t> open = {masks->pattern().start()}, seen;
    while (!open.empty()) {
      const int32_t state = *open.begin();
      open.erase(state);
      if (!seen.insert(state).second) continue;
      EXPECT(allowed(masks->mask(state)) == allowed_one_by_one(masks->pattern(), state, vocabulary));
      for (int byte = 0; byte < 256; ++byte) {
        const int32_t next = masks->pattern().step(state, static_cast<uint8_t>(byte));
        if (next != Pattern::kDead) open.insert(next);
      }
    }
  }
}

TEST("token mask: allows a token that ends within the pattern, not one that goes beyond it") {
  const auto vocabulary = small_vocabulary();
  MaskCache cache(vocabulary, at::kCPU);
  const auto masks = cache.pattern("(bp|maj)\n");
  const auto ids = allowed(masks->mask(masks->pattern().start()));
  EXPECT(ids == (std::set<int32_t>{word("b"), word("m"), word("maj")}));  // "bpm" and "major" are not allowed
}

TEST("token mask: allows merged line feeds only if the pattern continues after them") {
  const auto vocabulary = small_vocabulary();
  MaskCache cache(vocabulary, at::kCPU);
  const auto masks = cache.pattern(kIndentedText);
  auto& pattern = masks->pattern();
  const auto inside = allowed(masks->mask(pattern.walk(pattern.start(), " warm")));
  for (const char* token : {".\n", " \n", "\n", "\n ", "\n  ", " piano"}) EXPECT(inside.count(word(token)));
  for (const char* token : {"\n\n", "\r\n", "\r", "\t"}) EXPECT(!inside.count(word(token)));
  const auto after = allowed(masks->mask(pattern.walk(pattern.start(), " warm\n")));
  EXPECT(after == (std::set<int32_t>{word(" "), word("  ")}));
}

TEST("token mask: patterns and text exclude special tokens and codes") {
  const auto vocabulary = small_vocabulary();
  MaskCache cache(vocabulary, at::kCPU);
  const auto masks = cache.pattern("(.|\n)*");
  for (const int32_t id : allowed(masks->mask(masks->pattern().start()))) EXPECT(id < kFirstSpecial);
  std::set<int32_t> text;
  for (int32_t id = 0; id < kFirstSpecial; ++id) text.insert(id);
  text.insert(kTurnEnd);
  EXPECT(allowed(cache.text()) == text);
}

TEST("token mask: allows all valid codes, and the first end token if the number of codes is open") {
  const auto vocabulary = small_vocabulary();
  MaskCache cache(vocabulary, at::kCPU);
  std::set<int32_t> codes;
  for (int32_t code = 0; code < kCodes; ++code) codes.insert(kFirstCode + code);
  EXPECT(allowed(cache.codes()) == codes);
  codes.insert(kTurnEnd);
  EXPECT(allowed(cache.codes_or_end()) == codes);
  EXPECT_EQ(cache.everything().count, int64_t{kVocabularySize});
}

TEST("token mask: a slice of the logits gives the same columns as all logits") {
  const auto vocabulary = small_vocabulary();
  MaskCache cache(vocabulary, at::kCPU);
  const auto logits = at::randn({2, kVocabularySize});
  const auto masks = cache.pattern("(bp|maj)\n");
  const auto& start = masks->mask(masks->pattern().start());
  for (const auto* mask : {&start, &cache.codes(), &cache.codes_or_end(), &cache.text()}) {
    const int64_t width = mask->last - mask->first + 1;
    const auto window = logits.narrow(1, mask->first, width);
    EXPECT(mask->columns(window, mask->first).equal(mask->columns(logits, 0)));
    const auto columns = mask->columns(logits, 0);
    for (int64_t i = 0; i < columns.size(1); ++i) EXPECT(columns[1][i].equal(logits[1][mask->id(i)]));
  }
}

TEST("token mask: large masks with gaps and small masks allow the same ids") {
  // Of 6,000 tokens 5,400 are allowed, too many for a mask that lists the allowed ids.
  std::vector<uint8_t> bytes;
  std::vector<int32_t> offsets = {0};
  for (int i = 0; i < 6000; ++i) {
    const auto text = std::to_string(100000 + i * 7).substr(1);
    bytes.insert(bytes.end(), text.begin(), text.end());
    offsets.push_back(static_cast<int32_t>(bytes.size()));
  }
  offsets.push_back(offsets.back());
  const Vocabulary vocabulary(bytes, offsets, {6000}, 0, 0);
  MaskCache cache(vocabulary, at::kCPU);
  const auto masks = cache.pattern("[0-9]{4}[1-9]");
  const auto& mask = masks->mask(masks->pattern().start());
  EXPECT(mask.blocked.defined() && mask.ids.empty());
  const auto scores = mask.block(mask.columns(at::zeros({1, 6001}), 0));
  int64_t count = 0;
  for (int64_t i = 0; i < scores.size(1); ++i) {
    const bool open = scores[0][i].item<float>() == 0.0f;
    EXPECT_EQ(open, vocabulary.bytes(static_cast<int32_t>(mask.id(i))).back() != '0');
    count += open;
  }
  EXPECT_EQ(count, mask.count);
}

TEST("token mask: users of equal patterns share the masks of its states") {
  const auto vocabulary = small_vocabulary();
  MaskCache cache(vocabulary, at::kCPU);
  const auto first = cache.pattern(kIndentedText), second = cache.pattern(kIndentedText);
  EXPECT(first.get() == second.get());
  EXPECT(&first->mask(0) == &second->mask(0));
  // clearing the cache does not invalidate a pattern in use
  for (int i = 0; i < 200; ++i) cache.pattern("x{" + std::to_string(i) + "}");
  EXPECT(allowed(first->mask(first->pattern().start())).count(word(" warm")));
}

TEST("vocabulary: spells text in the longest tokens, for any order of ids") {
  const auto vocabulary = small_vocabulary();
  EXPECT(vocabulary.spell("duration:") == (std::vector<int32_t>{word("duration"), word(":")}));
  EXPECT(vocabulary.spell(" major.\n") == (std::vector<int32_t>{word(" major"), word(".\n")}));
  EXPECT(vocabulary.spell("").empty());
  const Vocabulary two({'a', 'b'}, {0, 1, 2, 2}, {2}, 0, 0);
  EXPECT_THROWS(two.spell("abc"), "no token for byte 99");
}

TEST("vocabulary: rejects invalid tables") {
  EXPECT_THROWS(Vocabulary({}, {0}, {0}, 0, 0), "has no tokens");
  EXPECT_THROWS(Vocabulary({'a'}, {0, 2}, {0}, 0, 0), "offsets");
  EXPECT_THROWS(Vocabulary({'a'}, {0, 1}, {}, 0, 0), "no end token");
  EXPECT_THROWS(Vocabulary({'a'}, {0, 1}, {1}, 0, 0), "an end token is out of range");
  EXPECT_THROWS(Vocabulary({'a'}, {0, 1}, {0}, 0, 2), "audio codes are out of range");
}
