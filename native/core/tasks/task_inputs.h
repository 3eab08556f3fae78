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

/// A song's prompts as encoded by the text encoder.
struct PromptStates {
  at::Tensor text;        // [1, Lt, text width], hidden states
  at::Tensor plain_text;  // the same for the text2music prompt; undefined if not needed
  at::Tensor lyrics;      // [1, Ll, text width], embeddings
};

/// Encodes the prompts of all songs; a GPU encodes them in one pass. Checks for cancellation; throws kBadArgument for a
/// token id outside the vocabulary.
std::vector<PromptStates> encode_prompts(const TextEncoder& text_encoder, const std::vector<PromptIds>& prompts,
                                         bool with_plain_text, const Control& control);

/// Encoder states that the DiT attends to, [1, L, E] for each song: lyrics, timbre and text.
struct EncodedPrompts {
  std::vector<at::Tensor> task;
  std::vector<at::Tensor> plain;  // with the text2music prompt instead of the task's; empty if not needed
};

/// Encodes the prompts of all songs; a GPU encodes them in one pass. All songs share the reference `timbre_latents` [1,
/// frames, C], of any dtype and on any device. If it is undefined, silence is encoded instead. Checks for cancellation.
EncodedPrompts encode_conditions(const AceStep& model, const std::vector<PromptStates>& songs,
                                 const at::Tensor& timbre_latents, const Control& control);

/// Source and masks that the DiT reads in addition to its state.
struct ContextInputs {
  at::Tensor source;         // [B, T, C]: latents of silence, of the source audio or of given audio codes
  at::Tensor chunk_mask;     // [B, T, C]: 1 where to generate, 0 where to keep
  at::Tensor is_cover = {};  // [B] bool: items that read the source through its audio codes; undefined: none
  at::Tensor hints = {};     // [B, at least T, C]: latents of given audio codes; undefined: encode the source
};

/// Number of frames to render for a song of `frames` frames. At least 128, the length of the shortest songs in
/// training, or the length of the silence table if that is shorter. Frames after the song are cut before decoding.
int64_t rendered_frames(const AceStep& model, int64_t frames);

/// The context [B, T, 2C], in the model's dtype: source or hints, then the chunk mask.
at::Tensor make_context(const AceStep& model, const ContextInputs& inputs);

/// Context of a song that follows `hints` [B, T, C], latents of audio codes. The chunk mask is 1.
ContextInputs hinted_context(const at::Tensor& hints);

/// Context of a job of `frames` frames without a source: silence [1, T, C], or the latents of its audio codes [B, T,
/// C]. The chunk mask is 1. Throws kBadArgument for a code outside the codebook.
ContextInputs text2music_context(const AceStep& model, const RenderJob& job, int64_t frames);

/// Context of a cover: the model reads the recording [1, T, C] through its audio codes, which keeps melody and rhythm.
ContextInputs cover_context(const at::Tensor& latents);

/// Context with a recording [B, T, C] as latents. `chunk_mask` [B, T] float.
ContextInputs recorded_context(const at::Tensor& latents, const at::Tensor& chunk_mask);

/// How repainting blends the source outside the window with the new part.
struct RepaintBlend {
  double injection_ratio;    // share of the steps that restore the source outside the window
  int64_t crossfade_frames;  // cross-fade of the finished latents outside each edge; 0: cut, smoothed by the decoder
  double crossfade_seconds;  // cross-fade of the waveforms outside each edge
  bool keeps_waveform;       // whether the song keeps the source's samples outside the window, not its decoded latents
};

/// balanced: a higher strength restores the source in fewer steps and shortens the fades. conservative: as balanced
/// with strength 0. aggressive: restores the source only in the finished latents, not during denoising, as in the
/// reference; its waveform cross-fade changes only the level. Outside the window and a fade of at most 50 ms,
/// conservative and balanced keep the samples of the source bit for bit.
RepaintBlend repaint_blend(const Edit& edit);

/// Options that keep `latents` [B, T, C] float32 where `inside` [B, T] bool is false; nullopt if all frames are inside.
std::optional<Repaint> make_repaint(const at::Tensor& latents, const at::Tensor& inside, const RepaintBlend& blend);

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
struct PaddedStates {
  at::Tensor states;  // [B, L, E]
  at::Tensor mask;    // [B, L] bool, true for real states; undefined: nothing is padded
};

/// Pads the states [1, any L, E] of all songs to the longest and stacks them. Returns undefined tensors if there are no
/// songs.
PaddedStates stack_padded(const std::vector<at::Tensor>& songs);

/// A denoising run for `batch` items. `states` [1 or batch, L, E] encode the task's prompts. `plain_states` encode the
/// text2music prompts and condition the steps after the first share of cover_strength, with silence as source and the
/// same chunk mask. They are undefined if there are no such steps.
DenoiseJob denoise_job(const AceStep& model, const TaskInputs& inputs, const Denoise& denoise, const Guidance& guidance,
                       const PaddedStates& states, const PaddedStates& plain_states, int64_t batch);

}  // namespace carillon
