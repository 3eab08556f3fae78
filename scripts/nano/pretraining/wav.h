#pragma once
#include <ATen/core/Tensor.h>

#include <memory>
#include <string>

#include "core/checkpoint/file_io.h"

namespace carillon::pretraining {

/// A WAV file of the data set: PCM of 16 bits, stereo, 48 kHz. Mapped, so that a crop reads no more than itself.
class Wav {
 public:
  /// Throws kBadCheckpoint for any other format.
  static Wav open(const std::string& path);

  int64_t samples() const { return samples_; }  // of one channel
  /// Samples first .. first + count - 1, those beyond the end zero: [2, count] float32 in -1 .. 1.
  at::Tensor read(int64_t first, int64_t count) const;

 private:
  std::shared_ptr<const MappedFile> file_;
  int64_t samples_ = 0;
};

}  // namespace carillon::pretraining
