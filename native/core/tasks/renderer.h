#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/adapters/adapter.h"
#include "core/dit/ace_step.h"
#include "core/qwen3/qwen3.h"
#include "core/runtime/control.h"
#include "core/runtime/device.h"
#include "core/runtime/resident.h"
#include "core/tasks/recordings.h"
#include "core/tasks/render_job.h"
#include "core/tasks/task_inputs.h"
#include "core/vae/vae.h"

namespace carillon {

/// Renders songs with a text encoder, a DiT with its encoders, and a VAE. Not thread-safe.
class Renderer {
 public:
  /// Source of each model: a directory, or tensors in a single file.
  struct Directories {
    ModelSource model, vae, text_encoder;
  };
  /// Which models stay on the device between stages and jobs. The others are loaded only for their stage.
  struct Residency {
    bool model = true;  // the DiT and its encoders
    bool text_encoder_and_vae = true;
  };
  /// Loads the models. Reports Stage::kLoad. Throws kBadCheckpoint if a checkpoint is invalid or the three models do
  /// not match.
  Renderer(const Directories& directories, const Placement& placement, const Residency& residency,
           const Control& control);
  Renderer(const Renderer&) = delete;
  Renderer& operator=(const Renderer&) = delete;

  const RendererInfo& info() const { return info_; }

  /// Renders all items as one batch, with only the adapters of this job. The caller owns the buffers of the result.
  /// `listener` gets each tile when it is decoded, before normalisation and before samples of the source are restored.
  /// Reports Stage::kConditions, kDenoise and kDecode. Throws kBadArgument, kSongTooLong, kNotFinite, kCancelled.
  RenderResult render(const RenderJob& job, const Control& control, const Vae::Listener& listener = {});

  /// Encodes a recording [channels, samples] float32 as audio codes. Each code stands for frames_per_code latent
  /// frames; the last code may stand for fewer. Reports Stage::kConditions; throws the errors of check_recording.
  std::vector<int32_t> encode_codes(const at::Tensor& audio, const Control& control);
  /// Audio codes of latents [frames, C] float32, as encode_codes. Throws the errors of check_latents.
  std::vector<int32_t> codes_of_latents(const at::Tensor& latents, const Control& control);

  /// Encodes a recording [channels, samples] float32 at its own level, the last frame padded with silence: [frames, C]
  /// float32 on the CPU. Reports Stage::kConditions; throws the errors of check_recording.
  at::Tensor encode_recording(const at::Tensor& audio, const Control& control);
  /// Decodes latents [frames, C] float32 to audio [channels, samples] float32 on the CPU, at the level of the decoder.
  /// Reports Stage::kDecode; throws the errors of check_latents.
  at::Tensor decode_latents(const at::Tensor& latents, const Control& control);

  // Functions that prepare a training sample:

  /// The VAE's posterior of audio [channels, samples] float32, as [1, C, T] float32 on the CPU. An incomplete last
  /// frame is ignored. Reports Stage::kConditions; throws kBadArgument if the audio is shorter than one frame.
  Vae::Posterior encode_posterior(const at::Tensor& audio, const Control& control);
  /// Encoder states of one song, [1, L, E] on the model's device; see encode_conditions in task_inputs.h. Checks for
  /// cancellation; throws kBadArgument for a token id outside the vocabulary.
  at::Tensor encode_conditions(const PromptIds& prompts, const at::Tensor& timbre_latents, const Control& control);
  /// Context of a text2music job without codes, [1, T, 2C] on the model's device: the latents of silence and a chunk
  /// mask of 1. Throws kBadArgument if the silence table has fewer than `frames` frames.
  at::Tensor silent_context(int64_t frames, const Control& control);

  /// Reads an adapter for this DiT, as read_adapter does. It is active only in jobs that list it. Throws
  /// kBadCheckpoint.
  Adapter load_adapter(const std::string& path, double dora_epsilon = kLokrNormEpsilon) const {
    return read_adapter(path, adapter_targets_, dora_epsilon);
  }

 private:
  AceStep load_model(const Directories& directories, const Placement& placement, const Control& control);
  /// Returns the model with exactly these adapters merged into its weights.
  std::shared_ptr<const AceStep> acquire_model(const std::vector<ActiveAdapter>& adapters, const Control& control);
  DenoiseJob make_denoise_job(const AceStep& model, const RenderJob& job, const Recordings& recordings,
                              const std::vector<PromptStates>& prompts, const Control& control);
  /// Sets the lyric_seconds of the songs with timed lyrics.
  void time_lyrics(const AceStep& model, const RenderJob& job, const Conditions& conditions, const at::Tensor& latents,
                   const Control& control, std::vector<RenderedSong>& songs) const;
  /// Decodes each item. The listener gets the audio multiplied by `level`.
  std::vector<at::Tensor> decode(const at::Tensor& latents, int64_t samples, double level, const Control& control,
                                 const Vae::Listener& listener);
  /// Fits the new part of a song into its source: the level of the source, the loudness of its surroundings, and the
  /// source itself outside the window.
  at::Tensor join_source(const at::Tensor& decoded, const EditParameters& edit, const SourceRecording& source) const;

  std::vector<AdapterTarget> adapter_targets_;
  /// Adapters merged into the loaded model; nullopt if unknown. Declared before model_, because the loader of model_
  /// resets merged_.
  std::optional<std::vector<ActiveAdapter>> merged_;
  at::Tensor silence_;  // encoded by the VAE for a model without a silence table; undefined until needed
  ResidentModel<AceStep> model_;
  ResidentModel<TextEncoder> text_encoder_;
  ResidentModel<Vae> vae_;
  RendererInfo info_;
};

}  // namespace carillon
