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

/// Runs the text encoder on the prompts of all songs, on a GPU in one pass. Checks for cancellation. Throws
/// kBadArgument for a token id outside the vocabulary.
std::vector<PromptStates> encode_prompts(const TextEncoder& text_encoder, const std::vector<RenderSong>& songs,
                                         bool with_plain_text, const Control& control);

/// Encoder states that the DiT attends to, [1, L, E] for each song: lyrics, timbre and text.
struct EncodedPrompts {
  std::vector<at::Tensor> task;
  std::vector<at::Tensor> plain;  // with the text2music prompt instead of the task's; empty if not needed
};

/// Encodes the states of all prompts for the DiT, on a GPU in one pass. `timbre_latents` [1, frames, C] are the latents
/// of the reference recording, which all songs share. If undefined, silence is the reference. Checks for cancellation.
EncodedPrompts encode_conditions(const AceStep& model, const std::vector<PromptStates>& songs,
                                 const at::Tensor& timbre_latents, const Control& control);

/// Source and mask that the DiT reads in addition to its state.
struct ContextInputs {
  at::Tensor source;         // [B, T, C]: latents of silence, of the source audio or of given audio codes
  at::Tensor chunk_mask;     // [B, T, C]: 1 where to generate, 0 where to keep
  bool reads_codes = false;  // cover: reads the source through its audio codes, which keep melody and rhythm
};

/// Number of frames to render for a song of `frames` frames. Renders at least 128 frames, the length of the shortest
/// songs in training (fewer only if the silence table is shorter). The frames after the song are cut before decoding.
int64_t rendered_frames(const AceStep& model, int64_t frames);

/// Returns the context [B, T, 2C] in the model's dtype: C channels of the source, then the chunk mask.
at::Tensor make_context(const AceStep& model, const ContextInputs& inputs);

/// Context of a job without a source: the latents of its audio codes [B, T, C] if it has codes, else silence [1, T, C].
/// The whole song is generated. Throws kBadArgument for a code outside the codebook.
ContextInputs text2music_context(const AceStep& model, const RenderJob& job, int64_t frames);

/// How repainting blends the source outside the window with the new part.
struct RepaintBlend {
  double injection_ratio;    // share of the steps that restore the source outside the window
  int64_t crossfade_frames;  // cross-fade of the finished latents outside each edge; 0: cut, smoothed by the decoder
  double crossfade_seconds;  // cross-fade of the waveforms outside each edge
  bool keeps_waveform;       // whether the song keeps the source's samples outside the window, not its decoded latents
};

/// How each repaint mode blends:
/// - balanced: the higher the strength, the fewer steps restore the source, and the shorter the fades
/// - conservative: equals balanced with strength 0
/// - aggressive: restores the source only in the finished latents, not during denoising. The audio of the window fades
///   into the decoded audio beside it, so the fade changes only the level.
/// Conservative and balanced keep the source bit for bit, except in the window and in the fades of the waveforms beside
/// it, at most 50 ms unless the job sets another length.
RepaintBlend repaint_blend(const EditParameters& edit);

/// Returns options that keep `latents` [B, T, C] float32 in the frames where `inside` [B, T] bool is false. Returns
/// nullopt if `inside` is true for all frames.
std::optional<Repaint> make_repaint(const at::Tensor& latents, const at::Tensor& inside, const RepaintBlend& blend);

/// Inputs of a denoising run. The batch size of the tensors is 1 (shared by all songs) or the number of songs.
struct TaskInputs {
  ContextInputs context;
  std::optional<Repaint> repaint = {};  // if the song keeps part of the source
};

/// Inputs for the job's task, padded with silence to rendered_frames. `source` comes from encode_recordings. Throws
/// kBadArgument if the silence table is too short.
TaskInputs task_inputs(const AceStep& model, const RenderJob& job, const std::optional<SourceRecording>& source,
                       const RendererInfo& info);

/// Sequences with padding at the end.
struct PaddedStates {
  at::Tensor states;  // [B, L, E]
  at::Tensor mask;    // [B, L] bool, true for real states; undefined: nothing is padded
};

/// Pads the states [1, any L, E] of all songs to the longest and stacks them. Returns undefined tensors if there are no
/// songs.
PaddedStates stack_padded(const std::vector<at::Tensor>& songs);

/// Makes a denoising run for `batch` items. `states` [1 or batch, L, E] encode the task's prompts and condition the
/// first steps, whose share is cover_strength. `plain_states` encode the text2music prompts and condition the other
/// steps, with silence as source and the same chunk mask. They are undefined if there are no other steps.
DenoiseJob denoise_job(const AceStep& model, const TaskInputs& inputs, const Denoise& denoise, const Guidance& guidance,
                       const PaddedStates& states, const PaddedStates& plain_states, int64_t batch);

}  // namespace carillon
