#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/adapters/adapter.h"
#include "core/checkpoint/config.h"
#include "core/diffusion/denoise.h"
#include "core/runtime/choice.h"
#include "core/runtime/device.h"

namespace carillon {

enum class Task { kText2Music, kCover, kRepaint, kLego, kExtract, kComplete };

template <>
inline constexpr Choices<Task> kChoices<Task> = {{"text2music", Task::kText2Music}, {"cover", Task::kCover},
                                                 {"repaint", Task::kRepaint},       {"lego", Task::kLego},
                                                 {"extract", Task::kExtract},       {"complete", Task::kComplete}};

/// Part of a source to generate, in seconds; may start before 0 and end after the source.
struct Window {
  double start_seconds, end_seconds;
};

enum class RepaintMode { kConservative, kBalanced, kAggressive };

template <>
inline constexpr Choices<RepaintMode> kChoices<RepaintMode> = {{"conservative", RepaintMode::kConservative},
                                                               {"balanced", RepaintMode::kBalanced},
                                                               {"aggressive", RepaintMode::kAggressive}};

/// Chunk mask that the model reads: 1 only in the window (kExplicit), or 1 in all frames (kAuto). For kAuto the
/// reference writes 2 into a boolean mask, which stores it as 1. The models were therefore trained on 0 and 1 only.
enum class ChunkMask { kExplicit, kAuto };

template <>
inline constexpr Choices<ChunkMask> kChoices<ChunkMask> = {{"explicit", ChunkMask::kExplicit},
                                                           {"auto", ChunkMask::kAuto}};

/// The group `edit` of src/engine/render-parameters.ts; see Denoise.
struct EditParameters {
  RepaintMode repaint_mode = RepaintMode::kBalanced;
  double repaint_strength = 0.5;  // 0 .. 1; only the balanced mode uses it
  ChunkMask chunk_mask = ChunkMask::kExplicit;
  bool cover_skips_codes = false;  // cover: use the latents of the source instead of its audio codes
  std::optional<int64_t> latent_crossfade_frames = {};    // replaces RepaintBlend::crossfade_frames of the mode
  std::optional<double> waveform_crossfade_seconds = {};  // replaces RepaintBlend::crossfade_seconds of the mode

  template <typename Visit>
  void each_parameter(const Visit& visit) {
    visit("repaintMode", repaint_mode);
    visit("repaintStrength", repaint_strength);
    visit("repaintLatentCrossfadeFrames", latent_crossfade_frames);
    visit("repaintWavCrossfadeSeconds", waveform_crossfade_seconds);
    visit("chunkMaskMode", chunk_mask);
    visit("coverNofsq", cover_skips_codes);
  }
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

/// What the songs of a job differ in.
struct RenderSong {
  PromptIds prompt;
  /// Audio codes, only for text2music and cover: equally many for all songs of a job; empty: none. Codes outside the
  /// codebook are rejected; codes beyond the end of the song are dropped.
  std::vector<int32_t> codes = {};
  uint64_t seed = 1;
};

/// A recording, as audio or as latents. Undefined tensors: none.
struct GivenRecording {
  at::Tensor audio = {};    // [channels, samples] float32 on the CPU
  at::Tensor latents = {};  // [frames, C] float32 on the CPU; replaces audio
};

/// The recording that a job works on. Unused by text2music and with audio codes.
struct Source : GivenRecording {
  std::optional<double> gain = {};    // factor from decoded `latents` to the audio of their song; nullopt: unknown
  std::optional<Window> window = {};  // only repaint and lego; nullopt: the whole source
};

/// A batch of songs with the same task, source and length. The seeds are the only source of randomness. On the CPU the
/// bytes of a song do not depend on the other songs.
struct RenderJob {
  Task task = Task::kText2Music;
  std::vector<RenderSong> songs;
  /// Length of a song without a source, or length of source.latents. With audio codes, `samples` must not exceed their
  /// length; 0 then means the full length of the codes.
  int64_t samples = 0;
  Source source = {};
  GivenRecording reference = {};  // of the timbre
  Denoise denoise = {};
  Guidance guidance = {};
  EditParameters edit = {};
  std::vector<ActiveAdapter> adapters = {};  // their weight changes are added in this order
};

struct RenderedSong {
  /// [channels, samples], float32 on the CPU, contiguous. The peak is -1 dB, but a song that keeps part of a source
  /// keeps the level of that part.
  at::Tensor audio = {};
  at::Tensor latents = {};  // before decoding: [frames, C], float32 on the CPU, contiguous
  /// Factor from the decoded latents to the audio, or to the parts of the source that it keeps: a new part among them
  /// has a gain of its own (fit_part).
  double gain = 1;
  /// Times in seconds of the timed lyric tokens; empty without timed lyrics, lyric heads or an alignment.
  std::vector<float> lyric_seconds = {};
};

struct RenderResult {
  std::vector<RenderedSong> songs;
  int64_t samples_per_channel = 0;
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

std::vector<uint64_t> seeds_of(const RenderJob& job);

/// Whether the songs of the job have audio codes.
bool has_codes(const RenderJob& job);

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

/// Places the job's window on its source. If the source is given as latents, the padding before the source is rounded
/// up to whole frames.
PlacedWindow place_window(const RenderJob& job, const RendererInfo& info);

/// Latent frames [begin, end) that a window covers. Both ends are rounded down, but the range has at least one frame.
struct FrameRange {
  int64_t begin, end;

  friend bool operator==(const FrameRange&, const FrameRange&) = default;
};
FrameRange frames_inside(const PlacedWindow& place, int64_t frames, int64_t samples_per_frame);

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
