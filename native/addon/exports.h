#pragma once
#include <napi.h>

// What src/engine/addon.ts calls NativeAddon, but for what addon.cpp answers itself.
namespace carillon::addon {

/// loadRenderer(options, call)
Napi::Value load_renderer(const Napi::CallbackInfo& info);

/// loadLanguageModel(options, call)
Napi::Value load_language_model(const Napi::CallbackInfo& info);

/// train(options, call)
Napi::Value train(const Napi::CallbackInfo& info);

/// inspectSamples(modelDirectory, samples, call)
Napi::Value inspect_samples(const Napi::CallbackInfo& info);

}  // namespace carillon::addon
