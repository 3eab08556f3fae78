#include "core/lm/program.h"

#include <ATen/ATen.h>

#include <functional>
#include <random>

#include "test/lm/lm_vocabulary.h"
#include "test/test.h"

using namespace carillon;
using namespace carillon::test;

namespace {

const char* const kBpm = " ([3-9][0-9]|[12][0-9][0-9]|300)\n";
const char* const kCaption = " [^\n`]+\n(  [^\n`]*\n)*";
const char* const kDuration = " ([1-9][0-9]|[1-5][0-9][0-9]|600)\n";
const char* const kKeyScale = " [A-G](#|b|♯|♭)? (major|minor)\n";
const char* const kLanguage = " (en|yue|de|unknown)\n";

/// The model's score of `id` after `position` new ids.
using Score = std::function<float(size_t position, int32_t id)>;

int32_t best_of_all(const Score& score, size_t position) {
  int32_t best = 0;
  for (int32_t id = 1; id < kVocabularySize; ++id) {
    if (score(position, id) > score(position, best)) best = id;
  }
  return best;
}

int32_t best_allowed(const TokenMask& mask, const Score& score, size_t position) {
  auto best = static_cast<int32_t>(mask.id(0));
  for (int64_t i = 1; i < mask.count; ++i) {
    const auto id = static_cast<int32_t>(mask.id(i));
    if (score(position, id) > score(position, best)) best = id;
  }
  return best;
}

/// Runs the cursor to its end, choosing the best allowed id. Returns the number of choices.
int drive(ProgramCursor& cursor, const Score& score) {
  int choices = 0;
  while (!cursor.done()) {
    const size_t position = cursor.ids().size();
    if (cursor.at_boundary()) {
      cursor.decide(best_of_all(score, position));
    } else {
      cursor.push(best_allowed(cursor.mask(), score, position));
      ++choices;
    }
  }
  return choices;
}

Score always(int32_t id) {
  return [id](size_t, int32_t candidate) { return candidate == id ? 1.0f : 0.0f; };
}

Score follows(std::vector<int32_t> script) {
  return [script](size_t position, int32_t id) {
    return position < script.size() && script[position] == id ? 1.0f : 0.0f;
  };
}

TokensSegment name(const char* text) { return {vocabulary().spell(text)}; }

struct Fields {
  bool caption = true, language = true, given_bpm = false;
};

std::vector<Segment> metadata_program(const Fields& fields) {
  std::vector<Segment> program = {TokensSegment{{kThink, word("\n")}}, name("bpm:")};
  if (fields.given_bpm)
    program.push_back(name(" 120\n"));
  else
    program.push_back(PatternSegment{kBpm, false, 8});
  if (fields.caption) program.insert(program.end(), {name("caption:"), PatternSegment{kCaption, false, 512}});
  program.insert(program.end(), {name("duration:"), PatternSegment{kDuration, false, 8}});
  program.insert(program.end(), {name("keyscale:"), PatternSegment{kKeyScale, false, 16}});
  if (fields.language) program.insert(program.end(), {name("language:"), PatternSegment{kLanguage, true, 8}});
  program.insert(program.end(), {name("timesignature:"), PatternSegment{" [2346]\n", false, 4}});
  return program;
}

std::string metadata_shape(const Fields& fields) {
  std::string shape = std::string("\nbpm:") + (fields.given_bpm ? " 120\n" : kBpm);
  if (fields.caption) shape += std::string("caption:") + kCaption;
  shape += std::string("duration:") + kDuration + "keyscale:" + kKeyScale;
  if (fields.language) shape += std::string("language:") + kLanguage;
  return shape + "timesignature: [2346]\n";
}

void expect_valid(const ProgramCursor& cursor, Pattern& shape) {
  EXPECT(cursor.finished() == FinishReason::kProgram);
  EXPECT_EQ(cursor.ids().front(), kThink);
  for (size_t i = 1; i < cursor.ids().size(); ++i) EXPECT(cursor.ids()[i] < kFirstSpecial);
  const int32_t end = shape.walk(shape.start(), text_of(vocabulary(), cursor.ids()));
  EXPECT(end != Pattern::kDead && shape.accepting(end));
}

}  // namespace

TEST("program: random logits give a valid metadata block (10,000 seeds, every set of fields)") {
  MaskCache cache(vocabulary(), at::kCPU);
  for (uint32_t set = 0; set < 8; ++set) {
    const Fields fields{(set & 1) != 0, (set & 2) != 0, (set & 4) != 0};
    const auto program = metadata_program(fields);
    Pattern shape(metadata_shape(fields));
    for (uint32_t seed = 0; seed < 1250; ++seed) {
      ProgramCursor cursor(program, 1024, vocabulary(), cache);
      drive(cursor, [seed](size_t position, int32_t id) {
        uint32_t hash = seed * 2654435761u + static_cast<uint32_t>(position) * 40503u + static_cast<uint32_t>(id) * 97u;
        hash = (hash ^ (hash >> 16)) * 0x85EBCA6Bu;
        hash = (hash ^ (hash >> 13)) * 0xC2B2AE35u;
        return static_cast<float>((hash ^ (hash >> 16)) >> 8);
      });
      expect_valid(cursor, shape);
      EXPECT(cursor.ids().size() < 700);
    }
  }
}

TEST("program: a model that prefers one token still gives a valid block") {
  MaskCache cache(vocabulary(), at::kCPU);
  const auto program = metadata_program({});
  Pattern shape(metadata_shape({}));
  for (const int32_t id :
       {word("\n"), word(" "), word("  "), word(".\n"), word(" \n"), word("\n  "), word("\n\n"), word("`"), word(":"),
        word("duration"), 0xC3, 0xFF, kPad, kTurnEnd, kThinkEnd, kFirstCode, kVocabularySize - 1}) {
    ProgramCursor cursor(program, 1024, vocabulary(), cache);
    drive(cursor, always(id));
    expect_valid(cursor, shape);
  }
}

TEST("program: given values and field names are forced verbatim") {
  MaskCache cache(vocabulary(), at::kCPU);
  const std::vector<Segment> program = {name("bpm:"), name(" 120\n"), name("duration:")};
  const ProgramCursor cursor(program, 100, vocabulary(), cache);
  EXPECT(cursor.done());
  EXPECT_EQ(text_of(vocabulary(), cursor.ids()), "bpm: 120\nduration:");
}

TEST("program: a folded caption continues over indented lines and ends at the next field") {
  MaskCache cache(vocabulary(), at::kCPU);
  const std::vector<Segment> program = {PatternSegment{kCaption, false, 512}, name("duration:"),
                                        PatternSegment{kDuration, false, 8}};
  for (const std::vector<std::string>& caption :
       std::vector<std::vector<std::string>>{{" warm", " piano", "\n"},
                                             {" warm", ".\n"},
                                             {" warm", ".\n", " ", " piano", " \n", "  ", "slow", "\n"},
                                             {" warm", "\n  ", "slow", "\n ", " song", ".\n"},
                                             {" ", "--", " song", "\n", "  ", "\n", "  ", "calm", ".\n"},
                                             {" song", ":", " a", " duration", ":", "12", "\n"}}) {
    std::vector<int32_t> script;
    for (const auto& token : caption) {
      const auto ids = word(token) >= 0 ? std::vector<int32_t>{word(token)} : vocabulary().spell(token);
      script.insert(script.end(), ids.begin(), ids.end());
    }
    const auto expected = text_of(vocabulary(), script) + "duration: 120\n";
    for (const auto* rest : {"duration", ":", " ", "1", "2", "0", "\n"}) script.push_back(word(rest));
    ProgramCursor cursor(program, 1024, vocabulary(), cache);
    drive(cursor, follows(script));
    EXPECT_EQ(text_of(vocabulary(), cursor.ids()), expected);
  }
}

TEST("program: forces a line feed after a caption of the maximum length, 512 tokens") {
  MaskCache cache(vocabulary(), at::kCPU);
  const std::vector<Segment> program = {PatternSegment{kCaption, false, 512}};
  ProgramCursor cursor(program, 1024, vocabulary(), cache);
  EXPECT_EQ(drive(cursor, always(word(" warm"))), 512);
  EXPECT_EQ(cursor.ids().size(), size_t{513});
  EXPECT_EQ(cursor.ids().back(), word("\n"));
}

TEST("program: completing a pattern also completes a partial UTF-8 character") {
  MaskCache cache(vocabulary(), at::kCPU);
  const std::vector<Segment> program = {PatternSegment{kCaption, false, 3}};
  ProgramCursor cursor(program, 1024, vocabulary(), cache);
  drive(cursor, follows({word(" a"), word(" b"), 0xE4}));
  EXPECT_EQ(text_of(vocabulary(), cursor.ids()), " a b\xE4\x80\x80\n");
}

TEST("program: takes a token without asking the model if it is the only one allowed") {
  MaskCache cache(vocabulary(), at::kCPU);
  const std::vector<Segment> program = {PatternSegment{" [2346]\n", false, 8}};
  ProgramCursor cursor(program, 10, vocabulary(), cache);
  EXPECT_EQ(text_of(vocabulary(), cursor.ids()), " ");
  EXPECT_EQ(drive(cursor, always('3')), 1);
  EXPECT_EQ(text_of(vocabulary(), cursor.ids()), " 3\n");
}

TEST("program: the most likely of all tokens decides whether a complete pattern continues") {
  MaskCache cache(vocabulary(), at::kCPU);
  const std::vector<Segment> program = {PatternSegment{"a{1,5}", false, 10}, PatternSegment{"(b|c)*", false, 10},
                                        TokensSegment{{word(":")}}};
  const auto run = [&](std::vector<std::string> script) {
    std::vector<int32_t> ids;
    for (const auto& token : script) ids.push_back(word(token));
    ProgramCursor cursor(program, 100, vocabulary(), cache);
    drive(cursor, follows(ids));
    return text_of(vocabulary(), cursor.ids());
  };
  EXPECT_EQ(run({"a", "a", "b", "c", ":"}), "aabc:");
  EXPECT_EQ(run({"a", "a", "a", "a", "a", "b", "x"}), "aaaaab:");
  EXPECT_EQ(run({"a", "x"}), "a:");  // x continues neither pattern, so both end at the same step
  EXPECT_EQ(run({"a", "c", "a"}), "ac:");
}

TEST("program: generates codes in the exact count, or until the end token") {
  MaskCache cache(vocabulary(), at::kCPU);
  for (const int64_t count : {0, 1, 50, 51, 152, 3000}) {
    const std::vector<Segment> program = {CodesSegment{count}};
    ProgramCursor cursor(program, 4000, vocabulary(), cache);
    EXPECT_EQ(drive(cursor, always(kTurnEnd)), static_cast<int>(count));
    EXPECT_EQ(cursor.ids().size(), static_cast<size_t>(count));
    for (const int32_t id : cursor.ids()) EXPECT(id >= kFirstCode && id < kFirstCode + kCodes);
  }
  const std::vector<Segment> open = {CodesSegment{}};
  ProgramCursor cursor(open, 100, vocabulary(), cache);
  drive(cursor, follows({kFirstCode + 3, kFirstCode + 63, kTurnEnd}));
  EXPECT(cursor.ids() == (std::vector<int32_t>{kFirstCode + 3, kFirstCode + 63}));
  EXPECT(cursor.finished() == FinishReason::kEndToken);
  ProgramCursor endless(open, 100, vocabulary(), cache);
  // The model prefers a token beyond the valid codes. Its second choice is code 5.
  drive(endless, [](size_t, int32_t id) { return id == kFirstCode + 70 ? 2.0f : id == kFirstCode + 5 ? 1.0f : 0.0f; });
  EXPECT_EQ(endless.ids().size(), size_t{100});
  EXPECT(endless.finished() == FinishReason::kLength);
  for (const int32_t id : endless.ids()) EXPECT(id < kFirstCode + kCodes);
}

TEST("program: text segments have ordinary tokens up to an end token; free segments may have any tokens") {
  MaskCache cache(vocabulary(), at::kCPU);
  const std::vector<Segment> text = {TokensSegment{{kThinkEnd}}, TextSegment{}};
  ProgramCursor told(text, 5, vocabulary(), cache);
  drive(told, always(kFirstCode));
  for (size_t i = 1; i < told.ids().size(); ++i) EXPECT(told.ids()[i] < kFirstSpecial);
  EXPECT(told.finished() == FinishReason::kLength);
  ProgramCursor ended(text, 50, vocabulary(), cache);
  drive(ended, follows({-1, word("song"), kTurnEnd}));
  EXPECT(ended.ids() == (std::vector<int32_t>{kThinkEnd, word("song")}));
  EXPECT(ended.finished() == FinishReason::kEndToken);

  const std::vector<Segment> free = {FreeSegment{}};
  ProgramCursor open(free, 50, vocabulary(), cache);
  drive(open, follows({kThink, kFirstCode + 70, kPad}));
  EXPECT(open.ids() == (std::vector<int32_t>{kThink, kFirstCode + 70}));
  EXPECT(open.finished() == FinishReason::kEndToken);
}

TEST("program: the length limit also cuts runs of forced ids") {
  MaskCache cache(vocabulary(), at::kCPU);
  const std::vector<Segment> program = {PatternSegment{"a|b", false, 2}, name("duration:bpm:")};
  ProgramCursor cursor(program, 3, vocabulary(), cache);
  drive(cursor, always('b'));
  EXPECT_EQ(text_of(vocabulary(), cursor.ids()), "bduration:");
  EXPECT(cursor.finished() == FinishReason::kLength);
}

TEST("program: reports a pattern that the vocabulary cannot spell") {
  const Vocabulary two({'a', 'b'}, {0, 1, 2, 2}, {2}, 0, 0);
  MaskCache cache(two, at::kCPU);
  const std::vector<Segment> program = {PatternSegment{"(a|b)c", false, 4}};
  ProgramCursor cursor(program, 10, two, cache);
  EXPECT_THROWS(cursor.push(0), "no token that continues the pattern (a|b)c");
}

TEST("program: choices are greedy only in patterns declared greedy") {
  MaskCache cache(vocabulary(), at::kCPU);
  const std::vector<Segment> program = {PatternSegment{"a|b", true, 4}, PatternSegment{"a|b", false, 4},
                                        CodesSegment{1}};
  ProgramCursor cursor(program, 10, vocabulary(), cache);
  EXPECT(cursor.greedy());
  cursor.push('a');
  EXPECT(!cursor.greedy());
  cursor.push('a');
  EXPECT(!cursor.greedy());
}
