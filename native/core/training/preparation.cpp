#include "core/training/preparation.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <c10/core/InferenceMode.h>

#include "core/runtime/error.h"

namespace carillon {
namespace {

/// The FNV-1a hash of the samples (http://www.isthe.com/chongo/tech/comp/fnv), 32 bits at a time.
uint64_t hash_of(const at::Tensor& audio) {
  const at::Tensor dense = audio.contiguous();
  const auto* const words = static_cast<const uint32_t*>(dense.const_data_ptr());
  uint64_t hash = 0xcbf29ce484222325;
  for (int64_t i = 0; i < dense.numel(); ++i) hash = (hash ^ words[i]) * 0x100000001b3;
  return hash;
}

at::Tensor draw(const Vae::Posterior& posterior, uint64_t seed) {
  const auto generator = at::detail::createCPUGenerator(seed);
  return posterior.mean + posterior.std * at::randn(posterior.mean.sizes(), generator, at::kFloat);
}

}  // namespace

TrainingSample prepare_sample(Renderer& renderer, const PreparationJob& job, const Control& control) {
  const c10::InferenceMode inference;
  const Vae::Posterior posterior = renderer.encode_posterior(job.audio, control);
  TrainingSample sample;
  sample.target_latents = draw(posterior, hash_of(job.audio))[0].t().contiguous();
  if (!sample.target_latents.isfinite().all().item<bool>()) {
    fail(ErrorCode::kNotFinite, "the latents of the audio hold values that are not finite");
  }
  const int64_t frames = sample.target_latents.size(0);
  sample.attention_mask = at::ones({frames}, at::kBool);
  sample.context_latents = renderer.silent_context(frames, control)[0].cpu();
  const PackedStates condition =
      renderer.encode_conditions(job.text_token_ids, job.lyric_token_ids, at::Tensor(), control);
  sample.encoder_hidden_states = condition.states[0].cpu();
  sample.encoder_attention_mask = condition.mask[0].cpu();
  sample.metadata = job.metadata;
  return sample;
}

}  // namespace carillon
