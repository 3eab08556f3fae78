#include "core/adapters/module_pattern.h"

#include <algorithm>
#include <memory>
#include <string_view>
#include <vector>

#include "core/lm/pattern.h"
#include "core/runtime/error.h"

namespace carillon {
namespace {

/// Translates a regular expression of Python, without a leading ^, to the syntax of Pattern.
std::string translated(std::string_view python) {
  std::string pattern;
  bool is_in_class = false;
  for (size_t i = 0; i < python.size(); ++i) {
    const char c = python[i], next = i + 1 < python.size() ? python[i + 1] : '\0';
    if (c == '\\' && (next == 'd' || next == 'w')) {
      const std::string members = next == 'd' ? "0-9" : "a-zA-Z0-9_";
      pattern += is_in_class ? members : "[" + members + "]";
      ++i;
    } else if (c == '\\' && next != '\0') {
      pattern += {c, next};
      ++i;
    } else if (is_in_class) {
      is_in_class = c != ']';
      pattern += c;
    } else if (c == '^' || c == '$') {
      const bool is_at_end = c == '$' && next == '\0';
      require(is_at_end, std::string("'") + c + "' is supported only at the " + (c == '^' ? "start" : "end"));
    } else if (python.substr(i, 3) == "(?:") {
      pattern += '(';
      i += 2;
    } else {
      is_in_class = c == '[';
      pattern += c;
      // A lazy repetition matches the same whole texts as a greedy one.
      if ((c == '*' || c == '+' || c == '?' || c == '}') && next == '?') ++i;
    }
  }
  return pattern;
}

}  // namespace

bool is_module_name(const std::string& key) {
  constexpr const char* kNameCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.";
  return key.find_first_not_of(kNameCharacters) == std::string::npos;
}

namespace {

using Matcher = std::function<bool(const std::string&)>;

/// Splits a regular expression at each | outside of groups and classes.
std::vector<std::string> alternatives_of(std::string_view pattern) {
  std::vector<std::string> alternatives(1);
  int depth = 0;
  bool is_in_class = false;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (c == '|' && depth == 0 && !is_in_class) {
      alternatives.emplace_back();
      continue;
    }
    alternatives.back() += c;
    if (c == '\\' && i + 1 < pattern.size()) {
      alternatives.back() += pattern[++i];
    } else if (is_in_class) {
      is_in_class = c != ']';
    } else {
      is_in_class = c == '[';
      depth += c == '(' ? 1 : c == ')' ? -1 : 0;
    }
  }
  return alternatives;
}

/// Matches one alternative of `key`.
Matcher alternative_matcher(const std::string& alternative, const std::string& key) {
  const bool is_anchored = alternative.starts_with('^');
  const auto pattern = std::make_shared<Pattern>(translated(alternative.substr(is_anchored)));
  return [pattern, is_anchored, key](const std::string& module) {
    const auto matches_whole = [&](std::string_view text) {
      const int32_t state = pattern->walk(pattern->start(), text);
      return state != Pattern::kDead && pattern->accepting(state);
    };
    try {
      std::string_view rest = module;
      while (!matches_whole(rest)) {
        const size_t dot = rest.find('.');
        if (is_anchored || dot == std::string_view::npos) return false;
        rest.remove_prefix(dot + 1);
      }
      return true;
    } catch (const Error& error) {
      fail(ErrorCode::kBadCheckpoint, "the pattern '" + key + "' is not supported: " + error.what());
    }
  };
}

}  // namespace

Matcher module_pattern(const std::string& key) {
  if (is_module_name(key)) {
    return [key](const std::string& module) { return module == key || module.ends_with("." + key); };
  }
  std::vector<Matcher> matchers;
  for (const auto& alternative : alternatives_of(key)) matchers.push_back(alternative_matcher(alternative, key));
  return [matchers](const std::string& module) {
    return std::any_of(matchers.begin(), matchers.end(), [&](const Matcher& matches) { return matches(module); });
  };
}

}  // namespace carillon
