#pragma once
#include <ATen/core/Tensor.h>
#include <napi.h>

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/checkpoint/torch_file.h"

namespace carillon::addon {

// JS values to the core's types. A value of the wrong type throws a TypeError that names the property:
// the typed face in src/engine/addon.ts is checked at compile time only.

std::string text_of(const Napi::Object& object, const char* key);
double number_of(const Napi::Object& object, const char* key);
int64_t integer_of(const Napi::Object& object, const char* key);
bool flag_of(const Napi::Object& object, const char* key);
/// An Int32Array.
std::vector<int32_t> ids_of(const Napi::Object& object, const char* key);
std::vector<int32_t> ids_of(const Napi::Value& value, const char* key);
/// An array of numbers.
std::vector<double> numbers_of(const Napi::Object& object, const char* key);
/// An array of strings.
std::vector<std::string> texts_of(const Napi::Object& object, const char* key);
std::vector<std::string> texts_of(const Napi::Value& value, const char* key);
/// An array of integers in 0 .. 2^53 - 1.
std::vector<uint64_t> seeds_of(const Napi::Object& object, const char* key);
/// An Array property; nullopt where it is absent.
std::optional<Napi::Array> optional_array(const Napi::Object& object, const char* key);
bool has(const Napi::Object& object, const char* key);
Napi::Object object_of(const Napi::Object& object, const char* key);

/// The value of `key`, one of a few words; a TypeError that lists them for any other.
template <typename Value>
Value choice_of(const Napi::Object& object, const char* key,
                std::initializer_list<std::pair<const char*, Value>> choices) {
  const auto text = text_of(object, key);
  std::string words;
  for (const auto& [word, value] : choices) {
    if (text == word) return value;
    words += (words.empty() ? "" : ", ") + std::string(word);
  }
  throw Napi::TypeError::New(object.Env(), std::string(key) + " must be one of " + words);
}

/// The metadata of a sample: a JSON object of texts, integers, booleans and nulls. Throws kBadCheckpoint for another.
TorchNotes notes_of(const std::string& json);

/// Planar stereo in a Float32Array as [2, samples] float32. A copy, made at once: the lane reads it long after the
/// caller may have changed or transferred its array.
at::Tensor audio_of(const Napi::Object& object, const char* key);
at::Tensor audio_of(const Napi::Value& value, const char* key);

/// A Float32Array over the tensor's memory, which lives until the array is collected: no copy.
/// The tensor is contiguous float32 on the CPU.
Napi::Float32Array float_array(Napi::Env env, const at::Tensor& tensor);

Napi::Array text_array(Napi::Env env, const std::vector<std::string>& texts);
Napi::Int32Array id_array(Napi::Env env, const std::vector<int32_t>& ids);

}  // namespace carillon::addon
