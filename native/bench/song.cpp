#include <memory>

#include "bench/benchmark.h"
#include "core/tasks/renderer.h"

namespace carillon::bench {

Repetition prepare_song(const Settings& settings) {
  constexpr int32_t kTextTokenLimit = 151643;  // below the special tokens of the published text encoder
  const Renderer::Directories directories{settings.checkpoints + "/acestep-v15-turbo", settings.checkpoints + "/vae",
                                          settings.checkpoints + "/Qwen3-Embedding-0.6B"};
  const auto renderer = std::make_shared<Renderer>(directories, settings.placement, Renderer::Residency{}, Control());
  RenderJob job;
  job.text_token_ids = some_tokens(kTextTokens, kTextTokenLimit);
  job.lyric_token_ids = some_tokens(kLyricTokens, kTextTokenLimit);
  job.frames = settings.size;
  job.seeds = {1};
  return [=] { return seconds_of([&] { renderer->render(job, Control()); }); };
}

}  // namespace carillon::bench
