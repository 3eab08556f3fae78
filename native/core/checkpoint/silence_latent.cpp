#include <ATen/ATen.h>

#include <cstring>
#include <filesystem>

#include "core/checkpoint/checkpoint.h"
#include "core/checkpoint/mapped_file.h"
#include "core/checkpoint/stored_zip.h"
#include "core/runtime/error.h"

namespace carillon {

namespace {

constexpr const char* kBuffer = "silence_latent";  // of the diffusers condition encoder, [1, T, C]

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

at::Tensor read_archive(const std::string& path, int64_t channels) {
  const auto file = MappedFile::open(path);
  const StoredEntry* storage = nullptr;
  const auto entries = list_stored_zip(*file, path);
  for (const auto& entry : entries) {
    if (!ends_with(entry.name, "/data/0")) continue;
    if (storage) fail(ErrorCode::kBadCheckpoint, path + ": holds more than one tensor");
    storage = &entry;
  }
  if (!storage) fail(ErrorCode::kBadCheckpoint, path + ": not a torch archive: it has no entry '*/data/0'");
  const size_t frame_bytes = static_cast<size_t>(channels) * sizeof(float);
  if (storage->size == 0 || storage->size % frame_bytes != 0) {
    fail(ErrorCode::kBadCheckpoint, path + ": " + std::to_string(storage->size) + " bytes are no float32 frames of " +
                                        std::to_string(channels) + " channels");
  }
  const auto frames = static_cast<int64_t>(storage->size / frame_bytes);
  at::Tensor stored = at::empty({1, channels, frames}, at::kFloat);
  std::memcpy(stored.data_ptr(), file->data() + storage->begin, storage->size);
  return stored.transpose(1, 2).contiguous();
}

}  // namespace

at::Tensor read_silence_latent(const Checkpoint& checkpoint, int64_t channels) {
  const auto weights = checkpoint.weights(Placement{});
  if (weights.has(kBuffer)) {
    const auto shape = weights.shape(kBuffer);
    if (shape.size() != 3) {
      fail(ErrorCode::kBadCheckpoint, checkpoint.directory() + ": tensor 'silence_latent' is not [1, T, C]");
    }
    return weights.get(kBuffer, {1, shape[1], channels}).contiguous();
  }
  const auto path = std::filesystem::path(checkpoint.directory()) / "silence_latent.pt";
  return read_archive(path.string(), channels);
}

}  // namespace carillon
