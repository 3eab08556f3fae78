#pragma once
#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "core/checkpoint/config.h"
#include "core/dit/audio_tokenizer.h"
#include "core/dit/condition_encoder.h"
#include "core/dit/dit.h"
#include "core/runtime/control.h"
#include "core/runtime/device.h"

namespace carillon {

/// All of one DiT checkpoint: what turns conditions and noise into latents.
struct AceStep {
  DitConfig config;
  Placement placement;
  Dit dit;
  ConditionEncoder encoder;
  AudioTokenizer tokenizer;
  AudioDetokenizer detokenizer;
  at::Tensor null_condition;                // [1, 1, E]
  at::Tensor silence;                       // [1, frames, C], the model's dtype and device; undefined for a file without
  std::vector<std::string> unused_tensors;  // Checkpoint::unused
  Weights decoder_weights;                  // what `dit` was loaded from: the base that adapters start from

  /// Original or diffusers layout. Throws kBadCheckpoint; reports Stage::kLoad.
  static AceStep load(const ModelSource& source, const Placement& placement, const Control& control);
  /// With a config other than its own.
  static AceStep load(const ModelSource& source, const DitConfig& config, const Placement& placement,
                      const Control& control);

  /// The first `frames` frames of silence. Throws kBadArgument beyond the table.
  at::Tensor silence_of(int64_t frames) const;
  int64_t max_frames() const { return silence.size(1); }
};

}  // namespace carillon
