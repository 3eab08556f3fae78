#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "core/diffusion/denoise.h"
#include "core/dit/ace_step.h"
#include "core/qwen3/qwen3.h"
#include "core/tasks/recordings.h"
#include "core/tasks/render_job.h"

namespace carillon {

/// The prompts of one song as the text encoder reads them.
struct PromptStates {
  at::Tensor text;    // [1, Lt, text width], hidden states
  at::Tensor lyrics;  // [1, Ll, text width], embeddings
};

/// Throws kBadArgument for a token id outside the vocabulary.
PromptStates read_prompts(const TextEncoder& text_encoder, const std::vector<int32_t>& text_token_ids,
                          const std::vector<int32_t>& lyric_token_ids);

/// What the DiT attends to, [1, L, E]: lyrics, timbre and text. `timbre_latents` [1, frames, C] of any type and
/// device; undefined: those of silence, which stand for no reference at all.
PackedStates encode_conditions(const AceStep& model, const PromptStates& prompts, const at::Tensor& timbre_latents);

/// What the DiT reads beside its state.
struct ContextInputs {
  at::Tensor source;         // [B, T, C]: silence, the latents of the source audio, or those of given audio codes
  at::Tensor chunk_mask;     // [B, T, C]: 1 where to generate, 0 where to keep
  at::Tensor is_cover = {};  // [B] bool: these items read the source through its audio codes; undefined: none do
  at::Tensor hints = {};     // [B, at least T, C]: latents of given audio codes; undefined to take the source's own
};

/// Frames that are rendered for a song of `frames`: at least 128, as the model knows no shorter songs, or the whole
/// silence table where that is shorter.
int64_t rendered_frames(const AceStep& model, int64_t frames);

/// The context [B, T, 2C], in the model's dtype: source or hints, then the chunk mask.
at::Tensor make_context(const AceStep& model, const ContextInputs& inputs);

/// A song that follows `hints` [B, T, C], the latents that audio codes stand for. Everything is to be generated.
ContextInputs hinted_source(const at::Tensor& hints);

/// A job of `frames` without a source: silence [1, T, C], or where it has audio codes the latents that these stand for
/// [B, T, C]. Everything is to be generated. Throws kBadArgument for a code outside the codebook.
ContextInputs text2music_source(const AceStep& model, const RenderJob& job, int64_t frames);

/// A recording [1, T, C] to be heard through its audio codes: the tune stays, the sound is new.
ContextInputs cover_source(const at::Tensor& latents);

/// A recording [B, T, C] to be heard as it is. `chunk_mask` [B, T] float.
ContextInputs recorded_source(const at::Tensor& latents, const at::Tensor& chunk_mask);

/// How firmly a window's surroundings are held.
struct RepaintHold {
  double injection_ratio;    // share of the steps after which the surroundings are put back
  int64_t crossfade_frames;  // of the finished latents, outside either edge; 0: cut, and the decoder joins them
  double crossfade_seconds;  // of the waveforms, outside either edge
  bool keeps_waveform;       // the surroundings are the source's own samples, else its latents decoded
};

/// balanced: the stronger the repainting, the less is held. conservative is balanced at strength 0. aggressive holds
/// nothing while denoising and leaves the seam to the decoder; its fade is of the level alone.
RepaintHold repaint_hold(const Edit& edit);

/// Holds what lies outside `inside` [B, T] bool to `latents` [B, T, C] float32; nothing where all is inside.
std::optional<Repaint> hold_outside(const at::Tensor& latents, const at::Tensor& inside, const RepaintHold& hold);

/// What a task makes of a job for the model: of one item that all share, or of every item.
struct TaskInputs {
  ContextInputs context;
  std::optional<Repaint> repaint = {};  // where a window leaves something of the source
};

/// The inputs of the job's task. `source` as encode_recordings gives it. At least 128 frames (or the whole silence
/// table) are rendered, what is missing being silence. Throws kBadArgument beyond the silence table.
TaskInputs task_inputs(const AceStep& model, const RenderJob& job, const std::optional<Source>& source,
                       const RendererInfo& info);

/// A run for `batch` items. `states` [1 or batch, L, E] are the task's own; `plain_states`, of the text prompt of
/// text2music, make the conditions that follow once the cover strength is used up: the same chunk mask over silence.
/// Undefined: none follow.
DenoiseJob denoise_job(const AceStep& model, const TaskInputs& inputs, const Denoise& denoise, const Guidance& guidance,
                       const at::Tensor& states, const at::Tensor& plain_states, int64_t batch);

}  // namespace carillon
