#include "core/tasks/render_job.h"

#include <ATen/ATen.h>

#include <cmath>
#include <string>

#include "core/runtime/error.h"

namespace carillon {

void check_render_job(const RenderJob& job) {
  const auto require = [](bool condition, const std::string& message) {
    if (!condition) fail(ErrorCode::kBadArgument, message);
  };
  require(!job.seeds.empty(), "a job needs at least one seed");
  require(!job.text_token_ids.empty(), "the text prompt has no tokens");
  require(!job.lyric_token_ids.empty(), "the lyric prompt has no tokens");
  require(std::isfinite(job.guidance.scale), "the guidance scale is not a number");
  require(job.guidance.interval_start <= job.guidance.interval_end, "the guidance interval ends before it starts");
  if (job.audio_codes.empty()) {
    require(job.frames >= 1, "a job needs at least one latent frame, not " + std::to_string(job.frames));
    return;
  }
  const std::string items = std::to_string(job.audio_codes.size()), seeds = std::to_string(job.seeds.size());
  require(items == seeds, "there are audio codes for " + items + " items and seeds for " + seeds);
  for (const auto& codes : job.audio_codes) {
    require(!codes.empty(), "an item's audio codes are empty");
    require(codes.size() == job.audio_codes[0].size(), "the items' audio codes differ in length");
  }
}

Schedule render_schedule(const RenderJob& job, bool is_turbo) {
  if (job.timesteps) {
    const Schedule given = custom_schedule(*job.timesteps);
    return is_turbo ? snap_to_turbo_times(given) : given;
  }
  return is_turbo ? turbo_schedule(job.inference_steps) : shifted_schedule(job.inference_steps, job.shift);
}

}  // namespace carillon
