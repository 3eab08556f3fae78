#include "addon/samples.h"

#include "addon/call.h"
#include "addon/values.h"
#include "core/checkpoint/config.h"
#include "core/checkpoint/json.h"
#include "core/training/training_sample.h"

namespace carillon::addon {
namespace {

/// Integers, texts, booleans and nulls are all that addon.ts admits.
TorchScalar note_of(const Json& value) {
  if (value.is_null()) return nullptr;
  if (value.is_bool()) return value.as_bool();
  if (value.is_string()) return value.as_string();
  return value.as_int();
}

Napi::Value to_js(Napi::Env env, const std::vector<SampleInfo>& infos) {
  auto result = Napi::Array::New(env);
  for (const auto& info : infos) {
    auto entry = Napi::Object::New(env);
    entry.Set("frames", static_cast<double>(info.frames));
    entry.Set("conditionTokens", static_cast<double>(info.condition_tokens));
    result.Set(result.Length(), entry);
  }
  return result;
}

}  // namespace

TorchNotes notes_of(const std::string& json) {
  const Json metadata = Json::parse(json, "metadata");
  TorchNotes notes;
  for (const auto& [name, value] : metadata.as_object()) notes[name] = note_of(value);
  return notes;
}

Napi::Value inspect_samples(const Napi::CallbackInfo& info) {
  const std::string directory = info[0].ToString();
  const auto paths = texts_of(info[1], "samples");
  return Call::start(info.Env(), Lane::training(), info[2], [=](const Control& control) {
    const auto config = DitConfig::read(directory);
    std::vector<SampleInfo> infos;
    for (const auto& path : paths) {
      control.check();
      infos.push_back(inspect_sample(path, config));
    }
    return [infos](Napi::Env env) { return to_js(env, infos); };
  });
}

}  // namespace carillon::addon
