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

/// All models of one DiT checkpoint.
struct AceStep {
  DitConfig config;
  Placement placement;
  Dit dit;
  ConditionEncoder encoder;
  AudioTokenizer tokenizer;
  AudioDetokenizer detokenizer;
  at::Tensor null_condition;                // [1, 1, E]
  at::Tensor silence;                       // [1, frames, C], model's dtype and device; undefined if there is no table
  at::Tensor silent_frame;                  // first_frame(silence)
  std::vector<std::string> unused_tensors;  // result of Checkpoint::unused
  Weights decoder_weights;                  // loaded weights of `dit`, to which adapters are added

  /// Loads a checkpoint in the original or the diffusers layout. Throws kBadCheckpoint; reports Stage::kLoad.
  static AceStep load(const ModelSource& source, const Placement& placement, const Control& control);
  /// Loads a checkpoint with `config` in place of the checkpoint's own config.
  static AceStep load(const ModelSource& source, const DitConfig& config, const Placement& placement,
                      const Control& control);

  /// First `frames` frames of the silence table. Throws kBadArgument if the table is shorter.
  at::Tensor silence_of(int64_t frames) const;
  int64_t max_frames() const { return silence.size(1); }
};

/// The first frame of latents [1, frames, C]: [C] float32 on the CPU.
at::Tensor first_frame(const at::Tensor& latents);

}  // namespace carillon
