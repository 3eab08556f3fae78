#pragma once
#include <initializer_list>
#include <optional>
#include <string_view>
#include <utility>

namespace carillon {

/// Values of an enum with their names outside of the core.
template <typename Value>
using Choices = std::initializer_list<std::pair<const char*, Value>>;

/// The names of an enum's values, such as those in requests; specialised beside the enum.
template <typename Value>
inline constexpr Choices<Value> kChoices = {};

/// The value with this name; nullopt if there is none.
template <typename Value>
std::optional<Value> find_choice(Choices<Value> choices, std::string_view name) {
  for (const auto& [own, value] : choices) {
    if (name == own) return value;
  }
  return std::nullopt;
}

template <typename Value>
const char* name_of_choice(Value wanted) {
  for (const auto& [name, value] : kChoices<Value>) {
    if (value == wanted) return name;
  }
  return "";
}

}  // namespace carillon
