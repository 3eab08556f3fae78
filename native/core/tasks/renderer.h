#pragma once
#include <memory>
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

/// Songs from prompts: the text encoder, the DiT with its encoders, and the VAE, loaded together.
/// One call at a time.
class Renderer {
 public:
  struct Directories {
    std::string model, vae, text_encoder;
  };
  /// What stays on the device between the stages of a job and between jobs.
  struct Residency {
    bool model = true;  // the DiT and its encoders
    bool text_encoder_and_vae = true;
  };
  /// Throws kBadCheckpoint, also where the three do not fit together. Reports Stage::kLoad.
  Renderer(const Directories& directories, const Placement& placement, const Residency& residency,
           const Control& control);
  Renderer(const Renderer&) = delete;
  Renderer& operator=(const Renderer&) = delete;

  const RendererInfo& info() const { return info_; }

  /// Renders all items as one batch; the VAE decodes one after the other. Reports Stage::kConditions, kDenoise and
  /// kDecode and checks for cancellation between their parts. The result's buffers are the caller's. The listener hears
  /// each item as it is decoded: before its level is settled, and before samples of a source take their places again.
  /// Throws kBadArgument, kSongTooLong, kNotFinite, kCancelled.
  RenderResult render(const RenderJob& job, const Control& control, const Vae::Listener& listener = {});

  /// Audio codes of a recording [channels, samples] float32, one for every frames_per_code frames, the last perhaps
  /// for fewer. Reports Stage::kConditions; throws kBadArgument as check_recording does.
  std::vector<int32_t> encode_codes(const at::Tensor& audio, const Control& control);

  // The steps of preparing a sample for training.

  /// The VAE's posterior of audio [channels, samples] float32, an incomplete last frame dropped: [1, C, T] float32 on
  /// the CPU. Reports Stage::kConditions; throws kBadArgument below one frame.
  Vae::Posterior encode_posterior(const at::Tensor& audio, const Control& control);
  /// What the DiT attends to for one song, [1, L, E] on the model's device; task_inputs.h says what `timbre_latents`
  /// may be. Checks for cancellation; throws kBadArgument for a token id outside the vocabulary.
  PackedStates encode_conditions(const PromptIds& prompts, const at::Tensor& timbre_latents, const Control& control);
  /// The context of text2music without codes, [1, T, 2C] on the model's device: silence, all to be generated.
  /// Throws kBadArgument beyond the silence table.
  at::Tensor silent_context(int64_t frames, const Control& control);

  /// Reads an adapter for this DiT, as read_adapter does. Nothing changes yet. Throws kBadCheckpoint.
  Adapter load_adapter(const std::string& path, double dora_epsilon = kLokrNormEpsilon) const {
    return read_adapter(path, adapter_targets_, dora_epsilon);
  }

  /// Merges `adapter` at `strength` in place of the one before; null brings back the base weights, bit for bit.
  /// A model that does not stay is merged whenever it arrives. After a failure the base weights are there.
  /// Throws kBadArgument unless `strength` is from 0 to 1.
  void apply_adapter(std::shared_ptr<const Adapter> adapter, double strength);

 private:
  AceStep load_model(const std::string& directory, const Placement& placement, const Control& control) const;
  struct JobPrompts;
  JobPrompts read_prompts(const RenderJob& job, const Control& control);
  DenoiseJob prepare(const AceStep& model, const RenderJob& job, const Recordings& recordings,
                     const JobPrompts& prompts);
  std::vector<std::vector<float>> time_lyrics(const AceStep& model, const RenderJob& job, const Conditions& conditions,
                                              const at::Tensor& latents, const Control& control) const;
  std::vector<at::Tensor> decode(const at::Tensor& latents, const Control& control, const Vae::Listener& listener);
  void finish(at::Tensor& audio, const RenderJob& job, const std::optional<Source>& source) const;

  // Before the models: loading one looks at the adapter.
  std::vector<AdapterTarget> adapter_targets_;
  std::shared_ptr<const Adapter> adapter_;  // the one merged, or null
  double adapter_strength_ = 0;
  Resident<AceStep> model_;
  Resident<TextEncoder> text_encoder_;
  Resident<Vae> vae_;
  RendererInfo info_;
};

}  // namespace carillon
