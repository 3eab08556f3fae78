
#include <bitset>
#include <string>

#include "core/lm/pattern.h"
#include "core/runtime/error.h"

namespace carillon {

namespace {

constexpr int kMaxDepth = 64;
constexpr int kMaxRepeat = 1000;
constexpr int kMaxParts = 30'000;

struct Expression {
  enum class Kind { kLiteral, kClass, kSequence, kAlternatives, kRepeat };
  Kind kind;
  std::string literal = {};     // for kLiteral: its bytes
  std::bitset<128> ascii = {};  // for kClass
  bool beyond_ascii = false;    // for kClass: also matches all characters above U+007F
  std::vector<Expression> children = {};
  int min = 0;  // for kRepeat
  int max = 0;  // for kRepeat; -1: no limit
};

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Expression parse() {
    auto expression = alternatives(0);
    if (!at_end()) error("')' without '('");
    return expression;
  }

 private:
  [[noreturn]] void error(const std::string& what) const { error_at(position_, what); }
  [[noreturn]] void error_at(size_t position, const std::string& what) const {
    fail(ErrorCode::kBadArgument, "pattern, position " + std::to_string(position) + ": " + what);
  }

  bool at_end() const { return position_ == text_.size(); }
  bool next_is(char c) const { return !at_end() && text_[position_] == c; }
  char take(const char* wanted) {
    if (at_end()) error(std::string("the pattern ends, expected ") + wanted);
    return text_[position_++];
  }

  Expression alternatives(int depth) {
    if (depth > kMaxDepth) error("groups are nested too deeply");
    Expression result{Expression::Kind::kAlternatives};
    result.children.push_back(sequence(depth));
    while (next_is('|')) {
      ++position_;
      result.children.push_back(sequence(depth));
    }
    return result;
  }

  Expression sequence(int depth) {
    Expression result{Expression::Kind::kSequence};
    while (!at_end() && !next_is('|') && !next_is(')')) result.children.push_back(repeated(atom(depth)));
    return result;
  }

  Expression atom(int depth) {
    const size_t begin = position_;
    const char c = take("a character");
    switch (c) {
      case '(': {
        auto inner = alternatives(depth + 1);
        if (take("')'") != ')') error_at(position_ - 1, "')' is missing");
        return inner;
      }
      case '[':
        return character_class();
      case '.':
        return any_character();
      case '\\':
        return Expression{Expression::Kind::kLiteral, std::string(1, escaped())};
      case '?':
      case '*':
      case '+':
      case '{':
        error_at(begin, "nothing to repeat");
      case ']':
      case '}':
        error_at(begin, std::string("'") + c + "' must be written '\\" + c + "'");
      default:
        return Expression{Expression::Kind::kLiteral, character(begin)};
    }
  }

  /// Reads the UTF-8 character that starts at `begin`. A repetition after it applies to all of its bytes.
  std::string character(size_t begin) {
    const auto lead = static_cast<uint8_t>(text_[begin]);
    const size_t length = lead < 0x80 ? 1 : lead < 0xC2 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : lead < 0xF5 ? 4 : 0;
    bool whole = length > 0 && begin + length <= text_.size();
    for (size_t i = 1; whole && i < length; ++i) whole = (static_cast<uint8_t>(text_[begin + i]) & 0xC0) == 0x80;
    if (!whole) error_at(begin, "not UTF-8");
    position_ = begin + length;
    return std::string(text_.substr(begin, length));
  }

  char escaped() {
    const char c = take("the escaped character");
    if (c == 'n') return '\n';
    if (c == 'r') return '\r';
    if (c == 't') return '\t';
    if (std::string_view("\\|()[]{}?*+.-^$/").find(c) == std::string_view::npos) {
      error_at(position_ - 1, std::string("unknown escape '\\") + c + "'");
    }
    return c;
  }

  static Expression any_character() {
    Expression any{Expression::Kind::kClass};
    for (size_t c = 0x20; c < 128; ++c) any.ascii.set(c);
    any.beyond_ascii = true;
    return any;
  }

  uint8_t class_member() {
    char c = take("']'");
    if (c == '\\') c = escaped();
    if (static_cast<uint8_t>(c) >= 128) {
      error_at(position_ - 1, "a class supports ASCII only; write other characters as (a|b)");
    }
    return static_cast<uint8_t>(c);
  }

  Expression character_class() {
    const size_t begin = position_ - 1;
    const bool negated = next_is('^');
    if (negated) ++position_;
    std::bitset<128> members;
    while (!next_is(']')) {
      const uint8_t low = class_member();
      uint8_t high = low;
      if (next_is('-') && position_ + 1 < text_.size() && text_[position_ + 1] != ']') {
        ++position_;
        high = class_member();
        if (high < low) error_at(position_ - 1, "the end of the range is before its start");
      }
      for (size_t c = low; c <= high; ++c) members.set(c);
    }
    ++position_;
    if (members.none()) error_at(begin, "the class is empty");
    if (!negated) return Expression{Expression::Kind::kClass, {}, members};
    auto result = any_character();
    result.ascii &= ~members;
    return result;
  }

  Expression repeated(Expression inner) {
    int min = 1, max = 1;
    if (next_is('?')) {
      min = 0;
      ++position_;
    } else if (next_is('*') || next_is('+')) {
      min = next_is('+') ? 1 : 0;
      max = -1;
      ++position_;
    } else if (next_is('{')) {
      ++position_;
      bounds(min, max);
    } else {
      return inner;
    }
    if (next_is('?') || next_is('*') || next_is('+') || next_is('{')) {
      error("a repetition cannot be repeated; use a group");
    }
    Expression result{Expression::Kind::kRepeat};
    result.children.push_back(std::move(inner));
    result.min = min;
    result.max = max;
    return result;
  }

  void bounds(int& min, int& max) {
    min = max = number();
    if (next_is(',')) {
      ++position_;
      max = next_is('}') ? -1 : number();
    }
    if (take("'}'") != '}') error_at(position_ - 1, "'}' is missing");
    if (max >= 0 && max < min) error_at(position_ - 1, "the maximum is below the minimum");
  }

  int number() {
    const size_t begin = position_;
    int value = 0;
    while (!at_end() && text_[position_] >= '0' && text_[position_] <= '9') {
      value = value * 10 + (text_[position_++] - '0');
      if (value > kMaxRepeat) error_at(begin, "more than " + std::to_string(kMaxRepeat) + " repetitions");
    }
    if (position_ == begin) error("a number is missing");
    return value;
  }

  std::string_view text_;
  size_t position_ = 0;
};

/// Builds the automaton backwards: compile(e, next) returns the node that reads e and continues at `next`.
class Compiler {
 public:
  ByteNfa compile(const Expression& expression) {
    const auto accept = add({ByteNfa::Kind::kAccept, 0, 0, -1, -1});
    nfa_.start = compile(expression, accept);
    return std::move(nfa_);
  }

 private:
  int32_t add(ByteNfa::Node node) {
    nfa_.nodes.push_back(node);
    return static_cast<int32_t>(nfa_.nodes.size()) - 1;
  }
  int32_t bytes(uint8_t low, uint8_t high, int32_t next) { return add({ByteNfa::Kind::kBytes, low, high, next, -1}); }
  int32_t split(int32_t a, int32_t b) { return add({ByteNfa::Kind::kSplit, 0, 0, a, b}); }

  int32_t compile(const Expression& e, int32_t next) {
    if (++parts_ > kMaxParts) fail(ErrorCode::kBadArgument, "pattern: too large, use smaller repetitions");
    switch (e.kind) {
      case Expression::Kind::kLiteral:
        for (auto byte = e.literal.rbegin(); byte != e.literal.rend(); ++byte) {
          next = bytes(static_cast<uint8_t>(*byte), static_cast<uint8_t>(*byte), next);
        }
        return next;
      case Expression::Kind::kClass:
        return one_of(e, next);
      case Expression::Kind::kSequence:
        for (auto child = e.children.rbegin(); child != e.children.rend(); ++child) next = compile(*child, next);
        return next;
      case Expression::Kind::kAlternatives: {
        int32_t entry = compile(e.children.front(), next);
        for (size_t i = 1; i < e.children.size(); ++i) entry = split(entry, compile(e.children[i], next));
        return entry;
      }
      case Expression::Kind::kRepeat:
        return repeat(e, next);
    }
    return next;
  }

  int32_t repeat(const Expression& e, int32_t next) {
    const auto& child = e.children.front();
    if (e.max < 0) {
      const int32_t loop = split(-1, next);
      const int32_t body = compile(child, loop);
      nfa_.nodes[loop].next = body;
      next = loop;
    } else {
      const int32_t end = next;
      for (int i = e.min; i < e.max; ++i) next = split(compile(child, next), end);
    }
    for (int i = 0; i < e.min; ++i) next = compile(child, next);
    return next;
  }

  int32_t one_of(const Expression& e, int32_t next) {
    int32_t entry = -1;
    const auto either = [&](int32_t node) { entry = entry < 0 ? node : split(entry, node); };
    for (size_t low = 0; low < 128; ++low) {
      if (!e.ascii[low]) continue;
      size_t high = low;
      while (high + 1 < 128 && e.ascii[high + 1]) ++high;
      either(bytes(static_cast<uint8_t>(low), static_cast<uint8_t>(high), next));
      low = high;
    }
    if (!e.beyond_ascii) return entry;
    // Well-formed UTF-8 above U+007F (Unicode standard, table 3-7).
    const int32_t one = bytes(0x80, 0xBF, next), two = bytes(0x80, 0xBF, one), three = bytes(0x80, 0xBF, two);
    either(bytes(0xC2, 0xDF, one));
    either(bytes(0xE0, 0xE0, bytes(0xA0, 0xBF, one)));
    either(bytes(0xE1, 0xEC, two));
    either(bytes(0xED, 0xED, bytes(0x80, 0x9F, one)));
    either(bytes(0xEE, 0xEF, two));
    either(bytes(0xF0, 0xF0, bytes(0x90, 0xBF, two)));
    either(bytes(0xF1, 0xF3, three));
    either(bytes(0xF4, 0xF4, bytes(0x80, 0x8F, two)));
    return entry;
  }

  ByteNfa nfa_;
  int parts_ = 0;  // number of compiled expressions; counts each copy of a repetition
};

}  // namespace

ByteNfa parse_pattern(std::string_view pattern) { return Compiler().compile(Parser(pattern).parse()); }

}  // namespace carillon
