#include <ATen/ATen.h>

#include <chrono>
#include <memory>

#include "bench/benchmark.h"
#include "core/lm/generate.h"

namespace carillon::bench {
namespace {

constexpr int64_t kPromptTokens = 400;
constexpr int32_t kFirstCode = 151669, kCodeCount = 64000;  // of the published language models

/// The published vocabulary as far as the codes phase knows it: text tokens without bytes.
Vocabulary codes_vocabulary(int64_t size) {
  return Vocabulary({}, std::vector<int32_t>(static_cast<size_t>(size) + 1, 0), {151645}, kFirstCode, kCodeCount);
}

/// Seconds per code between the first and the last code of one generation: without the prompt.
class CodeTimer {
 public:
  void operator()(const Progress& progress) {
    if (progress.stage != Stage::kCodes) return;
    const auto now = std::chrono::steady_clock::now();
    if (reports_++ == 0) first_ = now;
    last_ = now;
  }
  double seconds_per_code() const { return std::chrono::duration<double>(last_ - first_).count() / (reports_ - 1); }

 private:
  int reports_ = 0;
  std::chrono::steady_clock::time_point first_, last_;
};

Repetition prepare(const Settings& settings, double cfg_scale) {
  const std::string directory = settings.checkpoints + "/acestep-5Hz-lm-0.6B";
  const auto model = std::make_shared<CausalLm>(CausalLm::load(directory, settings.placement, Control()));
  const auto vocabulary = std::make_shared<Vocabulary>(codes_vocabulary(model->config().vocab_size));
  LanguageJob job;
  job.prompt = job.negative_prompt = some_tokens(kPromptTokens, kFirstCode);
  job.program = {CodesSegment{settings.size}};
  job.seeds = {1};
  job.max_new_tokens = settings.size;
  job.cfg_scale = cfg_scale;
  job.stage = Stage::kCodes;
  return [=] {
    MaskCache masks(*vocabulary, model->placement().device);
    CodeTimer timer;
    generate(*model, *vocabulary, masks, job, kPromptTokens + settings.size + 1,
             Control(nullptr, [&](const Progress& progress) { timer(progress); }));
    return timer.seconds_per_code();
  };
}

}  // namespace

Repetition prepare_lm_decode(const Settings& settings) { return prepare(settings, 1.0); }
Repetition prepare_lm_decode_cfg(const Settings& settings) { return prepare(settings, 2.0); }

}  // namespace carillon::bench
