#include "core/checkpoint/json.h"

#include <charconv>
#include <cmath>
#include <cstdio>

#include "core/checkpoint/file_io.h"
#include "core/runtime/error.h"

namespace carillon {
namespace {

constexpr int kMaxDepth = 64;  // deeper than any config; bounds the recursion on a hostile file
constexpr size_t kMaxFileBytes = 64 << 20;  // the index of a large checkpoint has a few megabytes

void append_utf8(std::string& out, uint32_t code_point) {
  const auto tail = [&](int shift) { out.push_back(static_cast<char>(0x80 | ((code_point >> shift) & 0x3F))); };
  if (code_point < 0x80) {
    out.push_back(static_cast<char>(code_point));
  } else if (code_point < 0x800) {
    out.push_back(static_cast<char>(0xC0 | (code_point >> 6)));
    tail(0);
  } else if (code_point < 0x10000) {
    out.push_back(static_cast<char>(0xE0 | (code_point >> 12)));
    tail(6), tail(0);
  } else {
    out.push_back(static_cast<char>(0xF0 | (code_point >> 18)));
    tail(12), tail(6), tail(0);
  }
}

/// Length in bytes of the UTF-8 character (RFC 3629) at the start of `text`; 0 if the bytes are not UTF-8.
size_t utf8_length(std::string_view text) {
  const auto byte = [&](size_t index) { return index < text.size() ? static_cast<uint8_t>(text[index]) : 0; };
  const int lead = byte(0), second = byte(1);
  if (lead < 0x80) return 1;
  const bool is_overlong = lead < 0xC2 || (lead == 0xE0 && second < 0xA0) || (lead == 0xF0 && second < 0x90);
  const bool is_surrogate = lead == 0xED && second > 0x9F;
  const bool is_beyond_unicode = lead > 0xF4 || (lead == 0xF4 && second > 0x8F);
  if (is_overlong || is_surrogate || is_beyond_unicode) return 0;
  const size_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  for (size_t index = 1; index < length; ++index) {
    if ((byte(index) & 0xC0) != 0x80) return 0;
  }
  return length;
}

std::string member_path(const std::string& path, const std::string& key) {
  return path.empty() ? key : path + "." + key;
}

}  // namespace

/// Recursive descent over the RFC 8259 grammar.
class JsonParser {
 public:
  JsonParser(std::string_view text, const std::string& source)
      : text_(text), source_(std::make_shared<const std::string>(source)) {}

  Json document() {
    for (size_t length = 0; at_ < text_.size(); at_ += length) {
      length = utf8_length(text_.substr(at_));
      if (length == 0) bad("not UTF-8");
    }
    at_ = 0;
    Json json = value("", 0);
    skip_space();
    if (at_ != text_.size()) bad("unexpected text after the end");
    return json;
  }

 private:
  [[noreturn]] void bad(const std::string& what) const {
    fail(ErrorCode::kBadCheckpoint, *source_ + ": not JSON at byte " + std::to_string(at_) + ": " + what);
  }

  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' || text_[at_] == '\r'))
      ++at_;
  }
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool take(char expected) {
    if (peek() != expected) return false;
    ++at_;
    return true;
  }
  void expect(char expected) {
    if (!take(expected)) bad(std::string("expected '") + expected + "'");
  }
  bool take_word(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }

  Json value(const std::string& path, int depth) {
    if (depth > kMaxDepth) bad("nested too deeply");
    skip_space();
    Json json;
    json.source_ = source_;
    json.path_ = path;
    json.offset_ = at_;
    const char next = peek();
    if (next == '{') {
      json.value_ = object(path, depth);
    } else if (next == '[') {
      json.value_ = array(path, depth);
    } else if (next == '"') {
      json.value_ = string();
    } else if (take_word("true")) {
      json.value_ = true;
    } else if (take_word("false")) {
      json.value_ = false;
    } else if (take_word("null")) {
      json.value_ = nullptr;
    } else {
      number(json);
    }
    return json;
  }

  std::shared_ptr<const Json::Object> object(const std::string& path, int depth) {
    auto members = std::make_shared<Json::Object>();
    expect('{');
    skip_space();
    if (take('}')) return members;
    do {
      skip_space();
      std::string key = string();
      skip_space();
      expect(':');
      Json member = value(member_path(path, key), depth + 1);
      if (!members->emplace(std::move(key), std::move(member)).second) bad("a key appears twice in one object");
      skip_space();
    } while (take(','));
    expect('}');
    return members;
  }

  std::shared_ptr<const Json::Array> array(const std::string& path, int depth) {
    auto items = std::make_shared<Json::Array>();
    expect('[');
    skip_space();
    if (take(']')) return items;
    do {
      items->push_back(value(path + "[" + std::to_string(items->size()) + "]", depth + 1));
      skip_space();
    } while (take(','));
    expect(']');
    return items;
  }

  std::string string() {
    expect('"');
    std::string out;
    while (!take('"')) {
      if (at_ == text_.size()) bad("a string does not end");
      const char c = text_[at_++];
      if (static_cast<unsigned char>(c) < 0x20) bad("a control character in a string");
      if (c == '\\') {
        escape(out);
      } else {
        out.push_back(c);
      }
    }
    return out;
  }

  void escape(std::string& out) {
    constexpr std::string_view kNames = "\"\\/bfnrt", kValues = "\"\\/\b\f\n\r\t";
    const char name = peek();
    if (const size_t index = kNames.find(name); index != kNames.npos && name != '\0') {
      ++at_;
      out.push_back(kValues[index]);
      return;
    }
    if (!take('u')) bad("unknown escape");
    uint32_t code_point = hex4();
    if (code_point >= 0xD800 && code_point < 0xDC00) {
      if (!take_word("\\u")) bad("half of a surrogate pair");
      const uint32_t low = hex4();
      if (low < 0xDC00 || low > 0xDFFF) bad("half of a surrogate pair");
      code_point = 0x10000 + ((code_point - 0xD800) << 10) + (low - 0xDC00);
    } else if (code_point >= 0xDC00 && code_point <= 0xDFFF) {
      bad("half of a surrogate pair");
    }
    append_utf8(out, code_point);
  }

  uint32_t hex4() {
    uint32_t code = 0;
    const std::string_view digits = text_.substr(at_, 4);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
    if (digits.size() != 4 || error != std::errc() || end != digits.data() + 4) bad("expected four hexadecimal digits");
    at_ += 4;
    return code;
  }

  size_t digits() {
    const size_t begin = at_;
    while (peek() >= '0' && peek() <= '9') ++at_;
    return at_ - begin;
  }

  void number(Json& json) {
    const size_t begin = at_;
    take('-');
    const size_t integer_begin = at_;
    const size_t integer_digits = digits();
    if (integer_digits == 0) bad("expected a value");
    if (integer_digits > 1 && text_[integer_begin] == '0') bad("a number with a leading zero");
    bool integer = true;
    if (take('.')) {
      integer = false;
      if (digits() == 0) bad("expected digits after the decimal point");
    }
    if (peek() == 'e' || peek() == 'E') {
      integer = false;
      ++at_;
      if (peek() == '+' || peek() == '-') ++at_;
      if (digits() == 0) bad("expected digits in the exponent");
    }
    const char* first = text_.data() + begin;
    const char* last = text_.data() + at_;
    int64_t whole = 0;
    if (integer && std::from_chars(first, last, whole).ec == std::errc()) {
      json.value_ = Json::Integer{whole};
      return;
    }
    double real = 0;
    if (std::from_chars(first, last, real).ec != std::errc()) bad("a number out of range");
    json.value_ = real;
  }

  std::string_view text_;
  size_t at_ = 0;
  std::shared_ptr<const std::string> source_;
};

Json Json::parse(std::string_view text, const std::string& source) { return JsonParser(text, source).document(); }

Json Json::read_file(const std::string& path) {
  const auto file = MappedFile::open(path);
  if (file->size() > kMaxFileBytes) {
    fail(ErrorCode::kBadCheckpoint, path + ": has " + std::to_string(file->size()) + " bytes, more than the " +
                                        std::to_string(kMaxFileBytes) + " that a JSON file may have");
  }
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  std::string_view text(file->data(), file->size());
  if (text.substr(0, kByteOrderMark.size()) == kByteOrderMark) text.remove_prefix(kByteOrderMark.size());
  return parse(text, path);
}

void Json::wrong_type(const char* expected) const {
  static constexpr const char* kNames[] = {"null",     "a boolean", "an integer", "a fraction",
                                           "a string", "an array",  "an object"};
  fail(ErrorCode::kBadCheckpoint, *source_ + ": " + (path_.empty() ? "the document" : path_) + " is " +
                                      kNames[value_.index()] + ", expected " + expected);
}

bool Json::is_null() const { return std::holds_alternative<std::nullptr_t>(value_); }
bool Json::is_bool() const { return std::holds_alternative<bool>(value_); }
bool Json::is_integer() const { return std::holds_alternative<Integer>(value_); }
bool Json::is_string() const { return std::holds_alternative<std::string>(value_); }
bool Json::is_array() const { return std::holds_alternative<std::shared_ptr<const Array>>(value_); }
bool Json::is_object() const { return std::holds_alternative<std::shared_ptr<const Object>>(value_); }

template <typename T>
const T& Json::as(const char* expected) const {
  if (const T* value = std::get_if<T>(&value_)) return *value;
  wrong_type(expected);
}

bool Json::as_bool() const { return as<bool>("a boolean"); }
int64_t Json::as_int() const { return as<Integer>("an integer").value; }
double Json::as_double() const { return is_integer() ? static_cast<double>(as_int()) : as<double>("a number"); }
const std::string& Json::as_string() const { return as<std::string>("a string"); }
const std::vector<Json>& Json::as_array() const { return *as<std::shared_ptr<const Array>>("an array"); }
const std::map<std::string, Json>& Json::as_object() const { return *as<std::shared_ptr<const Object>>("an object"); }

bool Json::has(const std::string& key) const {
  const auto& members = as_object();
  const auto member = members.find(key);
  return member != members.end() && !member->second.is_null();
}

const Json& Json::at(const std::string& key) const {
  const auto& members = as_object();
  const auto member = members.find(key);
  if (member == members.end())
    fail(ErrorCode::kBadCheckpoint, *source_ + ": " + member_path(path_, key) + " is missing");
  return member->second;
}

std::vector<int64_t> Json::get_ints(const std::string& key) const {
  std::vector<int64_t> values;
  for (const Json& item : at(key).as_array()) values.push_back(item.as_int());
  return values;
}

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
