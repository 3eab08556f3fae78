#pragma once
#include <napi.h>

#include <memory>

#include "core/tasks/renderer.h"

namespace carillon::addon {

/// An adapter, and the renderer it was checked against.
struct LoadedAdapter {
  std::shared_ptr<const Adapter> adapter;
  std::weak_ptr<Renderer> renderer;
};

/// NativeAdapter of src/engine/addon.ts.
Napi::Value adapter_to_js(Napi::Env env, LoadedAdapter adapter);

/// Throws a TypeError for anything but a NativeAdapter.
LoadedAdapter adapter_of(const Napi::Value& value);

}  // namespace carillon::addon
