#pragma once
#include <napi.h>

namespace carillon::addon {

/// train(options, call) of src/engine/addon.ts.
Napi::Value train(const Napi::CallbackInfo& info);

}  // namespace carillon::addon
