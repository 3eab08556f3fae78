#pragma once
#include <napi.h>

namespace carillon::addon {

/// loadLanguageModel(options, call) of src/engine/addon.ts.
Napi::Value load_language_model(const Napi::CallbackInfo& info);

}  // namespace carillon::addon
