#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace carillon {

/// A parsed JSON document. Parsing is strict (RFC 8259: UTF-8, no comments, trailing commas, duplicate keys or NaN).
/// A typed getter throws kBadCheckpoint if the value has another type. The message names the file and the key path,
/// e.g. "config.json: rope_scaling.rope_theta is a string, expected a number".
class Json {
 public:
  /// `text` must be UTF-8. `source` names it in errors, usually its path.
  static Json parse(std::string_view text, const std::string& source);
  static Json read_file(const std::string& path);

  bool is_null() const;
  bool is_bool() const;
  bool is_integer() const;  // without fraction, within int64
  bool is_string() const;
  bool is_array() const;
  bool is_object() const;
  /// Position of the value in the text, in bytes. Members of an object are sorted by key; this gives their order in the
  /// file.
  size_t offset() const { return offset_; }

  bool as_bool() const;
  int64_t as_int() const;  // a number without fraction, within int64
  double as_double() const;
  const std::string& as_string() const;
  const std::vector<Json>& as_array() const;
  const std::map<std::string, Json>& as_object() const;

  /// Whether an object has a member that is not null.
  bool has(const std::string& key) const;
  /// Member of an object. Throws if it is missing.
  const Json& at(const std::string& key) const;

  int64_t get_int(const std::string& key) const { return at(key).as_int(); }
  int64_t get_int(const std::string& key, int64_t fallback) const { return has(key) ? get_int(key) : fallback; }
  double get_double(const std::string& key) const { return at(key).as_double(); }
  double get_double(const std::string& key, double fallback) const { return has(key) ? get_double(key) : fallback; }
  bool get_bool(const std::string& key, bool fallback) const { return has(key) ? at(key).as_bool() : fallback; }
  std::string get_string(const std::string& key, const std::string& fallback) const {
    return has(key) ? at(key).as_string() : fallback;
  }
  std::vector<int64_t> get_ints(const std::string& key) const;

 private:
  friend class JsonParser;
  struct Integer {
    int64_t value;
  };
  using Array = std::vector<Json>;
  using Object = std::map<std::string, Json>;
  [[noreturn]] void wrong_type(const char* expected) const;
  template <typename T>
  const T& as(const char* expected) const;

  std::variant<std::nullptr_t, bool, Integer, double, std::string, std::shared_ptr<const Array>,
               std::shared_ptr<const Object>>
      value_;
  std::shared_ptr<const std::string> source_;
  std::string path_;
  size_t offset_ = 0;
};

// Writers of JSON text. Each function returns the text of one value.

/// String, quoted and escaped. `text` is UTF-8.
std::string json_string(std::string_view text);
/// Number: the shortest text that parses to the same value. "null" if the value is not finite.
std::string json_number(double value);
std::string json_bool(bool value);
/// Array. Each item is the JSON text of one element.
std::string json_array(const std::vector<std::string>& items);
/// Object with sorted keys. `members` maps each key to the JSON text of its value. The object is one line, or has one
/// line per member if `indented`.
std::string json_object(const std::map<std::string, std::string>& members, bool indented = false);

}  // namespace carillon
