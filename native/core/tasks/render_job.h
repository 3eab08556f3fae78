#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/adapters/adapter.h"
#include "core/checkpoint/config.h"
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

/// Chunk mask that the model reads: 1 only in the window (kExplicit), or 1 in all frames (kAuto). For kAuto the
/// reference writes 2 into a boolean mask, which stores it as 1. The models were therefore trained on 0 and 1 only.
enum class ChunkMask { kExplicit, kAuto };

/// Parameters of the group `edit`. Their defaults and ranges are in src/engine/render-parameters.ts.
struct EditParameters {
  RepaintMode repaint_mode;
  double repaint_strength;  // 0 .. 1; only the balanced mode uses it
  ChunkMask chunk_mask;
  bool cover_skips_codes;  // cover: use the latents of the source instead of its audio codes
  std::optional<int64_t> latent_crossfade_frames = {};    // replaces RepaintBlend::crossfade_frames of the mode
  std::optional<double> waveform_crossfade_seconds = {};  // replaces RepaintBlend::crossfade_seconds of the mode
};

/// Tokens [first, first + count) of the lyric prompt: the words of the song, without headings.
struct LyricSpan {
  int64_t first, count;
};

/// Token ids of the text encoder's tokenizer.
struct PromptIds {
  std::vector<int32_t> text, lyrics;
  std::vector<int32_t> plain_text = {};        // the text2music prompt; needed for a cover strength below 1
  std::optional<LyricSpan> timed_lyrics = {};  // tokens to compute timestamps for, if the model can
};

/// A batch of songs with the same task, source and length. Each item has its own seed, and may have its own audio codes
/// and prompts. The seeds are the only source of randomness. On the CPU the bytes of an item do not depend on the other
/// items.
struct RenderJob {
  Task task;
  std::vector<PromptIds> prompts;  // one for all items, or one per item
  /// Length of a song without a source, or length of source_latents. With audio codes, `samples` must not exceed their
  /// length; 0 then means the full length of the codes.
  int64_t samples;
  /// Audio codes, only for text2music and cover: one list per item, all of equal length. A job without codes has no
  /// lists. Codes outside the codebook are rejected; codes beyond the end of the song are dropped.
  std::vector<std::vector<int32_t>> audio_codes = {};
  at::Tensor source_audio = {};       // [channels, samples] float32 on the CPU; unused by text2music and with codes
  at::Tensor source_latents = {};     // [frames, C] float32 on the CPU, `samples` long; replaces source_audio
  /// Factor from the decoded source_latents to the audio of their song; nullopt: unknown.
  std::optional<double> source_gain = {};
  std::optional<Window> window = {};  // only repaint and lego; nullopt: the whole source
  at::Tensor reference_audio = {};    // timbre reference, same format as source_audio; undefined: no reference
  at::Tensor reference_latents = {};  // replaces reference_audio, same format as source_latents
  Denoise denoise;
  Guidance guidance;
  EditParameters edit;
  std::vector<ActiveAdapter> adapters = {};    // their weight changes are added in this order
  std::vector<uint64_t> seeds;                 // one per item; determines the batch size
};

struct RenderResult {
  /// Audio of each item: [channels, samples], float32 on the CPU, contiguous. The peak is -1 dB, but a song that keeps
  /// part of a source keeps the level of that part.
  std::vector<at::Tensor> audio;
  int64_t samples_per_channel = 0;
  /// The latents of each item before decoding: [frames, C], float32 on the CPU, contiguous.
  std::vector<at::Tensor> latents;
  /// Factor from the decoded latents of each item to its audio.
  std::vector<double> gains;
  /// Times in seconds of each item's timed lyric tokens. An item without timed lyrics or without an alignment has an
  /// empty list. There are no lists if the model has no lyric heads or no item has timed lyrics.
  std::vector<std::vector<float>> lyric_seconds;
  struct {
    double conditions = 0, denoise = 0, decode = 0;  // seconds
  } timings;
};

struct RendererInfo {
  Placement placement;
  bool is_turbo;
  bool is_lego_sft;
  LoudnessRange music;                      // a source outside it is brought to its middle before encoding
  int64_t sample_rate;
  int64_t samples_per_frame;                // per latent frame
  int64_t frames_per_code;                  // latent frames per audio code
  int64_t codebook_size;                    // audio codes are 0 .. codebook_size - 1
  int64_t max_frames;                       // length of the silence table; no song may be longer
  int64_t timbre_frames;                    // latent frames of a reference excerpt
  std::vector<float> silent_frame;          // first frame of the silence table; identifies the latent space
  std::vector<std::string> unused_tensors;  // tensors that no loader reads, as "directory: name"
};

/// Whether the job reads its source. Text2music and jobs with audio codes ignore the source.
bool reads_source(const RenderJob& job);

/// Length of the job's source in samples.
int64_t source_samples(const RenderJob& job);

/// Length of the song in samples. With a source, it is the length of the source, extended if the window exceeds the
/// source. Without a source, it is job.samples or, if that is 0, the length of the audio codes.
int64_t song_samples(const RenderJob& job, const RendererInfo& info);

/// Latent frames of the song before padding. The last frame is rendered whole. After decoding, the audio is cut to the
/// exact length.
int64_t song_frames(const RenderJob& job, const RendererInfo& info);

/// A window in samples on a padded source. The padding covers the part of the window that exceeds the source.
struct PlacedWindow {
  int64_t left, right;  // padding before and after the source
  int64_t begin, end;   // the window within the padded source

  friend bool operator==(const PlacedWindow&, const PlacedWindow&) = default;
};

/// Rounds the start and the end of the window to the nearest sample. nullopt stands for the whole source.
PlacedWindow place_window(const std::optional<Window>& window, int64_t samples, int64_t sample_rate);

/// Places the job's window on its source. With source_latents, the padding before the source is rounded up to whole
/// frames.
PlacedWindow place_window(const RenderJob& job, const RendererInfo& info);

/// Latent frames [begin, end) that a window covers. Both ends are rounded down, but the range has at least one frame.
struct FrameRange {
  int64_t begin, end;

  friend bool operator==(const FrameRange&, const FrameRange&) = default;
};
FrameRange frames_inside(const PlacedWindow& place, int64_t frames, int64_t samples_per_frame);

/// Returns [1, frames] bool, which is true inside the range.
at::Tensor window_mask(const FrameRange& range, int64_t frames, at::Device device);

/// Throws kBadArgument if the job is inconsistent or does not fit the renderer, and kSongTooLong if its song is longer
/// than the silence table.
void check_render_job(const RenderJob& job, const RendererInfo& info);

/// Throws kBadArgument unless `audio` is [channels, samples] float32, finite and at least one latent frame long. Throws
/// kSongTooLong if the audio is longer than the silence table. Error messages call the audio `what`.
void check_recording(const std::string& what, const at::Tensor& audio, const RendererInfo& info);

/// Throws kBadArgument unless `latents` are finite and [frames, C] of this model. Throws kSongTooLong if the latents
/// are longer than the silence table.
void check_latents(const std::string& what, const at::Tensor& latents, const RendererInfo& info);

}  // namespace carillon
