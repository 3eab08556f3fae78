#include "core/tasks/render_job.h"

#include <ATen/ATen.h>

#include "core/tasks/window.h"

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

int64_t song_frames(const RenderJob& job, const RendererInfo& info) {
  if (!job.audio_codes.empty()) return static_cast<int64_t>(job.audio_codes[0].size()) * info.frames_per_code;
  if (!reads_source(job)) return job.frames;
  const int64_t samples = job.source_audio.size(1);
  const WindowPlace place = place_window(job.window, samples, info.sample_rate);
  return (place.left + samples + place.right) / info.samples_per_frame;
}

}  // namespace carillon
