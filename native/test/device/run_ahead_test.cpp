// Tests that the GPU, choosing tokens ahead of the host, chooses the same tokens as the host.
#include "core/lm/run_ahead.h"

#include <ATen/ATen.h>

#include <functional>
#include <memory>
#include <utility>

#include "core/runtime/device.h"
#include "test/device/byte_vocabulary.h"
#include "test/device/meter.h"
#include "test/generate_alone.h"
#include "test/test.h"

namespace carillon::test {
namespace {

/// A decoder on which the host chooses every token.
class HostDecoder : public Decoder {
 public:
  HostDecoder(const CausalLm& model, int64_t rows) : model_(model), cache_(model.make_cache(rows, 256)) {}
  at::Tensor feed(const at::Tensor& ids, c10::ArrayRef<int64_t> rows) override {
    return model_.feed(ids, rows, cache_);
  }
  at::Tensor logits(const at::Tensor& hidden, int64_t first, int64_t count) override {
    return model_.logits(hidden, first, count);
  }
  void copy_row(int64_t from, int64_t to) override { cache_.copy_row(from, to); }
  void clear_row(int64_t row) override { cache_.truncate(row, 0); }

 private:
  const CausalLm& model_;
  KvCache cache_;
};

const CausalLm& model() {
  static const CausalLm shared =
      CausalLm::load("models/carillon-nano/lm", choose_placement("cuda:0", "float32"), Control());
  return shared;
}

const Vocabulary& vocabulary() {
  static const Vocabulary shared = byte_vocabulary(model().config().vocab_size);
  return shared;
}

std::vector<int32_t> ids_from(int32_t first, int32_t count) {
  std::vector<int32_t> ids(static_cast<size_t>(count));
  for (int32_t i = 0; i < count; ++i) ids[static_cast<size_t>(i)] = first + i;
  return ids;
}

SeededJob job_of(std::vector<Segment> program) {
  SeededJob job;
  job.prompt = ids_from(100, 30);
  job.negative_prompt = ids_from(100, 12);
  job.program = std::move(program);
  job.seeds = {1, 2};
  job.max_new_tokens = 60;
  job.stage = Stage::kCodes;
  return job;
}

void expect_same(const SeededJob& job) {
  MaskCache masks(vocabulary(), kDevice);
  DeviceMeter ahead;
  const auto result = generate(model(), vocabulary(), masks, job, 256, Control());
  const Totals used = ahead.used();
  HostDecoder decoder(model(), static_cast<int64_t>(job.seeds.size()) * (job.cfg_scale > 1.0 ? 2 : 1));
  DeviceMeter host;
  const auto expected = generate(decoder, vocabulary(), masks, job, Control());
  EXPECT(result.token_ids == expected.token_ids);
  EXPECT(result.finished == expected.finished);
  EXPECT(used.synchronisations < host.used().synchronisations / 4);  // so the GPU ran ahead
}

TEST("run_ahead: a step with ids on the device matches feeding the ids from the host, for rows of unequal length") {
  const CausalLm halves = CausalLm::load("models/carillon-nano/lm", choose_placement("cuda:0", "bfloat16"), Control());
  KvCache cache = halves.make_cache(2, 64), expected = halves.make_cache(2, 64);
  for (KvCache* each : {&cache, &expected}) {
    halves.feed(at::arange(100, 130).unsqueeze(0), {0}, *each);
    halves.feed(at::arange(200, 212).unsqueeze(0), {1}, *each);
  }
  const at::Tensor ids = at::tensor({7, 9}, at::kLong), lengths = at::tensor({30, 12}, at::kLong);
  const at::Tensor hidden = halves.step(ids.to(kDevice), lengths.to(kDevice), cache).cpu().to(at::kFloat);
  const at::Tensor fed = halves.feed(ids.unsqueeze(1), {0, 1}, expected).cpu().to(at::kFloat);
  EXPECT(((hidden - fed).norm() / fed.norm()).item<float>() < 0.03f);  // a few bfloat16 roundings
}

TEST("run_ahead: chooses the same tokens as the host for a guided job with prompts of different length") {
  SeededJob job = job_of({CodesSegment{40}});
  job.cfg_scale = 2.0;
  expect_same(job);
}

TEST("run_ahead: supports top k, top p, min p and a repetition penalty that counts forced ids") {
  SeededJob job = job_of({TokensSegment{{7, 3000, 8}}, CodesSegment{40}, TokensSegment{{9}}});
  job.top_k = 40;
  job.top_p = 0.9;
  job.min_p = 0.05;
  job.repetition_penalty = 1.3;
  expect_same(job);
}

TEST("run_ahead: chooses the same tokens as the host for greedy codes") {
  SeededJob job = job_of({CodesSegment{40}});
  job.temperature = 0.0;
  job.cfg_scale = 1.5;
  expect_same(job);
}

TEST("run_ahead: chooses the same tokens as the host if rows end at different positions") {
  SeededJob job = job_of({CodesSegment{}});
  job.seeds = {1, 2, 3, 4, 5, 6};
  job.temperature = 1.0;
  std::vector<int32_t> some_codes;
  for (int32_t code = 0; code < kCodeCount; code += 5) some_codes.push_back(kFirstCode + code);
  const Vocabulary ends({}, std::vector<int32_t>(static_cast<size_t>(model().config().vocab_size) + 1, 0),
                        some_codes, kFirstCode, kCodeCount);
  MaskCache masks(ends, kDevice);
  const auto result = generate(model(), ends, masks, job, 256, Control());
  HostDecoder decoder(model(), 6);
  const auto expected = generate(decoder, ends, masks, job, Control());
  EXPECT(result.token_ids == expected.token_ids);
  EXPECT(result.finished == expected.finished);
  EXPECT(std::count(result.finished.begin(), result.finished.end(), FinishReason::kEndToken) >= 2);
}

TEST("decoder: gives the same pattern tokens with and without CUDA graphs") {
  MaskCache masks(vocabulary(), kDevice);
  SeededJob job =
      job_of({PatternSegment{"([a-m][n-z]{1,2}){8,12}\n", false, 40}, TokensSegment{{7, 8}}, CodesSegment{3}});
  job.seeds = {1, 2, 3};
  job.cfg_scale = 2.0;
  const auto result = generate(model(), vocabulary(), masks, job, 256, Control());
  HostDecoder decoder(model(), 6);
  const auto expected = generate(decoder, vocabulary(), masks, job, Control());
  EXPECT(result.token_ids == expected.token_ids);
  EXPECT(result.token_ids[0].size() != result.token_ids[1].size() ||
         result.token_ids[0].size() != result.token_ids[2].size());
}

TEST("run_ahead: a request that joins while the device runs ahead changes no ids of any request") {
  class OneArrival : public RequestQueue {
   public:
    std::shared_ptr<LanguageRequest> take(const std::function<bool(const LanguageRequest&)>& fits) override {
      return ++calls_ > 10 && waiting && fits(*waiting) ? std::exchange(waiting, nullptr) : nullptr;
    }
    std::shared_ptr<LanguageRequest> waiting;

   private:
    int calls_ = 0;
  };
  SeededJob one = job_of({CodesSegment{40}}), two = job_of({CodesSegment{12}});
  two.prompt = ids_from(300, 20);
  two.seeds = {5};
  MaskCache masks(vocabulary(), kDevice);
  std::vector<std::vector<LanguageResult>> results(2);
  const auto request_of = [&](const SeededJob& job, size_t index) {
    return std::make_shared<LanguageRequest>(LanguageRequest{
        job.jobs(), Control(), [&results, index](std::vector<LanguageResult> own) { results[index] = std::move(own); },
        [](const std::exception_ptr& error) { std::rethrow_exception(error); }});
  };
  OneArrival arrivals;
  arrivals.waiting = request_of(two, 1);
  generate(model(), vocabulary(), masks, request_of(one, 0), arrivals, 256, 4);
  HostDecoder first(model(), 2), second(model(), 1);
  EXPECT(SeededResult(results[0]).token_ids == generate(first, vocabulary(), masks, one, Control()).token_ids);
  EXPECT(SeededResult(results[1]).token_ids == generate(second, vocabulary(), masks, two, Control()).token_ids);
}

TEST("run_ahead: a cancelled job does not affect the next job") {
  SeededJob job = job_of({CodesSegment{60}});
  int tokens = 0;
  std::atomic<bool> cancelled{false};
  const Control control(&cancelled, [&](const Progress& progress) {
    if (progress.stage == Stage::kCodes && ++tokens == 20) cancelled = true;
  });
  MaskCache masks(vocabulary(), kDevice);
  EXPECT_THROWS(generate(model(), vocabulary(), masks, job, 256, control), "cancelled");
  expect_same(job);
}

}  // namespace
}  // namespace carillon::test
