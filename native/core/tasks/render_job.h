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

/// One text2music job: every item shares the conditions and the length, each has its own seed and codes.
struct RenderJob {
  std::vector<int32_t> text_token_ids;            // text prompt, ids of the text encoder's tokenizer
  std::vector<int32_t> lyric_token_ids;           // lyric prompt, ids of the same tokenizer
  int64_t frames = 0;                             // latent frames to render; ignored where audio_codes set the length
  std::vector<std::vector<int32_t>> audio_codes;  // one list per item, all of one length; or empty
  std::vector<uint64_t> seeds;                    // one per item: their number is the batch size
  int inference_steps = 8;
  double shift = 3.0;                            // does not act on turbo models
  std::optional<std::vector<double>> timesteps;  // descending to 0; overrides inference_steps and shift
  InferMethod infer_method = InferMethod::kOde;
  Guidance guidance;
};

/// Throws kBadArgument for a job whose parts contradict each other.
void check_render_job(const RenderJob& job);

/// The flow times of the job. Turbo models take any number of steps of the shift-3 formula, and given times snapped
/// to those they were distilled for; others take the job's shift, and given times as they are.
Schedule render_schedule(const RenderJob& job, bool is_turbo);

struct RenderResult {
  std::vector<at::Tensor> audio;  // per item [channels, samples], float32 on the CPU, contiguous, peak at -1 dB
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
  int64_t parameter_count;                  // of all models together
  std::vector<std::string> unused_tensors;  // what the checkpoints hold beyond what was expected: "directory: name"
};

}  // namespace carillon
