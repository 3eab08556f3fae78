#include "core/tasks/render_job.h"

#include <ATen/ATen.h>

namespace carillon {

const char* task_name(Task task) {
  switch (task) {
    case Task::kText2Music:
      return "text2music";
    case Task::kCover:
      return "cover";
    case Task::kRepaint:
      return "repaint";
    case Task::kLego:
      return "lego";
    case Task::kExtract:
      return "extract";
    case Task::kComplete:
      return "complete";
  }
  return "text2music";
}

bool reads_source(const RenderJob& job) { return job.task != Task::kText2Music && job.audio_codes.empty(); }

Schedule render_schedule(const RenderJob& job, bool is_turbo) {
  if (job.timesteps) {
    const Schedule given = custom_schedule(*job.timesteps);
    return is_turbo ? snap_to_turbo_times(given) : given;
  }
  return is_turbo ? turbo_schedule(job.inference_steps) : shifted_schedule(job.inference_steps, job.shift);
}

}  // namespace carillon
