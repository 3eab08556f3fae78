#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/adapters/adapter.h"
#include "core/diffusion/denoise.h"
#include "core/runtime/device.h"

namespace carillon {

enum class Task { kText2Music, kCover, kRepaint, kLego, kExtract, kComplete };

/// The wire name of a task: text2music, cover, repaint, lego, extract, complete.
const char* task_name(Task task);

/// Part of a source to generate, in seconds; may start before 0 and end after the source.
struct Window {
  double start_seconds, end_seconds;
};

enum class RepaintMode { kConservative, kBalanced, kAggressive };

/// Chunk mask that the model reads: 1 in the window only (kExplicit), or in all frames (kAuto). For kAuto the reference
/// assigns 2 to a boolean mask, which stores 1, so its models have only seen 0 and 1.
enum class ChunkMask { kExplicit, kAuto };

/// The group `edit` of src/engine/render-parameters.ts, which holds its defaults and ranges.
struct Edit {
  RepaintMode repaint_mode;
  double repaint_strength;  // 0 .. 1, used in the balanced mode
  ChunkMask chunk_mask;
  bool cover_skips_codes;  // cover: use the latents of the source instead of its audio codes
};

/// Tokens [first, first + count) of the lyric prompt: the words of the song, without headings.
struct LyricSpan {
  int64_t first, count;
};

/// Token ids of the text encoder's tokenizer.
struct PromptIds {
  std::vector<int32_t> text, lyrics;
  std::vector<int32_t> plain_text = {};        // the text2music prompt; needed for a cover strength below 1
  std::optional<LyricSpan> timed_lyrics = {};  // request timestamps for these, if the model supports it
};

/// A batch of songs of one task, source and length. Seeds, audio codes and prompts are per item; the seeds are the only
/// source of randomness. On the CPU the bytes of an item do not depend on the other items.
struct RenderJob {
  Task task;
  std::vector<PromptIds> prompts;  // one for all items, or one per item
  int64_t samples;  // length without a source; with audio codes at most their length, or 0 for all of it
  /// text2music, cover: one list per item, all of one length; or empty. Codes outside the codebook are rejected; codes
  /// beyond the length of the song are cut.
  std::vector<std::vector<int32_t>> audio_codes = {};
  at::Tensor source_audio = {};       // [channels, samples] float32 on the CPU; unused by text2music and with codes
  at::Tensor source_latents = {};     // [frames, C] float32 on the CPU, replaces source_audio; `samples` long
  std::optional<Window> window = {};  // repaint, lego; nullopt: all of the source
  at::Tensor reference_audio = {};    // timbre reference, as source_audio; undefined for none
  at::Tensor reference_latents = {};  // replaces reference_audio, as source_latents does source_audio
  Denoise denoise;
  Guidance guidance;
  Edit edit;
  std::vector<ActiveAdapter> adapters = {};    // active adapters, in the order of summation
  std::vector<uint64_t> seeds;                 // one per item; determines the batch size
};

struct RenderResult {
  /// Per item [channels, samples], float32 on the CPU, contiguous. Peak at -1 dB, unless the song keeps part of a
  /// source, which keeps its level.
  std::vector<at::Tensor> audio;
  int64_t samples_per_channel = 0;
  /// Per item [frames, C], float32 on the CPU, contiguous: the decoded latents.
  std::vector<at::Tensor> latents;
  /// Per item the time in seconds of each timed lyric token; an empty list for an item without timed lyrics or without
  /// an alignment. Empty if the model has no lyric heads or no item has timed lyrics.
  std::vector<std::vector<float>> lyric_seconds;
  struct {
    double conditions = 0, denoise = 0, decode = 0;  // seconds
  } timings;
};

struct RendererInfo {
  Placement placement;
  bool is_turbo;
  bool is_lego_sft;
  int64_t sample_rate;
  int64_t samples_per_frame;                // of one latent frame
  int64_t frames_per_code;                  // latent frames of one audio code
  int64_t codebook_size;                    // audio codes are 0 .. codebook_size - 1
  int64_t max_frames;                       // length of the silence table, the limit of a song
  int64_t timbre_frames;                    // latent frames of a reference excerpt
  std::vector<float> silent_frame;          // first frame of the silence table, which identifies the latent space
  std::vector<std::string> unused_tensors;  // tensors that no loader reads: "directory: name"
};

/// Whether the task reads a source; text2music and jobs with audio codes ignore it.
bool reads_source(const RenderJob& job);

/// Length of the job's source in samples.
int64_t source_samples(const RenderJob& job);

/// Length of the song in samples. With a source: the length of the source, extended if the window exceeds it. Otherwise
/// job.samples or, if that is 0, the length of the audio codes.
int64_t song_samples(const RenderJob& job, const RendererInfo& info);

/// Latent frames of the song before padding. The last frame is rendered whole and cut to the sample after decoding.
int64_t song_frames(const RenderJob& job, const RendererInfo& info);

/// A window in samples, on a source that is padded if the window exceeds it.
struct WindowPlace {
  int64_t left, right;  // padding before and after the source
  int64_t begin, end;   // the window within the padded source

  friend bool operator==(const WindowPlace&, const WindowPlace&) = default;
};

/// Rounds each time to the nearest sample. Without a window: all of the source.
WindowPlace place_window(const std::optional<Window>& window, int64_t samples, int64_t sample_rate);

/// The job's window on its source. With source_latents, the padding before the source is rounded up to whole frames.
WindowPlace place_window(const RenderJob& job, const RendererInfo& info);

/// Frames [begin, end) of `frames` that a window of samples covers: both ends rounded down, at least one frame.
struct FrameRange {
  int64_t begin, end;

  friend bool operator==(const FrameRange&, const FrameRange&) = default;
};
FrameRange frames_inside(const WindowPlace& place, int64_t frames, int64_t samples_per_frame);

/// [1, frames] bool, true inside the range.
at::Tensor window_mask(const FrameRange& range, int64_t frames, at::Device device);

/// Throws kBadArgument for a job that is inconsistent or does not fit the renderer, kSongTooLong for one longer than
/// the silence table.
void check_render_job(const RenderJob& job, const RendererInfo& info);

/// Throws kBadArgument unless `audio` is [channels, samples] float32 of at least one latent frame and finite,
/// kSongTooLong if it is longer than the silence table. `what` names it in errors.
void check_recording(const std::string& what, const at::Tensor& audio, const RendererInfo& info);

/// Throws kBadArgument unless `latents` are finite and [frames, C] of this model, kSongTooLong as check_recording.
void check_latents(const std::string& what, const at::Tensor& latents, const RendererInfo& info);

}  // namespace carillon
