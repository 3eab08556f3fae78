#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace carillon {

// JSON to be written, as text: each function gives one value, which the others take as a part.

/// A string, quoted and escaped. `text` is UTF-8.
std::string json_string(std::string_view text);
/// The shortest text that reads back as the same number; null for what is not finite.
std::string json_number(double value);
std::string json_bool(bool value);
/// Items are JSON texts.
std::string json_array(const std::vector<std::string>& items);
/// Members by key, values JSON texts, keys sorted. On one line, or `indented` with one member a line.
std::string json_object(const std::map<std::string, std::string>& members, bool indented = false);

}  // namespace carillon
