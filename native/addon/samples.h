#pragma once
#include <napi.h>

#include <string>

#include "core/checkpoint/torch_file.h"

namespace carillon::addon {

/// The metadata of a sample: a JSON object of texts, integers, booleans and nulls. Throws kBadCheckpoint for another.
TorchNotes notes_of(const std::string& json);

/// NativeAddon.inspectSamples
Napi::Value inspect_samples(const Napi::CallbackInfo& info);

}  // namespace carillon::addon
