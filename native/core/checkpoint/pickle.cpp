#include "core/checkpoint/pickle.h"

#include <ATen/ATen.h>

#include <array>
#include <cstring>
#include <utility>

#include "core/runtime/error.h"

namespace carillon {
namespace {

/// Size limit of a pickle. Data sets need a few kilobytes, mostly lyrics.
constexpr size_t kMaxBytes = 4 << 20;
/// Limit of nested values. Protects the stack, because destructors of nested values recurse.
constexpr int kMaxNesting = 16;

using Text = PickleValue::Text;
using Tuple = PickleValue::Tuple;
using Dictionary = PickleValue::Dictionary;
using Global = PickleValue::Global;
using Opaque = PickleValue::Opaque;
using Tensor = std::shared_ptr<const PickleTensor>;

constexpr std::array<std::pair<const char*, at::ScalarType>, 10> kStorages = {{
    {"torch FloatStorage", at::kFloat},
    {"torch DoubleStorage", at::kDouble},
    {"torch HalfStorage", at::kHalf},
    {"torch BFloat16Storage", at::kBFloat16},
    {"torch BoolStorage", at::kBool},
    {"torch LongStorage", at::kLong},
    {"torch IntStorage", at::kInt},
    {"torch ShortStorage", at::kShort},
    {"torch CharStorage", at::kChar},
    {"torch ByteStorage", at::kByte},
}};

/// Interpreter of pickle opcodes: https://github.com/python/cpython/blob/main/Lib/pickletools.py
class Unpickler {
 public:
  Unpickler(std::string_view bytes, const std::string& source) : bytes_(bytes), source_(source) {}

  PickleValue run() {
    if (bytes_.size() > kMaxBytes) bad("larger than the limit of " + std::to_string(kMaxBytes) + " bytes");
    while (true) {
      const auto opcode = number<uint8_t>();
      if (opcode == '.') break;
      step(opcode);
    }
    if (stack_.size() != 1 || !marks_.empty()) bad("it ends in the middle of a value");
    return pop();
  }

 private:
  [[noreturn]] void bad(const std::string& what) const {
    fail(ErrorCode::kBadCheckpoint, source_ + ": not a pickle of plain data: " + what);
  }

  std::string_view take(size_t count) {
    if (count > bytes_.size() - at_) bad("it is truncated");
    const auto part = bytes_.substr(at_, count);
    at_ += count;
    return part;
  }
  template <typename T>
  T number() {
    T value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::string_view line() {
    const size_t end = bytes_.find('\n', at_);
    if (end == std::string_view::npos) bad("it is truncated");
    const auto text = take(end - at_);
    take(1);
    return text;
  }
  double big_endian_double() {
    uint64_t bits = 0;
    for (const char byte : take(sizeof bits)) bits = bits << 8 | static_cast<uint8_t>(byte);
    double value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  }
  /// Reads an integer in two's complement. torch.save uses this form for integers beyond 32 bits.
  int64_t long_integer() {
    const auto digits = take(number<uint8_t>());
    if (digits.size() > sizeof(int64_t)) bad("an integer does not fit 64 bits");
    uint64_t bits = !digits.empty() && (digits.back() & 0x80) ? ~uint64_t{0} : 0;
    for (size_t i = digits.size(); i-- > 0;) bits = bits << 8 | static_cast<uint8_t>(digits[i]);
    return static_cast<int64_t>(bits);
  }

  void push(PickleValue value) { stack_.push_back(std::move(value)); }
  void push_text(std::string_view text) { push({std::make_shared<const std::string>(text)}); }
  PickleValue pop() {
    if (stack_.empty() || (!marks_.empty() && stack_.size() == marks_.back())) {
      bad("an opcode needs more values than the stack has");
    }
    PickleValue value = std::move(stack_.back());
    stack_.pop_back();
    return value;
  }
  std::vector<PickleValue> pop_many(size_t count) {
    std::vector<PickleValue> values(count);
    for (size_t i = count; i-- > 0;) values[i] = pop();
    return values;
  }
  std::vector<PickleValue> pop_to_mark() {
    if (marks_.empty()) bad("a mark is missing");
    auto values = pop_many(stack_.size() - marks_.back());
    marks_.pop_back();
    return values;
  }
  template <typename T>
  T expect(const PickleValue& value, const char* what) const {
    const T* const found = value.as<T>();
    if (!found) bad(std::string(what) + " has the wrong type");
    return *found;
  }
  void hold(PickleValue& holder, const PickleValue& held) const {
    holder.depth = std::max(holder.depth, held.depth + 1);
    if (holder.depth > kMaxNesting) bad("values are nested too deeply");
  }

  void step(uint8_t opcode) {
    switch (opcode) {
      case 0x80:
        return check_protocol(number<uint8_t>());
      case 0x95:  // FRAME
        return void(number<uint64_t>());
      // constants
      case 'N':
        return push({nullptr});
      case 0x88:
      case 0x89:
        return push({opcode == 0x88});
      case 'K':
        return push({int64_t{number<uint8_t>()}});
      case 'M':
        return push({int64_t{number<uint16_t>()}});
      case 'J':
        return push({int64_t{number<int32_t>()}});
      case 0x8a:
        return push({long_integer()});
      case 'G':
        return push({big_endian_double()});
      case 'X':
        return push_text(take(number<uint32_t>()));
      case 0x8c:
        return push_text(take(number<uint8_t>()));
      // Opcodes of tuples, dictionaries and lists.
      case '(':
        return marks_.push_back(stack_.size());
      case ')':
        return push_tuple({});
      case 0x85:
      case 0x86:
      case 0x87:
        return push_tuple(pop_many(opcode - 0x84));
      case 't':
        return push_tuple(pop_to_mark());
      case ']':
        return push({Opaque{}});
      case '}':
        return push_dictionary();
      case 'a':  // APPEND: drops the item, because no caller needs lists
        return void(pop());
      case 'e':
        return void(pop_to_mark());
      case 's':
        return set_items(pop_many(2));
      case 'u':
        return set_items(pop_to_mark());
      // Opcodes of the memo, which stores values for later references.
      case 'q':
        return remember(number<uint8_t>());
      case 'r':
        return remember(number<uint32_t>());
      case 0x94:
        return remember(static_cast<uint32_t>(memo_.size()));
      case 'h':
        return recall(number<uint8_t>());
      case 'j':
        return recall(number<uint32_t>());
      // objects
      case 'c':
        return push_global_of_lines();
      case 0x93:  // STACK_GLOBAL
        return push_global_of_texts(pop_many(2));
      case 'Q':
        return push({storage_of(pop())});
      case 'R':
        return rebuild(pop_many(2));
      case 'b':  // BUILD: sets attributes of an OrderedDict, which state_dict() returns
        return drop_attributes(pop_many(2));
      default:
        bad("opcode " + std::to_string(opcode) + " is not allowed");
    }
  }

  void check_protocol(int protocol) const {
    if (protocol < 2 || protocol > 5) bad("protocol " + std::to_string(protocol) + " is not supported");
  }

  void push_tuple(std::vector<PickleValue> items) {
    PickleValue tuple;
    for (const auto& item : items) hold(tuple, item);
    tuple.value = std::make_shared<const std::vector<PickleValue>>(std::move(items));
    push(std::move(tuple));
  }
  void push_dictionary() { push({std::make_shared<std::map<std::string, PickleValue>>()}); }

  void set_items(std::vector<PickleValue> items) {
    PickleValue holder = pop();
    const auto dictionary = expect<Dictionary>(holder, "a dictionary");
    if (items.size() % 2 != 0) bad("a dictionary has a key without value");
    for (size_t i = 0; i < items.size(); i += 2) {
      hold(holder, items[i + 1]);
      (*dictionary)[*expect<Text>(items[i], "the key of a dictionary")] = std::move(items[i + 1]);
    }
    push(std::move(holder));
  }

  void remember(uint32_t index) {
    PickleValue value = pop();
    // Does not remember dictionaries: a dictionary that contains itself would never be freed.
    memo_[index] = value.as<Dictionary>() ? PickleValue{Opaque{}} : value;
    push(std::move(value));
  }
  void recall(uint32_t index) {
    const auto entry = memo_.find(index);
    if (entry == memo_.end()) bad("it refers to an undefined memo entry");
    push(entry->second);
  }

  void push_global_of_lines() {
    const std::string module(line());
    push({Global{module + " " + std::string(line())}});
  }
  void push_global_of_texts(const std::vector<PickleValue>& names) {
    push({Global{*expect<Text>(names[0], "a module") + " " + *expect<Text>(names[1], "a name")}});
  }

  /// Reads the tuple ("storage", type, key, device, elements) of a storage.
  PickleStorage storage_of(const PickleValue& id) const {
    const auto& parts = *expect<Tuple>(id, "a storage");
    if (parts.size() != 5 || *expect<Text>(parts[0], "a storage") != "storage")
      bad("a storage is malformed");
    const auto type = expect<Global>(parts[1], "the type of a storage").name;
    for (const auto& [name, dtype] : kStorages) {
      if (type != name) continue;
      return {*expect<Text>(parts[2], "the key of a storage"), dtype, expect<int64_t>(parts[4], "a storage's size")};
    }
    bad("storage type '" + type + "' is not supported");
  }

  /// Handles a function call. Accepts only three functions that describe data, and does not execute them.
  void rebuild(const std::vector<PickleValue>& call) {
    const auto function = expect<Global>(call[0], "a function").name;
    const auto& arguments = *expect<Tuple>(call[1], "a list of arguments");
    if (function == "collections OrderedDict" && arguments.empty()) return push_dictionary();
    if (function == "torch._utils _rebuild_parameter") return push_parameter(arguments);
    if (function != "torch._utils _rebuild_tensor_v2") bad("it calls '" + function + "', which is not allowed");
    // The arguments are storage, offset, sizes, strides, requires_grad and hooks. torch 2 may add metadata.
    if (arguments.size() < 6 || arguments.size() > 7) bad("a tensor has the wrong number of arguments");
    auto tensor = std::make_shared<PickleTensor>();
    tensor->storage = expect<PickleStorage>(arguments[0], "a tensor's storage");
    tensor->offset = expect<int64_t>(arguments[1], "a tensor's offset");
    tensor->sizes = integers(arguments[2]);
    tensor->strides = integers(arguments[3]);
    push({Tensor(std::move(tensor))});
  }
  /// Replaces a torch.nn.Parameter by its tensor. The arguments are tensor, requires_grad and hooks.
  void push_parameter(const std::vector<PickleValue>& arguments) {
    if (arguments.size() != 3) bad("a parameter has the wrong number of arguments");
    push({expect<Tensor>(arguments[0], "a parameter's tensor")});
  }
  void drop_attributes(std::vector<PickleValue> parts) {
    if (!parts[0].as<Dictionary>() || !parts[1].as<Dictionary>()) bad("it sets attributes of an object");
    push(std::move(parts[0]));
  }
  std::vector<int64_t> integers(const PickleValue& value) const {
    std::vector<int64_t> numbers;
    for (const auto& item : *expect<Tuple>(value, "a tensor's shape")) {
      numbers.push_back(expect<int64_t>(item, "a tensor's size or stride"));
    }
    return numbers;
  }

  std::string_view bytes_;
  const std::string& source_;
  size_t at_ = 0;
  std::vector<PickleValue> stack_;
  std::vector<size_t> marks_;
  std::map<uint32_t, PickleValue> memo_;
};

}  // namespace

PickleValue unpickle(std::string_view bytes, const std::string& source) { return Unpickler(bytes, source).run(); }

}  // namespace carillon
