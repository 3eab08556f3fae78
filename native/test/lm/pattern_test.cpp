#include "core/lm/pattern.h"

#include <ATen/ATen.h>

#include <functional>
#include <random>
#include <set>

#include "test/test.h"

using namespace carillon;

namespace {

bool matches(Pattern& pattern, std::string_view text) {
  const int32_t state = pattern.walk(pattern.start(), text);
  return state != Pattern::kDead && pattern.accepting(state);
}

bool matches(std::string_view pattern, std::string_view text) {
  Pattern compiled(pattern);
  return matches(compiled, text);
}

std::string number_line(int number) { return std::string(" ").append(std::to_string(number)).append("\n"); }

}  // namespace

TEST("pattern: matches literals, groups, alternatives and repetitions") {
  EXPECT(matches("abc", "abc") && !matches("abc", "ab") && !matches("abc", "abcd"));
  EXPECT(matches("a|bc|", "") && matches("a|bc|", "bc") && !matches("a|bc", "b"));
  EXPECT(matches("x(ab)?y", "xy") && matches("x(ab)?y", "xaby") && !matches("x(ab)?y", "xay"));
  EXPECT(matches("a*", "") && matches("a*", "aaaa") && !matches("a+", ""));
  EXPECT(matches("(ab){2,3}", "abab") && matches("(ab){2,3}", "ababab"));
  EXPECT(!matches("(ab){2,3}", "ab") && !matches("(ab){2,3}", "abababab"));
  EXPECT(matches("a{2}", "aa") && !matches("a{2}", "aaa") && matches("a{2,}", "aaaaa") && !matches("a{2,}", "a"));
  EXPECT(matches("a{0}b", "b"));
  EXPECT(matches("(a*)*b", "aaab") && matches("(a?){3}", ""));
}

TEST("pattern: escapes match the literal character") {
  EXPECT(matches("\\n\\r\\t", "\n\r\t"));
  EXPECT(matches("\\(\\)\\[\\]\\{\\}\\|\\?\\*\\+\\.\\\\\\-\\^\\$", "()[]{}|?*+.\\-^$"));
  EXPECT(matches("a\nb", "a\nb"));
}

TEST("pattern: classes contain ASCII, ranges and escapes") {
  EXPECT(matches("[A-G][#b]?", "F#") && matches("[A-G][#b]?", "B") && !matches("[A-G]", "H"));
  EXPECT(matches("[a\\-z]", "-") && !matches("[a\\-z]", "k") && matches("[a-]", "-") && matches("[\\]]", "]"));
  EXPECT(matches("[^\\n]", "a") && !matches("[^\\n]", "\n") && !matches("[^ab]", "b"));
}

TEST("pattern: a dot and a negated class match one well-formed character, except control characters") {
  for (const char* pattern : {".", "[^x]"}) {
    for (const char* character :
         {"a", " ", "\x7f", "é", "♭", "中", "\xF0\x9F\x8E\xB9", "\xEF\xBF\xBF", "\xF4\x8F\xBF\xBF"}) {
      EXPECT(matches(pattern, character));
    }
    // invalid UTF-8 (truncated, overlong, surrogate, above U+10FFFF, stray continuation), and control characters
    for (const char* fault : {"\xC3", "\xC0\xAF", "\xE0\x80\xAF", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\x80", "\xFF",
                              "\n", "\r", "\t", "\x1b", "ab", ""}) {
      EXPECT(!matches(pattern, fault));
    }
    EXPECT(!matches(pattern, std::string_view("\0", 1)));
  }
}

TEST("pattern: a repetition applies to all bytes of the character before it") {
  EXPECT(matches("B♭*", "B") && matches("B♭*", "B♭♭") && !matches("B♭*", "B\xE2\x99"));
}

TEST("pattern: errors name the position") {
  EXPECT_THROWS(Pattern("ab("), "position 3: the pattern ends, expected ')'");
  EXPECT_THROWS(Pattern("ab)c"), "position 2: ')' without '('");
  EXPECT_THROWS(Pattern("*a"), "position 0: nothing to repeat");
  EXPECT_THROWS(Pattern("a**"), "position 2: a repetition cannot be repeated");
  EXPECT_THROWS(Pattern("a[b-"), "position 4: the pattern ends, expected ']'");
  EXPECT_THROWS(Pattern("a[]"), "position 1: the class is empty");
  EXPECT_THROWS(Pattern("[z-a]"), "position 3: the end of the range is before its start");
  EXPECT_THROWS(Pattern("[♭]"), "a class supports ASCII only");
  EXPECT_THROWS(Pattern("a{3,2}"), "the maximum is below the minimum");
  EXPECT_THROWS(Pattern("a{x}"), "position 2: a number is missing");
  EXPECT_THROWS(Pattern("a{5000}"), "more than 1000 repetitions");
  EXPECT_THROWS(Pattern("a\\d"), "position 2: unknown escape '\\d'");
  EXPECT_THROWS(Pattern("a]"), "position 1: ']' must be written '\\]'");
  EXPECT_THROWS(Pattern("a\xFF"), "position 1: not UTF-8");
  EXPECT_THROWS(Pattern("((a{1000}){1000}){1000}"), "too large");
  EXPECT_THROWS(Pattern("(((){1000}){1000}){1000}"), "too large");
  EXPECT_THROWS(Pattern(std::string(100, '(')), "nested too deeply");
}

TEST("pattern: fails when stepping builds too many states") {
  Pattern pattern("(a|b)*a(a|b){20}");
  std::mt19937 random(1);
  const auto walk = [&] {
    int32_t state = pattern.start();
    for (int i = 0; i < 100'000; ++i) state = pattern.step(state, random() % 2 ? 'a' : 'b');
  };
  EXPECT_THROWS(walk(), "too many states");
}

TEST("pattern: number ranges match exactly their numbers") {
  Pattern bpm(" ([3-9][0-9]|[12][0-9][0-9]|300)\n");
  Pattern duration(" ([1-9][0-9]|[1-5][0-9][0-9]|600)\n");
  for (int n = 0; n < 2000; ++n) {
    const auto text = number_line(n);
    EXPECT_EQ(matches(bpm, text), n >= 30 && n <= 300);
    EXPECT_EQ(matches(duration, text), n >= 10 && n <= 600);
  }
  EXPECT(!matches(bpm, " 090\n") && !matches(bpm, "90\n") && !matches(bpm, " 90"));
}

TEST("pattern: a list of 591 values compiles quickly") {
  std::string list = " (10";
  for (int n = 11; n <= 600; ++n) list.append("|").append(std::to_string(n));
  Pattern pattern(list.append(")\n"));
  for (int n = 0; n < 1000; ++n) EXPECT_EQ(matches(pattern, number_line(n)), n >= 10 && n <= 600);
}

TEST("pattern: finds the shortest string that completes a match") {
  Pattern caption(" [^\n]+\n(  [^\n]*\n)*");
  EXPECT_EQ(caption.shortest_completion(caption.walk(caption.start(), " text")), "\n");
  EXPECT_EQ(caption.shortest_completion(caption.walk(caption.start(), " text\n")), "");
  EXPECT_EQ(caption.shortest_completion(caption.walk(caption.start(), " text\n ")), " \n");
  EXPECT_EQ(caption.shortest_completion(caption.walk(caption.start(), " caf\xC3")), "\x80\n");
  EXPECT_EQ(caption.shortest_completion(caption.start()).size(), size_t{3});
  Pattern choice("abcdef|ax|ay");
  EXPECT_EQ(choice.shortest_completion(choice.start()), "ax");
}

namespace {

/// A pattern and its meaning. `ends` returns every position where a match that begins at the given position can end.
struct Meaning {
  std::string text;
  std::function<std::set<size_t>(const std::string&, size_t)> ends;
};

Meaning one_of(const std::string& text, const std::string& characters) {
  return {text, [=](const std::string& input, size_t at) {
            const bool found = at < input.size() && characters.find(input[at]) != std::string::npos;
            return found ? std::set<size_t>{at + 1} : std::set<size_t>{};
          }};
}

Meaning either(const Meaning& a, const Meaning& b) {
  return {"(" + a.text + "|" + b.text + ")", [=](const std::string& input, size_t at) {
            auto ends = a.ends(input, at);
            ends.merge(b.ends(input, at));
            return ends;
          }};
}

Meaning both(const Meaning& a, const Meaning& b) {
  return {a.text + b.text, [=](const std::string& input, size_t at) {
            std::set<size_t> ends;
            for (const size_t middle : a.ends(input, at)) ends.merge(b.ends(input, middle));
            return ends;
          }};
}

Meaning times(const Meaning& a, const std::string& suffix, size_t min, size_t max) {
  return {"(" + a.text + ")" + suffix, [=](const std::string& input, size_t at) {
            std::set<size_t> current = {at}, ends;
            for (size_t count = 0; count <= max; ++count) {
              if (count >= min) ends.insert(current.begin(), current.end());
              std::set<size_t> next;
              for (const size_t position : current) next.merge(a.ends(input, position));
              current = next;
            }
            return ends;
          }};
}

Meaning random_meaning(std::mt19937& random, int depth) {
  const auto inner = [&] { return random_meaning(random, depth - 1); };
  switch (random() % (depth > 0 ? 9 : 3)) {
    case 0:
      return one_of("a", "a");
    case 1:
      return one_of("b", "b");
    case 2:
      return one_of("[^a]", "bc");
    case 3:
      return either(inner(), inner());
    case 4:
      return both(inner(), inner());
    case 5:
      return times(inner(), "?", 0, 1);
    case 6:
      return times(inner(), "*", 0, 7);  // inputs have at most six characters
    case 7:
      return times(inner(), "+", 1, 7);
    default:
      return times(inner(), "{1,2}", 1, 2);
  }
}

}  // namespace

TEST("pattern: matches a reference implementation on random patterns and strings") {
  std::mt19937 random(7);
  int accepted = 0;
  for (int trial = 0; trial < 300; ++trial) {
    const auto meaning = random_meaning(random, 3);
    Pattern pattern(meaning.text);
    for (int i = 0; i < 30; ++i) {
      std::string input;
      for (size_t length = random() % 7; input.size() < length;) input.push_back("abc"[random() % 3]);
      const bool expected = meaning.ends(input, 0).count(input.size()) > 0;
      accepted += expected;
      if (matches(pattern, input) != expected) test::fail_at(__FILE__, __LINE__, meaning.text + " on " + input);
      // a complete string must be reachable from every live state
      const int32_t state = pattern.walk(pattern.start(), input);
      if (state != Pattern::kDead) EXPECT(matches(pattern, input + pattern.shortest_completion(state)));
    }
  }
  EXPECT(accepted > 500);
}
