#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/diffusion/sampler.h"
#include "core/diffusion/schedule.h"
#include "core/runtime/placement.h"

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

/// One job of any task: every item shares the conditions and the length, each has its own seed and codes.
struct RenderJob {
  Task task = Task::kText2Music;
  std::vector<int32_t> text_token_ids;            // text prompt, ids of the text encoder's tokenizer
  std::vector<int32_t> plain_text_token_ids;      // the same as text2music would say it; needed for cover_strength < 1
  std::vector<int32_t> lyric_token_ids;           // lyric prompt, ids of the same tokenizer
  int64_t frames = 0;                             // latent frames to render, where neither codes nor source set them
  std::vector<std::vector<int32_t>> audio_codes;  // text2music, cover: one list per item, all of one length; or empty
  at::Tensor source_audio;       // [channels, samples] float32 on the CPU; text2music and codes do without
  at::Tensor reference_audio;    // the same, whose timbre to take; undefined: none
  std::optional<Window> window;  // repaint, lego; none: all of the source
  RepaintMode repaint_mode = RepaintMode::kBalanced;
  double repaint_strength = 0.5;  // 0 .. 1, of the balanced mode
  ChunkMask chunk_mask = ChunkMask::kExplicit;
  double cover_strength = 1.0;        // share of the steps that read the task's own conditions; 0 .. 1
  double cover_noise_strength = 0.0;  // how near to the source denoising starts; 0 .. 1
  std::vector<uint64_t> seeds;        // one per item: their number is the batch size
  int inference_steps = 8;
  double shift = 3.0;                            // does not act on turbo models
  std::optional<std::vector<double>> timesteps;  // descending to 0; overrides inference_steps and shift
  InferMethod infer_method = InferMethod::kOde;
  Guidance guidance;
};

/// The flow times of the job. Turbo models take any number of steps of the shift-3 formula, and given times snapped
/// to those they were distilled for; others take the job's shift, and given times as they are.
Schedule render_schedule(const RenderJob& job, bool is_turbo);

struct RenderResult {
  /// Per item [channels, samples], float32 on the CPU, contiguous. Peak at -1 dB, except where a window leaves
  /// something of the source: that has its own level.
  std::vector<at::Tensor> audio;
  int64_t samples_per_channel = 0;
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
  int64_t parameter_count;                  // of all models together
  std::vector<std::string> unused_tensors;  // what the checkpoints hold beyond what was expected: "directory: name"
};

/// True where the task works on source_audio; text2music and jobs with audio codes ignore it.
bool reads_source(const RenderJob& job);

}  // namespace carillon
