#include <memory>

#include "bench/benchmark.h"
#include "core/tasks/renderer.h"

namespace carillon::bench {

Repetition prepare_song(const Settings& settings) {
  constexpr int32_t kTextTokenLimit = 151643;  // below the special tokens of the published text encoder
  const Renderer::Directories directories{settings.checkpoints + "/acestep-v15-turbo", settings.checkpoints + "/vae",
                                          settings.checkpoints + "/Qwen3-Embedding-0.6B"};
  const auto renderer = std::make_shared<Renderer>(directories, settings.placement, Renderer::Residency{}, Control());
  const RenderJob job{
      .task = Task::kText2Music,
      .prompts = {.text = some_tokens(kTextTokens, kTextTokenLimit),
                  .lyrics = some_tokens(kLyricTokens, kTextTokenLimit),
                  .plain_text = {}},
      .frames = settings.size,
      .audio_codes = {},
      .source_audio = {},
      .window = {},
      .reference_audio = {},
      .denoise = {.inference_steps = 8,
                  .shift = 3.0,
                  .timesteps = {},
                  .infer_method = InferMethod::kOde,
                  .cover_strength = 1.0,
                  .cover_noise_strength = 0.0},
      .guidance = {.scale = 1.0, .by_angle = false, .interval_start = 0.0, .interval_end = 1.0},
      .edit = {.repaint_mode = RepaintMode::kBalanced, .repaint_strength = 0.5, .chunk_mask = ChunkMask::kExplicit},
      .seeds = {1}};
  return [=] { return seconds_of([&] { renderer->render(job, Control()); }); };
}

}  // namespace carillon::bench
