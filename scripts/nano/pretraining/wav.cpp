#include "pretraining/wav.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>

#include "core/runtime/error.h"

namespace carillon::pretraining {
namespace {

constexpr size_t kHeaderBytes = 44;  // RIFF, a format chunk of 16 bytes, the head of the data chunk
constexpr int64_t kChannels = 2;

template <typename Integer>
Integer field(const MappedFile& file, size_t offset) {
  Integer value;
  std::memcpy(&value, file.data() + offset, sizeof value);
  return value;
}

}  // namespace

Wav Wav::open(const std::string& path) {
  Wav wav;
  wav.file_ = MappedFile::open(path);
  const MappedFile& file = *wav.file_;
  const auto is = [&](size_t offset, const char* tag) { return std::memcmp(file.data() + offset, tag, 4) == 0; };
  const bool known = file.size() >= kHeaderBytes && is(0, "RIFF") && is(8, "WAVE") && is(12, "fmt ") &&
                     is(36, "data") && field<uint16_t>(file, 20) == 1 && field<uint16_t>(file, 22) == kChannels &&
                     field<uint32_t>(file, 24) == 48000 && field<uint16_t>(file, 34) == 16;
  if (!known) fail(ErrorCode::kBadCheckpoint, path + ": expected a WAV file of 16 bits, 48 kHz and two channels");
  wav.samples_ = static_cast<int64_t>(file.size() - kHeaderBytes) / (kChannels * 2);
  return wav;
}

at::Tensor Wav::read(int64_t first, int64_t count) const {
  const int64_t there = std::clamp<int64_t>(samples_ - first, 0, count);
  at::Tensor frames = at::zeros({count, kChannels}, at::kShort);
  std::memcpy(frames.data_ptr(), file_->data() + kHeaderBytes + first * kChannels * 2,
              static_cast<size_t>(there * kChannels * 2));
  return frames.t().to(at::kFloat).div_(32768.0).contiguous();
}

}  // namespace carillon::pretraining
