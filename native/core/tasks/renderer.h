#pragma once
#include <string>

#include "core/dit/ace_step.h"
#include "core/qwen3/text_encoder.h"
#include "core/runtime/control.h"
#include "core/runtime/placement.h"
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
  /// Throws kBadCheckpoint, also where the three do not fit together. Reports Stage::kLoad.
  static Renderer load(const Directories& directories, const Placement& placement, const Control& control);

  const RendererInfo& info() const { return info_; }

  /// Renders all items as one batch; the VAE decodes one after the other. Reports Stage::kConditions, kDenoise and
  /// kDecode and checks for cancellation between their parts. The result's buffers are the caller's.
  /// Throws kBadArgument, kNotFinite, kCancelled.
  RenderResult render(const RenderJob& job, const Control& control) const;

 private:
  Renderer(AceStep model, Vae vae, TextEncoder text_encoder, int64_t parameter_count);
  ConditionInputs read_prompts(const RenderJob& job) const;
  DenoiseJob prepare(const RenderJob& job, const Control& control) const;
  std::vector<at::Tensor> decode(const at::Tensor& latents, const Control& control) const;

  AceStep model_;
  Vae vae_;
  TextEncoder text_encoder_;
  RendererInfo info_;
};

}  // namespace carillon
