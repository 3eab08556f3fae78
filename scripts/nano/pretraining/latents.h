#pragma once
#include <ATen/core/Tensor.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/checkpoint/safetensors.h"
#include "pretraining/latent_space.h"
#include "pretraining/pieces.h"

namespace carillon::pretraining {

/// The name under which the latents of a piece's mix are kept, beside those of its tracks.
inline constexpr const char* kMix = "mix";

/// The name under which the latents of a piece's mix without one of its tracks are kept.
std::string rest_without(const std::string& track);

/// What `space` says of every mix and stem that `directory` does not hold yet, of mixes without a stem, and of silence.
/// One file a piece; a run that is cut goes on where it was. `report` gets a line now and then.
void make_latents(const Pieces& pieces, const LatentSpace& space, const std::string& directory,
                  const std::function<void(const std::string&)>& report);

/// Latents on disk, mapped: reading is free until values are used.
class Latents {
 public:
  /// Throws kBadCheckpoint where a piece has none.
  Latents(const std::string& directory, const std::vector<Piece>& pieces);

  /// [T, C] float32 on the CPU of one track, or of kMix. Throws kBadCheckpoint where the piece has no such track.
  at::Tensor of(const Piece& piece, const std::string& track) const;
  int64_t frames(const Piece& piece) const;
  /// [1, frames, C] float32, from the start of a song.
  const at::Tensor& silence() const { return silence_; }

 private:
  std::map<std::string, Safetensors> files_;
  at::Tensor silence_;
};

/// The latents of silence as long as the longest song: [1, frames, C] float32.
at::Tensor read_silence(const std::string& directory);

}  // namespace carillon::pretraining
