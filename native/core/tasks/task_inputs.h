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

/// A song's prompts after the text encoder.
struct PromptStates {
  at::Tensor text;        // [1, Lt, text width], hidden states
  at::Tensor plain_text;  // likewise, of the text2music prompt; undefined if it is not needed
  at::Tensor lyrics;      // [1, Ll, text width], embeddings
};

/// Reads the prompts of all songs, on a GPU together. Checks for cancellation; throws kBadArgument for a token id
/// outside the vocabulary.
std::vector<PromptStates> read_prompts(const TextEncoder& text_encoder, const std::vector<PromptIds>& prompts,
                                       bool with_plain_text, const Control& control);

/// Encoder states that the DiT attends to, [1, L, E] for each song: lyrics, timbre and text.
struct EncodedPrompts {
  std::vector<at::Tensor> task;
  std::vector<at::Tensor> plain;  // with the text2music prompt instead of the task's; empty if it was not read
};

/// Encodes the lyrics of all songs, on a GPU together. They share the reference `timbre_latents` [1, frames, C] of any
/// type and device; undefined without a reference, which is encoded as silence. Checks for cancellation.
EncodedPrompts encode_conditions(const AceStep& model, const std::vector<PromptStates>& songs,
                                 const at::Tensor& timbre_latents, const Control& control);

/// Source and masks that the DiT reads in addition to its state.
struct ContextInputs {
  at::Tensor source;         // [B, T, C]: latents of silence, of the source audio or of given audio codes
  at::Tensor chunk_mask;     // [B, T, C]: 1 where to generate, 0 where to keep
  at::Tensor is_cover = {};  // [B] bool: items that read the source through its audio codes; undefined: none
  at::Tensor hints = {};     // [B, at least T, C]: latents of given audio codes; undefined: encode the source
};

/// Frames to render for a song of `frames`. At least 128, the length of the shortest songs in training, or the length
/// of the silence table if that is shorter. Frames after the song are cut before decoding.
int64_t rendered_frames(const AceStep& model, int64_t frames);

/// The context [B, T, 2C], in the model's dtype: source or hints, then the chunk mask.
at::Tensor make_context(const AceStep& model, const ContextInputs& inputs);

/// Context of a song that follows `hints` [B, T, C], latents of audio codes. The chunk mask is 1.
ContextInputs hinted_source(const at::Tensor& hints);

/// Context of a job of `frames` without a source: silence [1, T, C], or the latents of its audio codes [B, T, C]. The
/// chunk mask is 1. Throws kBadArgument for a code outside the codebook.
ContextInputs text2music_source(const AceStep& model, const RenderJob& job, int64_t frames);

/// Context of a cover: the model reads the recording [1, T, C] through its audio codes, which keeps melody and rhythm.
ContextInputs cover_source(const at::Tensor& latents);

/// Context with a recording [B, T, C] as latents. `chunk_mask` [B, T] float.
ContextInputs recorded_source(const at::Tensor& latents, const at::Tensor& chunk_mask);

/// How repainting keeps the source outside the window.
struct RepaintHold {
  double injection_ratio;    // share of the steps that restore the source outside the window
  int64_t crossfade_frames;  // fade of the finished latents outside each edge; 0: a cut, which the decoder smooths
  double crossfade_seconds;  // fade of the waveforms outside each edge
  bool keeps_waveform;       // outside the window: true: samples of the source; false: its decoded latents
};

/// balanced: a higher strength restores the source in fewer steps and shortens the fades. conservative: as balanced
/// with strength 0. aggressive: restores the source only in the finished latents, not during denoising, as in the
/// reference; its fade of the waveform changes only the level. Outside the window and a fade of at most 50 ms,
/// conservative and balanced keep the samples of the source bit for bit.
RepaintHold repaint_hold(const Edit& edit);

/// Keeps `latents` [B, T, C] float32 outside of `inside` [B, T] bool; nullopt if all frames are inside.
std::optional<Repaint> hold_outside(const at::Tensor& latents, const at::Tensor& inside, const RepaintHold& hold);

/// Inputs of a denoising run: one item that the whole batch shares, or one for each item.
struct TaskInputs {
  ContextInputs context;
  std::optional<Repaint> repaint = {};  // if the song keeps part of the source
};

/// Inputs for the job's task, padded with silence to rendered_frames. `source` comes from encode_recordings. The
/// silence table replaces a silent source and its padding, as in the reference. Throws kBadArgument if the silence
/// table is too short.
TaskInputs task_inputs(const AceStep& model, const RenderJob& job, const std::optional<Source>& source,
                       const RendererInfo& info);

/// Sequences with padding at the end.
struct PackedStates {
  at::Tensor states;  // [B, L, E]
  at::Tensor mask;    // [B, L] bool, true for real states; undefined: nothing is padded
};

/// Pads states [1, any L, E] of one song each to the longest. Undefined without songs.
PackedStates stack_states(const std::vector<at::Tensor>& songs);

/// A denoising run for `batch` items. `states` [1 or batch, L, E] are of the task's prompts. `plain_states` are of the
/// text2music prompts and condition the steps after the share cover_strength, with silence as source and the same chunk
/// mask. They are undefined if there are no such steps.
DenoiseJob denoise_job(const AceStep& model, const TaskInputs& inputs, const Denoise& denoise, const Guidance& guidance,
                       const PackedStates& states, const PackedStates& plain_states, int64_t batch);

}  // namespace carillon
