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

/// What to generate of a source, in seconds from its beginning; it may begin before 0 and end beyond the source.
struct Window {
  double start_seconds, end_seconds;
};

enum class RepaintMode { kConservative, kBalanced, kAggressive };

/// What the model is told of the window: exactly where it is, or that every frame is open to change.
enum class ChunkMask { kExplicit, kAuto };

/// The group `edit` of src/engine/render-parameters.ts, which holds its defaults and ranges.
struct Edit {
  RepaintMode repaint_mode;
  double repaint_strength;  // 0 .. 1, of the balanced mode
  ChunkMask chunk_mask;
  bool cover_skips_codes;  // a cover reads the latents of its source, not its audio codes
};

/// Token ids of the text encoder's tokenizer.
struct PromptIds {
  std::vector<int32_t> text, lyrics;
  std::vector<int32_t> plain_text = {};  // `text` as text2music would say it; needed for a cover strength below 1
};

/// Which tokens of the lyric prompt are words of the song: [first, first + count).
struct LyricSpan {
  int64_t first, count;
};

/// One job of any task: every item shares the conditions and the length, each has its own seed and codes.
struct RenderJob {
  Task task;
  PromptIds prompts;
  int64_t samples;  // of the song, where no source sets them; with audio codes at most what they say, 0: all of it
  /// text2music, cover: one list per item, all of one length; or empty.
  std::vector<std::vector<int32_t>> audio_codes = {};
  at::Tensor source_audio = {};       // [channels, samples] float32 on the CPU; text2music and codes do without
  at::Tensor source_latents = {};     // [frames, C] float32 on the CPU, in place of source_audio, as long as `samples`
  std::optional<Window> window = {};  // repaint, lego; none: all of the source
  at::Tensor reference_audio = {};    // as source_audio: whose timbre to take; undefined: none
  at::Tensor reference_latents = {};  // as source_latents, in place of reference_audio
  Denoise denoise;
  Guidance guidance;
  Edit edit;
  std::optional<LyricSpan> timed_lyrics = {};  // tells when they are sung, where the model can
  std::vector<ActiveAdapter> adapters = {};    // which act, in the order in which they add up
  std::vector<uint64_t> seeds;                 // one per item: their number is the batch size
};

struct RenderResult {
  /// Per item [channels, samples], float32 on the CPU, contiguous. Peak at -1 dB, except where a window leaves
  /// something of the source: that has its own level.
  std::vector<at::Tensor> audio;
  int64_t samples_per_channel = 0;
  /// Per item [frames, C], float32 on the CPU, contiguous: what was decoded.
  std::vector<at::Tensor> latents;
  /// Per item, when each of the timed lyrics' tokens is sung, in seconds; none where the model cannot tell.
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
  int64_t max_frames;                       // the longest song the silence table covers
  int64_t timbre_frames;                    // latent frames that are heard of a reference
  std::vector<float> silent_frame;          // first frame of the silence table, which identifies the latent space
  std::vector<std::string> unused_tensors;  // what the checkpoints hold beyond what was expected: "directory: name"
};

/// True where the task works on a source; text2music and jobs with audio codes ignore it.
bool reads_source(const RenderJob& job);

/// The length of the job's source.
int64_t source_samples(const RenderJob& job);

/// The length of a song in samples: of its source and what its window adds, else job.samples, else of its audio codes.
int64_t song_samples(const RenderJob& job, const RendererInfo& info);

/// The latent frames that hold a song, before anything is completed with silence; the last may be used in part.
int64_t song_frames(const RenderJob& job, const RendererInfo& info);

/// A window on a source that grows where the window leaves it. All in samples.
struct WindowPlace {
  int64_t left, right;  // silence to put before and behind the source
  int64_t begin, end;   // the window within what comes of that

  friend bool operator==(const WindowPlace&, const WindowPlace&) = default;
};

/// The window in samples, each time at the sample nearest to it; without a window all of the source.
WindowPlace place_window(const std::optional<Window>& window, int64_t samples, int64_t sample_rate);

/// The job's window on its source. Whole frames are put before source_latents.
WindowPlace place_window(const RenderJob& job, const RendererInfo& info);

/// Frames [begin, end) of `frames` that a window of samples covers: both ends rounded down, at least one frame.
struct FrameRange {
  int64_t begin, end;

  friend bool operator==(const FrameRange&, const FrameRange&) = default;
};
FrameRange frames_inside(const WindowPlace& place, int64_t frames, int64_t samples_per_frame);

/// [1, frames] bool, true inside the range.
at::Tensor window_mask(const FrameRange& range, int64_t frames, at::Device device);

/// Throws kBadArgument for a job whose parts contradict each other or do not fit the renderer, kSongTooLong for one
/// beyond the silence table.
void check_render_job(const RenderJob& job, const RendererInfo& info);

/// Throws kBadArgument unless `audio` is [channels, samples] float32 of at least one latent frame and finite,
/// kSongTooLong where it is longer than the silence table. `what` names it.
void check_recording(const std::string& what, const at::Tensor& audio, const RendererInfo& info);

/// Throws kBadArgument unless `latents` are finite and [frames, C] of this model, kSongTooLong as check_recording.
void check_latents(const std::string& what, const at::Tensor& latents, const RendererInfo& info);

}  // namespace carillon
