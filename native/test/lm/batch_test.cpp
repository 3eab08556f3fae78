// Tests that requests can be decoded together.
#include "core/lm/batch.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "core/runtime/device.h"
#include "core/runtime/error.h"
#include "test/generate_alone.h"
#include "test/lm/lm_vocabulary.h"
#include "test/lm/scripted_decoder.h"
#include "test/test.h"

using namespace carillon;
using namespace carillon::test;

namespace {

/// A request with its progress and its outcome.
struct Asked {
  std::atomic<bool> cancelled{false};
  std::vector<Progress> progress;
  std::vector<LanguageResult> results;
  std::string error;
  std::shared_ptr<LanguageRequest> request;
};

std::unique_ptr<Asked> ask(const SeededJob& job, std::function<void(Asked&, const Progress&)> on_progress = {}) {
  auto asked = std::make_unique<Asked>();
  const Control control(&asked->cancelled, [own = asked.get(), on_progress](const Progress& progress) {
    own->progress.push_back(progress);
    if (on_progress) on_progress(*own, progress);
  });
  asked->request = std::make_shared<LanguageRequest>(LanguageRequest{
      job.jobs(), control, [own = asked.get()](std::vector<LanguageResult> results) { own->results = results; },
      [own = asked.get()](const std::exception_ptr& error) {
        try {
          std::rethrow_exception(error);
        } catch (const std::exception& caught) {
          own->error = caught.what();
        }
      }});
  return asked;
}

/// Queue in which each request becomes available at a given call of take().
class Arrivals : public RequestQueue {
 public:
  void offer(int call, const std::unique_ptr<Asked>& asked) { waiting_.emplace_back(call, asked->request); }
  std::shared_ptr<LanguageRequest> take(const std::function<bool(const LanguageRequest&)>& fits) override {
    ++calls_;
    if (waiting_.empty() || waiting_.front().first > calls_ || !fits(*waiting_.front().second)) return nullptr;
    auto request = waiting_.front().second;
    waiting_.pop_front();
    return request;
  }
  size_t left() const { return waiting_.size(); }

 private:
  std::deque<std::pair<int, std::shared_ptr<LanguageRequest>>> waiting_;
  int calls_ = 0;
};

SeededJob codes_job(std::vector<int32_t> prompt, int64_t count, std::vector<uint64_t> seeds) {
  SeededJob job;
  job.prompt = std::move(prompt);
  job.negative_prompt = {9, 8};
  job.program = {TokensSegment{{kThink, 10}}, CodesSegment{count}};
  job.seeds = std::move(seeds);
  job.max_new_tokens = 60;
  return job;
}

SeededResult alone(const SeededJob& job, const std::function<at::Tensor(const History&)>& logits = varied) {
  MaskCache masks(vocabulary(), at::kCPU);
  ScriptedDecoder decoder(static_cast<int64_t>(job.seeds.size()) * 2, logits);
  return generate(decoder, vocabulary(), masks, job, Control());
}

void run(Decoder& decoder, const std::unique_ptr<Asked>& first, RequestQueue& queue, int64_t songs,
         int64_t row_tokens = 100) {
  MaskCache masks(vocabulary(), at::kCPU);
  Batch(decoder, vocabulary(), masks, first->request->jobs.front(), {songs, row_tokens, 4096}, queue)
      .run(first->request);
}

}  // namespace

TEST("batch: a request that joins a running batch gets the same ids as when run alone, and so do the others") {
  for (const double cfg_scale : {1.0, 2.0}) {
    SeededJob one = codes_job({1, 2, 3}, 20, {1, 2}), two = codes_job({5, 6, 7, 8}, 9, {7, 1});
    one.cfg_scale = two.cfg_scale = cfg_scale;
    const auto first = ask(one), second = ask(two);
    Arrivals arrivals;
    arrivals.offer(6, second);
    ScriptedDecoder decoder(8, varied);
    run(decoder, first, arrivals, 4);
    EXPECT(SeededResult(first->results).token_ids == alone(one).token_ids);
    EXPECT(SeededResult(second->results).token_ids == alone(two).token_ids);
    const int64_t rows_per_song = cfg_scale > 1.0 ? 2 : 1;
    EXPECT(std::ranges::count(decoder.feeds, std::pair<int64_t, int64_t>(4 * rows_per_song, 1)) >= 8);  // together
    EXPECT(decoder.feeds.back() == (std::pair<int64_t, int64_t>(2 * rows_per_song, 1)));  // only one request remains
  }
}

TEST("batch: a joining request reuses the cache rows of a request that has ended") {
  const SeededJob long_job = codes_job({1, 2, 3}, 30, {1}), short_job = codes_job({5, 6}, 4, {2}),
                  next_job = codes_job({7, 7, 7, 7}, 6, {3});
  const auto first = ask(long_job), second = ask(short_job), third = ask(next_job);
  Arrivals arrivals;
  arrivals.offer(1, second);
  arrivals.offer(1, third);
  ScriptedDecoder decoder(2, varied);
  run(decoder, first, arrivals, 2);
  EXPECT(SeededResult(first->results).token_ids == alone(long_job).token_ids);
  EXPECT(SeededResult(second->results).token_ids == alone(short_job).token_ids);
  EXPECT(SeededResult(third->results).token_ids == alone(next_job).token_ids);
}

TEST("batch: a cancelled request leaves between tokens, and the others go on") {
  const SeededJob one = codes_job({1, 2, 3}, 20, {1}), two = codes_job({5, 6, 7}, 30, {2});
  const auto first = ask(one), second = ask(two, [](Asked& asked, const Progress& progress) {
                                 if (progress.stage == Stage::kText && progress.done >= 8) asked.cancelled = true;
                               });
  Arrivals arrivals;
  arrivals.offer(3, second);
  ScriptedDecoder decoder(2, varied);
  run(decoder, first, arrivals, 2);
  EXPECT(SeededResult(first->results).token_ids == alone(one).token_ids);
  EXPECT(second->error.find("cancelled") != std::string::npos);
  EXPECT(second->results.empty() && second->progress.back().done == 8);
}

TEST("batch: reports to each request the progress of its own rows") {
  const auto first = ask(codes_job({1, 2, 3}, 20, {1})), second = ask(codes_job({5, 6, 7}, 4, {2}));
  Arrivals arrivals;
  arrivals.offer(10, second);
  ScriptedDecoder decoder(2, varied);
  run(decoder, first, arrivals, 2);
  EXPECT_EQ(first->progress.back().done, int64_t{22});
  EXPECT_EQ(first->progress.back().total, int64_t{22});
  EXPECT_EQ(second->progress.back().done, int64_t{6});
  EXPECT_EQ(second->progress.back().total, int64_t{6});
}

TEST("batch: a request waits for its own batch if its sampling differs, or if its rows are too long or too many") {
  const SeededJob job = codes_job({1, 2, 3}, 20, {1});
  std::vector<SeededJob> others(6, codes_job({5, 6, 7}, 20, {2}));
  others[0].temperature = 0.5;
  others[1].cfg_scale = 2.0;
  others[2].stage = Stage::kCodes;
  others[3].prompt.resize(30, 4);
  others[4].seeds = {1, 2, 3};
  others[5].shares_batch = false;
  for (const SeededJob& other : others) {
    const auto first = ask(job), second = ask(other);
    Arrivals arrivals;
    arrivals.offer(1, second);
    ScriptedDecoder decoder(2, varied);
    run(decoder, first, arrivals, 2, 30);
    EXPECT_EQ(arrivals.left(), size_t{1});
    EXPECT(SeededResult(first->results).token_ids == alone(job).token_ids);
  }
}

TEST("batch: no request joins one with shares_batch = false") {
  SeededJob job = codes_job({1, 2, 3}, 20, {1});
  job.shares_batch = false;
  const auto first = ask(job), second = ask(codes_job({5, 6, 7}, 20, {2}));
  Arrivals arrivals;
  arrivals.offer(1, second);
  ScriptedDecoder decoder(2, varied);
  run(decoder, first, arrivals, 2);
  EXPECT_EQ(arrivals.left(), size_t{1});
}

TEST("batch: an invalid request is rejected when it joins, and the others go on") {
  const SeededJob job = codes_job({1, 2, 3}, 20, {1});
  SeededJob invalid = codes_job({5, kVocabularySize}, 5, {2});
  const auto first = ask(job), second = ask(invalid);
  Arrivals arrivals;
  arrivals.offer(2, second);
  ScriptedDecoder decoder(2, varied);
  run(decoder, first, arrivals, 2);
  EXPECT(second->error.find("the prompt has token id") != std::string::npos);
  EXPECT(SeededResult(first->results).token_ids == alone(job).token_ids);
}

TEST("batch: a request whose hidden states are not finite fails, and the others go on") {
  constexpr int32_t kBroken = 77;
  class BrokenDecoder : public ScriptedDecoder {
   public:
    using ScriptedDecoder::ScriptedDecoder;
    at::Tensor feed(const at::Tensor& ids, c10::ArrayRef<int64_t> rows) override {
      const auto hidden = ScriptedDecoder::feed(ids, rows);
      for (size_t line = 0; line < rows.size(); ++line) {
        const History& own = history(static_cast<size_t>(rows[line]));
        if (own.front() == kBroken && own.size() > 8) hidden[static_cast<int64_t>(line)][1] = NAN;
      }
      return hidden;
    }
  };
  const SeededJob job = codes_job({1, 2, 3}, 20, {1});
  const auto first = ask(job), second = ask(codes_job({kBroken, 6, 7}, 20, {2}));
  Arrivals arrivals;
  arrivals.offer(2, second);
  BrokenDecoder decoder(2, varied);
  run(decoder, first, arrivals, 2);
  EXPECT(second->error.find("not finite") != std::string::npos);
  EXPECT(SeededResult(first->results).token_ids == alone(job).token_ids);
}

TEST("batch: a failure of the model rejects all of its requests") {
  class FailingDecoder : public ScriptedDecoder {
   public:
    using ScriptedDecoder::ScriptedDecoder;
    at::Tensor feed(const at::Tensor& ids, c10::ArrayRef<int64_t> rows) override {
      if (rows.size() == 2) fail(ErrorCode::kOutOfMemory, "out of memory");
      return ScriptedDecoder::feed(ids, rows);
    }
  };
  const auto first = ask(codes_job({1, 2, 3}, 20, {1})), second = ask(codes_job({5, 6, 7}, 20, {2}));
  Arrivals arrivals;
  arrivals.offer(2, second);
  FailingDecoder decoder(2, varied);
  run(decoder, first, arrivals, 2);
  EXPECT(first->error == "out of memory" && second->error == "out of memory");
}

TEST("generate: a request that joins a running batch of a real model gets the same ids as when run alone") {
  for (const char* dtype : {"float32", "bfloat16"}) {
    const CausalLm model = CausalLm::load("models/carillon-nano/lm", choose_placement("cpu", dtype), Control());
    const auto size = static_cast<size_t>(model.config().vocab_size);
    const Vocabulary codes({}, std::vector<int32_t>(size + 1, 0), {1}, 2048, 4096);
    MaskCache masks(codes, at::kCPU);
    SeededJob one, two;
    for (SeededJob* job : {&one, &two}) {
      job->program = {CodesSegment{12}};
      job->negative_prompt = {7, 8, 9};
      job->cfg_scale = 2.0;
      job->max_new_tokens = 12;
    }
    one.prompt = {100, 101, 102, 103}, one.seeds = {1};
    two.prompt = {200, 201, 202, 203, 204, 205}, two.seeds = {2, 3};
    const auto first = ask(one), second = ask(two);
    Arrivals arrivals;
    arrivals.offer(5, second);
    generate(model, codes, masks, first->request, arrivals, 256, 8);
    EXPECT_EQ(arrivals.left(), size_t{0});
    EXPECT(SeededResult(first->results).token_ids == generate(model, codes, masks, one, 256, Control()).token_ids);
    EXPECT(SeededResult(second->results).token_ids == generate(model, codes, masks, two, 256, Control()).token_ids);
  }
}
