#pragma once
#include <ATen/core/Tensor.h>
#include <napi.h>

#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "core/checkpoint/model_source.h"
#include "core/runtime/choice.h"

namespace carillon::addon {

// Converts JS values to the core's types. A value of the wrong type throws a TypeError with the code BAD_ARGUMENT that
// names the property. TypeScript checks the types of src/engine/addon.ts at compile time only.

/// Throws the TypeError "`key` must be `expected`".
[[noreturn]] void wrong_type(Napi::Env env, const char* key, const char* expected);

/// Converts a string without NUL characters, which would end paths and names early.
std::string text_of(const Napi::Object& object, const char* key);
std::string text_of(const Napi::Value& value, const char* key);
double number_of(const Napi::Object& object, const char* key);
int64_t integer_of(const Napi::Object& object, const char* key);
int32_t int32_of(const Napi::Object& object, const char* key);
bool flag_of(const Napi::Object& object, const char* key);
/// Copies an Int32Array.
std::vector<int32_t> ids_of(const Napi::Object& object, const char* key);
std::vector<int32_t> ids_of(const Napi::Value& value, const char* key);
/// Copies an array of Int32Arrays.
std::vector<std::vector<int32_t>> id_lists_of(const Napi::Object& object, const char* key);
/// Copies an array of numbers.
std::vector<double> numbers_of(const Napi::Object& object, const char* key);
/// Copies an array of strings.
std::vector<std::string> texts_of(const Napi::Object& object, const char* key);
/// Converts a BigInt in 0 .. 2^64 - 1.
uint64_t seed_of(const Napi::Object& object, const char* key);
bool has(const Napi::Object& object, const char* key);
Napi::Object object_of(const Napi::Object& object, const char* key);
Napi::Object object_of(const Napi::Value& value, const char* key);
Napi::Function function_of(const Napi::Object& object, const char* key);

/// Converts each item of an array with `convert`. If `value` is not an array, throws the TypeError "`key` must be
/// `expected`".
template <typename Convert>
auto array_of(const Napi::Value& value, const char* key, const char* expected, const Convert& convert) {
  if (!value.IsArray()) wrong_type(value.Env(), key, expected);
  const auto array = value.As<Napi::Array>();
  std::vector<std::invoke_result_t<Convert, Napi::Value>> items;
  for (uint32_t i = 0; i < array.Length(); ++i) items.push_back(convert(array.Get(i)));
  return items;
}

/// Looks up the string at `key` in `choices` and returns its value. Throws a TypeError that lists the choices if the
/// string is not one of them.
template <typename Value>
Value choice_of(const Napi::Object& object, const char* key, Choices<Value> choices) {
  if (const auto value = find_choice(choices, text_of(object, key))) return *value;
  std::string words;
  for (const auto& [word, value] : choices) words += (words.empty() ? "" : ", ") + std::string(word);
  wrong_type(object.Env(), key, ("one of " + words).c_str());
}

/// Converts a ModelSource object of src/engine/addon.ts.
ModelSource source_of(const Napi::Object& object, const char* key);

/// Copies planar stereo audio from a Float32Array to a tensor [2, samples] float32. A copy is needed because the caller
/// may change or transfer the array before the worker thread reads it.
at::Tensor audio_of(const Napi::Value& value, const char* key);

/// Copies a Latents object (src/engine/addon.ts) to a tensor [frames, C] float32.
at::Tensor latents_of(const Napi::Value& value, const char* key);

/// Creates a Float32Array that shares the memory of a contiguous float32 CPU tensor. The tensor is released when the
/// array is garbage-collected.
Napi::Value array_to_js(Napi::Env env, const at::Tensor& tensor);

/// Builds a JS object. Integers become numbers.
class NewObject {
 public:
  explicit NewObject(Napi::Env env) : object_(Napi::Object::New(env)) {}

  template <typename Value>
  NewObject& set(const char* key, const Value& value) {
    if constexpr (std::is_arithmetic_v<Value> && !std::is_same_v<Value, bool>) {
      object_.Set(key, static_cast<double>(value));
    } else {
      object_.Set(key, value);
    }
    return *this;
  }

  operator Napi::Object() const { return object_; }
  operator Napi::Value() const { return object_; }

 private:
  Napi::Object object_;
};

Napi::Value array_to_js(Napi::Env env, const std::vector<float>& numbers);
Napi::Value array_to_js(Napi::Env env, const std::vector<std::string>& texts);
Napi::Value array_to_js(Napi::Env env, const std::vector<int32_t>& ids);

}  // namespace carillon::addon
