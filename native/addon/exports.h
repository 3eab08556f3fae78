#pragma once
#include <napi.h>

// Functions of NativeAddon (src/engine/addon.ts) that addon.cpp exports but does not define itself.
namespace carillon::addon {

/// Implements loadRenderer(options, call).
Napi::Value load_renderer(const Napi::CallbackInfo& info);

/// Implements loadLanguageModel(options, call).
Napi::Value load_language_model(const Napi::CallbackInfo& info);

/// Implements train(options, call).
Napi::Value train(const Napi::CallbackInfo& info);


}  // namespace carillon::addon
