#include "addon/adapter.h"

#include "addon/values.h"

namespace carillon::addon {
namespace {

/// Tells a NativeAdapter from every other object.
constexpr napi_type_tag kTag = {0x6361'7269'6c6c'6f6e, 0x6164'6170'7465'7200};

class AdapterObject : public Napi::ObjectWrap<AdapterObject> {
 public:
  explicit AdapterObject(const Napi::CallbackInfo& info) : Napi::ObjectWrap<AdapterObject>(info) {}
  LoadedAdapter loaded;
};

Napi::Value info_of(Napi::Env env, const Adapter& adapter) {
  auto object = Napi::Object::New(env);
  object.Set("kind", adapter.kind == Adapter::Kind::kLokr ? "lokr" : "lora");
  object.Set("moduleCount", static_cast<double>(adapter.modules.size()));
  object.Set("unmatchedTensors", text_array(env, adapter.unmatched_tensors));
  return object;
}

}  // namespace

Napi::Value adapter_to_js(Napi::Env env, LoadedAdapter adapter) {
  const auto object = AdapterObject::DefineClass(env, "NativeAdapter", {}).New({});
  object.TypeTag(&kTag);
  object.Set("info", info_of(env, *adapter.adapter));
  AdapterObject::Unwrap(object)->loaded = std::move(adapter);
  return object;
}

LoadedAdapter adapter_of(const Napi::Value& value) {
  if (!value.IsObject() || !value.As<Napi::Object>().CheckTypeTag(&kTag)) {
    throw Napi::TypeError::New(value.Env(), "adapter must be a NativeAdapter");
  }
  return AdapterObject::Unwrap(value.As<Napi::Object>())->loaded;
}

}  // namespace carillon::addon
