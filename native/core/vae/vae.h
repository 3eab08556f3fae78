#pragma once
#include <ATen/core/Tensor.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/vae/networks.h"
#include "core/vae/spectral_encoder.h"

namespace carillon {

/// The Oobleck autoencoder: waveforms to latents and back.
///
/// Long signals are processed in overlapping tiles whose edges are discarded. The overlap is wider than the receptive
/// field, so the result does not depend on the tiling.
class Vae {
 public:
  /// Loads the autoencoder. Throws kBadCheckpoint.
  static Vae load(const ModelSource& source, const Placement& placement, const Control& control);

  const VaeConfig& config() const { return config_; }
  const Placement& placement() const { return placement_; }
  const std::vector<std::string>& unused_tensors() const { return unused_tensors_; }  // Checkpoint::unused

  /// Called with the parts of an item in order. `audio` is interleaved [samples, audio_channels] float32, contiguous on
  /// the CPU. The listener may keep it.
  using Listener = std::function<void(int64_t item, const at::Tensor& audio)>;

  /// Decodes latents [B, C, T]. Returns the audio of each item, [audio_channels, samples_per_frame * T] float32 on the
  /// CPU. Reports Stage::kDecode, and calls the listener for each tile. Throws kBadArgument for another shape.
  std::vector<at::Tensor> decode(const at::Tensor& latents, const Control& control,
                                 const Listener& listener = {}) const;

  /// Mean and standard deviation of the Gaussian over latents: [B, C, frames] each, float32 on the CPU. Tasks use the
  /// mean.
  struct Posterior {
    at::Tensor mean, std;
  };
  /// Encodes audio [B, audio_channels, samples] to floor(samples / samples_per_frame) frames. Reports
  /// Stage::kConditions for each tile. Throws kBadArgument for another shape, or audio shorter than one frame.
  Posterior encode(const at::Tensor& audio, const Control& control) const;

  /// Latents of `frames` frames of silence from the start of a song, [1, frames, C] float32 on the CPU. They vary near
  /// the start and are constant afterwards.
  at::Tensor encode_silence(int64_t frames, const Control& control) const;

 private:
  VaeConfig config_;
  Placement placement_;
  Oobleck encoder_, decoder_;
  std::optional<SpectralEncoder> spectral_encoder_;  // replaces `encoder_` if present
  int64_t window_;
  std::vector<std::string> unused_tensors_;
};

/// Frequencies in Hz of `count` semitones from E1 (41.2 Hz) up: [count] float64.
at::Tensor semitone_hertz(int64_t count);

/// Renders the low band of latents [B, C, T] (any device) with one oscillator per semitone, E1 (41.2 Hz) being the
/// lowest. Returns [B, 1, samples_per_frame * T], float32 on the CPU. Amplitudes change linearly from the middle of one
/// frame to the middle of the next. Runs once for all tiles, because the phase depends on the position in the song.
at::Tensor play_oscillators(const at::Tensor& latents, const VaeConfig& config);

}  // namespace carillon
