#include "addon/values.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "addon/entry.h"

namespace carillon::addon {
namespace {

constexpr double kLargestSafeInteger = 9007199254740991.0;

}  // namespace

void wrong_type(Napi::Env env, const char* key, const char* expected) {
  throw bad_argument(env, std::string(key) + " must be " + expected);
}

bool has(const Napi::Object& object, const char* key) {
  const auto value = object.Get(key);
  return !value.IsUndefined() && !value.IsNull();
}

std::string text_of(const Napi::Value& value, const char* key) {
  if (!value.IsString()) wrong_type(value.Env(), key, "a string");
  const std::string text = value.As<Napi::String>().Utf8Value();
  if (text.find('\0') != std::string::npos) wrong_type(value.Env(), key, "a string without NUL characters");
  return text;
}

std::string text_of(const Napi::Object& object, const char* key) { return text_of(object.Get(key), key); }

double number_of(const Napi::Object& object, const char* key) {
  const auto value = object.Get(key);
  if (!value.IsNumber()) wrong_type(object.Env(), key, "a number");
  return value.As<Napi::Number>().DoubleValue();
}

int64_t integer_of(const Napi::Object& object, const char* key) {
  const double value = number_of(object, key);
  if (value != std::floor(value) || std::abs(value) > kLargestSafeInteger) wrong_type(object.Env(), key, "an integer");
  return static_cast<int64_t>(value);
}

int32_t int32_of(const Napi::Object& object, const char* key) {
  const int64_t value = integer_of(object, key);
  if (!std::in_range<int32_t>(value)) wrong_type(object.Env(), key, "an integer of 32 bits");
  return static_cast<int32_t>(value);
}

bool flag_of(const Napi::Object& object, const char* key) {
  const auto value = object.Get(key);
  if (!value.IsBoolean()) wrong_type(object.Env(), key, "a boolean");
  return value.As<Napi::Boolean>().Value();
}

std::vector<int32_t> ids_of(const Napi::Value& value, const char* key) {
  if (!value.IsTypedArray() || value.As<Napi::TypedArray>().TypedArrayType() != napi_int32_array) {
    wrong_type(value.Env(), key, "an Int32Array");
  }
  const auto array = value.As<Napi::Int32Array>();
  return {array.Data(), array.Data() + array.ElementLength()};
}

std::vector<int32_t> ids_of(const Napi::Object& object, const char* key) { return ids_of(object.Get(key), key); }

std::vector<std::vector<int32_t>> id_lists_of(const Napi::Object& object, const char* key) {
  return array_of(object.Get(key), key, "an array of Int32Arrays",
                  [key](const Napi::Value& ids) { return ids_of(ids, key); });
}

ModelSource source_of(const Napi::Object& object, const char* key) {
  const auto source = object_of(object, key);
  return {text_of(source, "path"), text_of(source, "prefix"), has(source, "config") ? text_of(source, "config") : ""};
}

Napi::Object object_of(const Napi::Value& value, const char* key) {
  if (!value.IsObject()) wrong_type(value.Env(), key, "an object");
  return value.As<Napi::Object>();
}

Napi::Object object_of(const Napi::Object& object, const char* key) { return object_of(object.Get(key), key); }

Napi::Function function_of(const Napi::Object& object, const char* key) {
  const auto value = object.Get(key);
  if (!value.IsFunction()) wrong_type(object.Env(), key, "a function");
  return value.As<Napi::Function>();
}

namespace {

/// Copies a Float32Array to a tensor [rows, length / rows]. If the length is not a multiple of `rows`, throws the
/// TypeError "`key` must be `shape`".
at::Tensor rows_of(const Napi::Value& value, const char* key, int64_t rows, const char* shape) {
  if (!value.IsTypedArray() || value.As<Napi::TypedArray>().TypedArrayType() != napi_float32_array) {
    wrong_type(value.Env(), key, "a Float32Array");
  }
  const auto array = value.As<Napi::Float32Array>();
  const auto length = static_cast<int64_t>(array.ElementLength());
  if (rows < 1 || length % rows != 0) wrong_type(value.Env(), key, shape);
  const at::Tensor copy = at::empty({rows, length / rows}, at::kFloat);
  std::copy_n(array.Data(), length, copy.mutable_data_ptr<float>());
  return copy;
}

}  // namespace

at::Tensor audio_of(const Napi::Value& value, const char* key) {
  return rows_of(value, key, 2, "planar stereo: left and right channels of equal length");
}

at::Tensor latents_of(const Napi::Value& value, const char* key) {
  const auto latents = object_of(value, key);
  return rows_of(latents.Get("values"), key, integer_of(latents, "frames"), "frames with equal numbers of values");
}

std::vector<double> numbers_of(const Napi::Object& object, const char* key) {
  constexpr const char* kExpected = "an array of numbers";
  return array_of(object.Get(key), key, kExpected, [&](const Napi::Value& value) {
    if (!value.IsNumber()) wrong_type(object.Env(), key, kExpected);
    return value.As<Napi::Number>().DoubleValue();
  });
}

std::vector<std::string> texts_of(const Napi::Object& object, const char* key) {
  constexpr const char* kExpected = "an array of strings";
  return array_of(object.Get(key), key, kExpected, [key](const Napi::Value& text) {
    if (!text.IsString()) wrong_type(text.Env(), key, kExpected);
    return text_of(text, key);
  });
}

uint64_t seed_of(const Napi::Object& object, const char* key) {
  const Napi::Value value = object.Get(key);
  bool fits = value.IsBigInt();
  const uint64_t seed = fits ? value.As<Napi::BigInt>().Uint64Value(&fits) : 0;
  if (!fits) wrong_type(value.Env(), key, "a BigInt in 0 .. 2^64 - 1");
  return seed;
}

Napi::Value array_to_js(Napi::Env env, const at::Tensor& tensor) {
  auto* const owner = new at::Tensor(tensor);
  const auto buffer = Napi::ArrayBuffer::New(
      env, owner->data_ptr(), owner->nbytes(), [](Napi::Env, void*, at::Tensor* held) { delete held; }, owner);
  return Napi::Float32Array::New(env, static_cast<size_t>(owner->numel()), buffer, 0);
}

Napi::Value array_to_js(Napi::Env env, const std::vector<float>& numbers) {
  auto array = Napi::Float32Array::New(env, numbers.size());
  std::copy(numbers.begin(), numbers.end(), array.Data());
  return array;
}

Napi::Value array_to_js(Napi::Env env, const std::vector<std::string>& texts) {
  auto array = Napi::Array::New(env, texts.size());
  for (uint32_t i = 0; i < texts.size(); ++i) array.Set(i, texts[i]);
  return array;
}

Napi::Value array_to_js(Napi::Env env, const std::vector<int32_t>& ids) {
  auto array = Napi::Int32Array::New(env, ids.size());
  std::copy(ids.begin(), ids.end(), array.Data());
  return array;
}

}  // namespace carillon::addon
