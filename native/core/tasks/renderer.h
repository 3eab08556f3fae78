#pragma once
#include <string>

#include "core/dit/ace_step.h"
#include "core/qwen3/text_encoder.h"
#include "core/runtime/control.h"
#include "core/runtime/placement.h"
#include "core/runtime/resident.h"
#include "core/tasks/render_job.h"
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

  const RendererInfo& info() const { return info_; }

  /// Renders all items as one batch; the VAE decodes one after the other. Reports Stage::kConditions, kDenoise and
  /// kDecode and checks for cancellation between their parts. The result's buffers are the caller's.
  /// Throws kBadArgument, kNotFinite, kCancelled.
  RenderResult render(const RenderJob& job, const Control& control);

 private:
  ConditionInputs read_prompts(const AceStep& model, const RenderJob& job, const Control& control);
  DenoiseJob prepare(const AceStep& model, const RenderJob& job, const Control& control);
  std::vector<at::Tensor> decode(const at::Tensor& latents, const Control& control);

  Resident<AceStep> model_;
  Resident<TextEncoder> text_encoder_;
  Resident<Vae> vae_;
  RendererInfo info_;
};

}  // namespace carillon
