#include "core/checkpoint/json_text.h"

#include <charconv>
#include <cmath>
#include <cstdio>

namespace carillon {

std::string json_string(std::string_view text) {
  std::string quoted = "\"";
  for (const char character : text) {
    if (character == '"' || character == '\\') {
      quoted += '\\';
      quoted += character;
    } else if (static_cast<unsigned char>(character) < 0x20) {
      char escape[7];
      std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(character));
      quoted += escape;
    } else {
      quoted += character;
    }
  }
  return quoted + '"';
}

std::string json_number(double value) {
  if (!std::isfinite(value)) return "null";
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

std::string json_bool(bool value) { return value ? "true" : "false"; }

std::string json_array(const std::vector<std::string>& items) {
  std::string text;
  for (const auto& item : items) text += (text.empty() ? "" : ", ") + item;
  return "[" + text + "]";
}

std::string json_object(const std::map<std::string, std::string>& members, bool indented) {
  const std::string before = indented ? "\n  " : "", between = indented ? "," : ", ";
  std::string text;
  for (const auto& [key, value] : members) {
    text += (text.empty() ? "" : between) + before + json_string(key) + ": " + value;
  }
  return "{" + text + (indented && !members.empty() ? "\n}" : "}");
}

}  // namespace carillon
