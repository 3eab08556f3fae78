// Entry point of the addon. Its exports implement NativeAddon of src/engine/addon.ts.
#include <ATen/Context.h>
#include <napi.h>

#include <chrono>
#include <cstdlib>

#include "addon/call.h"
#include "addon/entry.h"
#include "addon/exports.h"
#include "addon/values.h"
#include "core/runtime/device.h"

namespace carillon::addon {
namespace {

/// Maximum time that process exit waits for running model steps to end.
constexpr std::chrono::milliseconds kExitLimit{300};

Napi::Value runtime_info(const Napi::CallbackInfo& info) {
  const auto env = info.Env();
  auto devices = Napi::Array::New(env);
  for (const auto& [name, description, memory_bytes] : list_devices()) {
    const Napi::Value device =
        NewObject(env).set("name", name).set("description", description).set("memoryBytes", memory_bytes);
    devices.Set(devices.Length(), device);
  }
  return NewObject(env)
      .set("libtorchVersion", libtorch_version())
      .set("cpuDtype", dtype_name(choose_placement("cpu", "auto").dtype))
      .set("devices", devices);
}

/// Enables or disables libtorch's flash attention in the whole process.
Napi::Value use_flash_attention(const Napi::CallbackInfo& info) {
  if (!info[0].IsBoolean()) wrong_type(info.Env(), "enabled", "a boolean");
  at::globalContext().setSDPUseFlash(info[0].As<Napi::Boolean>());
  return info.Env().Undefined();
}

/// Stops all calls when the process exits, because no thread may compute while libtorch's static objects are destroyed.
/// If a call still runs after kExitLimit, exits at once without destroying these objects.
void leave_process(int exit_code) {
  if (!stop_all_calls(kExitLimit)) std::_Exit(exit_code);
}

Napi::Object export_all(Napi::Env env, Napi::Object exports) {
  const auto add = [&](const char* name, Napi::Value (*body)(const Napi::CallbackInfo&)) {
    exports.Set(name, entry(env, name, body));
  };
  add("runtimeInfo", runtime_info);
  add("useFlashAttention", use_flash_attention);
  add("loadRenderer", load_renderer);
  add("loadLanguageModel", load_language_model);
  add("train", train);
  env.AddCleanupHook([] { stop_all_calls(std::chrono::hours(1)); });
  // The clean-up hook above is not enough, because process.exit() skips it.
  const auto process = env.Global().Get("process").As<Napi::Object>();
  const auto on_exit = entry(env, "onExit", [](const Napi::CallbackInfo& info) {
    leave_process(info[0].IsNumber() ? info[0].As<Napi::Number>().Int32Value() : 0);
    return info.Env().Undefined();
  });
  process.Get("once").As<Napi::Function>().Call(process, {Napi::String::New(env, "exit"), on_exit});
  return exports;
}

}  // namespace

NODE_API_MODULE(carillon, export_all)

}  // namespace carillon::addon
