#pragma once
#include <napi.h>

namespace carillon::addon {

/// loadRenderer(options, call) of src/engine/addon.ts.
Napi::Value load_renderer(const Napi::CallbackInfo& info);

}  // namespace carillon::addon
