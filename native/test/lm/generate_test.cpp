
#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <functional>

#include "core/checkpoint/tensor_file.h"
#include "test/checkpoint_files.h"
#include "test/generate_alone.h"
#include "test/lm/lm_vocabulary.h"
#include "test/lm/scripted_decoder.h"
#include "test/test.h"

using namespace carillon;
using namespace carillon::test;

namespace {

SeededJob job_of(std::vector<Segment> program, std::vector<uint64_t> seeds = {1}) {
  SeededJob job;
  job.prompt = {1, 2, 3, 4};
  job.program = std::move(program);
  job.seeds = std::move(seeds);
  job.max_new_tokens = 200;
  return job;
}

at::Tensor peak_at(int32_t id) {
  auto logits = at::zeros({kVocabularySize});
  logits[id] = 10.0;
  return logits;
}

SeededResult run(const SeededJob& job, std::function<at::Tensor(const History&)> logits) {
  MaskCache cache(vocabulary(), at::kCPU);
  ScriptedDecoder decoder(static_cast<int64_t>(job.seeds.size()) * 2, std::move(logits));
  check_job(job, vocabulary(), 4096);
  return generate(decoder, vocabulary(), cache, job, Control());
}

const std::vector<Segment> kMixed = {
    TokensSegment{{kThink, 10}}, PatternSegment{" [^\n]{1,4}\n(  [^\n]*\n)*", false, 12},
    TokensSegment{{100, 101, 102}}, PatternSegment{"(en|yue)", true, 4}, CodesSegment{7}};

}  // namespace

TEST("generate: consecutive forced ids take one forward pass, together with the token before them") {
  MaskCache cache(vocabulary(), at::kCPU);
  const auto job = job_of({TokensSegment{{20, 21, 22, 23}}, PatternSegment{"a|b", false, 3},
                           TokensSegment{{30, 31, 32}}, PatternSegment{"c|d", false, 3}, TokensSegment{{40, 41}}});
  ScriptedDecoder decoder(1, varied);
  const auto result = generate(decoder, vocabulary(), cache, job, Control());
  using Feeds = std::vector<std::pair<int64_t, int64_t>>;
  EXPECT(decoder.feeds == (Feeds{{1, 4}, {1, 4}, {1, 4}}));  // prompt; four forced ids; one choice and three forced ids
  EXPECT_EQ(result.token_ids[0].size(), size_t{11});
  EXPECT(result.finished[0] == FinishReason::kProgram);
}

TEST("generate: rows that diverge stay in one batch and keep their own tokens") {
  const auto job = job_of(kMixed, {1, 2, 3, 4, 5, 6, 7, 8});
  MaskCache cache(vocabulary(), at::kCPU);
  ScriptedDecoder decoder(8, varied);
  const auto result = generate(decoder, vocabulary(), cache, job, Control());
  bool lengths_differ = false;
  for (size_t row = 0; row < 8; ++row) {
    const auto& ids = result.token_ids[row];
    lengths_differ |= ids.size() != result.token_ids[0].size();
    // the model processes the prompt and all new tokens except the last
    History expected = job.prompt;
    expected.insert(expected.end(), ids.begin(), ids.end());
    const auto& seen = decoder.history(row);
    EXPECT(seen.size() < expected.size() && seen.size() + 1 >= expected.size());
    EXPECT(std::equal(seen.begin(), seen.end(), expected.begin()));
    for (size_t i = ids.size() - 7; i < ids.size(); ++i) EXPECT(ids[i] >= kFirstCode && ids[i] < kFirstCode + kCodes);
  }
  EXPECT(lengths_differ);
  EXPECT(decoder.feeds.back().first < 8);  // finished rows are dropped
}

TEST("generate: ids for a seed do not depend on the batch or the position in it") {
  auto job = job_of(kMixed, {11, 12, 13, 14, 15, 16, 17, 18});
  const auto all = run(job, varied);
  for (size_t row = 0; row < 8; ++row) {
    job.seeds = {11 + row};
    EXPECT(run(job, varied).token_ids[0] == all.token_ids[row]);
  }
  job.seeds = {18, 11};
  EXPECT(run(job, varied).token_ids[1] == all.token_ids[0]);
  EXPECT(all.token_ids[0] != all.token_ids[1]);
}

TEST("generate: jobs of a batch keep their own prompts, programs and ids") {
  std::vector<SeededJob> jobs = {job_of(kMixed, {11}), job_of(kMixed, {12}), job_of(kMixed, {13}),
                                 job_of({CodesSegment{9}}, {14})};
  jobs[1].prompt = jobs[2].prompt = {5, 6};
  std::vector<LanguageJob> batch;
  for (SeededJob& job : jobs) {
    job.cfg_scale = 2.0;
    job.negative_prompt = {9};
    batch.push_back(job.jobs().front());
  }
  MaskCache cache(vocabulary(), at::kCPU);
  ScriptedDecoder decoder(8, varied);
  const auto together = generate(decoder, vocabulary(), cache, batch, Control());
  EXPECT_EQ(together.size(), size_t{4});
  for (size_t i = 0; i < jobs.size(); ++i) EXPECT(run(jobs[i], varied).token_ids[0] == together[i].token_ids);
  const auto prefill = [](const auto& feed) { return feed.first == 1 && feed.second > 0; };
  EXPECT(std::all_of(decoder.feeds.begin(), decoder.feeds.begin() + 3, prefill));  // prefills each distinct prompt once
  EXPECT_EQ(decoder.history(1).front(), 5);
}

TEST("generate: OOM error names the number of songs that fit") {
  check_cache(16, 2, 1000, 16000);
  EXPECT_THROWS(check_cache(16, 2, 1000, 7000), "SVC_BATCH_MAX=3 fits");
  EXPECT_THROWS(check_cache(2, 2, 1000, 1500), "shorten the song");
}

TEST("generate: guidance uses the negative prompt; unconditional rows get the tokens of conditional ones") {
  auto job = job_of({CodesSegment{5}}, {1, 2});
  job.negative_prompt = {9};
  job.temperature = 0.0;
  job.cfg_scale = 2.0;
  // The prompt slightly prefers code 3 to code 4. The negative prompt strongly prefers code 3, so guidance selects 4.
  const auto logits = [](const History& history) {
    auto values = at::zeros({kVocabularySize});
    values[kFirstCode + 3] = history.front() == 9 ? 5.0 : 3.1;
    values[kFirstCode + 4] = 3.0;
    return values;
  };
  MaskCache cache(vocabulary(), at::kCPU);
  ScriptedDecoder decoder(4, logits);
  const auto guided = generate(decoder, vocabulary(), cache, job, Control());
  EXPECT(guided.token_ids[0] == History(5, kFirstCode + 4));
  for (size_t row = 0; row < 2; ++row) {
    const int32_t four = kFirstCode + 4;
    EXPECT(decoder.history(row) == (History{1, 2, 3, 4, four, four, four, four}));
    EXPECT(decoder.history(row + 2) == (History{9, four, four, four, four}));
  }
  job.cfg_scale = 1.0;
  ScriptedDecoder unguided(2, logits);  // has rows for conditional prompts only
  EXPECT(generate(unguided, vocabulary(), cache, job, Control()).token_ids[0] == History(5, kFirstCode + 3));
}

TEST("generate: a codes segment computes only the logits of audio codes") {
  MaskCache cache(vocabulary(), at::kCPU);
  ScriptedDecoder decoder(2, varied);
  generate(decoder, vocabulary(), cache, job_of({CodesSegment{4}}, {1, 2}), Control());
  EXPECT_EQ(decoder.windows.size(), size_t{4});
  for (const auto& window : decoder.windows) EXPECT(window == (std::pair<int64_t, int64_t>{kFirstCode, kCodes}));
}

TEST("generate: a greedy pattern takes the maximum of the raw logits, ignoring temperature, penalty and guidance") {
  auto job = job_of({PatternSegment{" (en|yue|de)\n", true, 8}}, {1, 2, 3, 4});
  job.temperature = 5.0;
  job.repetition_penalty = 3.0;
  for (const auto& [name, first] : {std::pair{" en\n", word(" en")}, std::pair{" yue\n", word(" yue")}}) {
    const auto wanted = peak_at(first);
    const auto result = run(job, [&](const History&) { return wanted; });
    for (const auto& ids : result.token_ids) EXPECT_EQ(text_of(vocabulary(), ids), name);
  }
}

TEST("generate: the repetition penalty counts only new tokens of the row") {
  auto job = job_of({CodesSegment{3}});
  job.prompt.push_back(kFirstCode + 2);  // not penalised, because it is in the prompt
  job.temperature = 0.0;
  job.repetition_penalty = 2.0;
  const auto result = run(job, [](const History&) {
    auto logits = at::zeros({kVocabularySize});
    logits[kFirstCode + 2] = 3.0;
    logits[kFirstCode + 1] = 2.0;
    return logits;
  });
  EXPECT(result.token_ids[0] == (History{kFirstCode + 2, kFirstCode + 1, kFirstCode + 2}));
}

TEST("generate: the penalty applies to the conditional logits before guidance") {
  auto job = job_of({CodesSegment{3}});
  job.negative_prompt = {9};
  job.temperature = 0.0;
  job.repetition_penalty = 2.0;
  job.cfg_scale = 2.0;
  const auto result = run(job, [](const History& history) {
    auto logits = at::full({kVocabularySize}, -5.0);
    logits[kFirstCode + 1] = history.front() == 9 ? 4.0 : 5.0;  // guided 6; after a penalty 4 + 2 (2.5 - 4) = 1
    logits[kFirstCode + 2] = 2.0;                               // guided 2; after a penalty 2 + 2 (1 - 2) = 0
    return logits;
  });
  EXPECT(result.token_ids[0] == (History{kFirstCode + 1, kFirstCode + 2, kFirstCode + 1}));
}

TEST("generate: each row stops at its own end token, so lengths differ") {
  auto job = job_of({CodesSegment{}}, {1, 2, 3, 4, 5, 6});
  const auto result = run(job, [](const History& history) {
    auto logits = varied(history);
    logits[kTurnEnd] = 4.5;
    return logits;
  });
  std::vector<size_t> lengths;
  for (size_t row = 0; row < 6; ++row) {
    EXPECT(result.finished[row] == FinishReason::kEndToken);
    lengths.push_back(result.token_ids[row].size());
    for (const int32_t id : result.token_ids[row]) EXPECT(id >= kFirstCode);
  }
  EXPECT(*std::max_element(lengths.begin(), lengths.end()) > *std::min_element(lengths.begin(), lengths.end()));
}

TEST("generate: feeds a long prompt in chunks, once for all rows") {
  auto job = job_of({CodesSegment{1}}, {1, 2, 3});
  job.prompt.assign(1100, 7);
  job.negative_prompt = {8, 8};
  job.cfg_scale = 1.5;
  MaskCache cache(vocabulary(), at::kCPU);
  ScriptedDecoder decoder(6, varied);
  std::vector<Progress> reports;
  const Control control(nullptr, [&](const Progress& progress) { reports.push_back(progress); });
  generate(decoder, vocabulary(), cache, job, control);
  using Feeds = std::vector<std::pair<int64_t, int64_t>>;
  EXPECT(decoder.feeds == (Feeds{{1, 512}, {1, 512}, {1, 76}, {1, 2}}));
  EXPECT(reports.front().stage == Stage::kPrefill && reports.front().done == 0 && reports.front().total == 1102);
  EXPECT_EQ(reports[reports.size() - 2].done, int64_t{1102});
}

TEST("generate: progress counts tokens, with a total if the program has a fixed length") {
  auto job = job_of({CodesSegment{5}}, {1, 2});
  job.stage = Stage::kCodes;
  MaskCache cache(vocabulary(), at::kCPU);
  ScriptedDecoder decoder(2, varied);
  std::vector<int64_t> done;
  generate(decoder, vocabulary(), cache, job, Control(nullptr, [&](const Progress& progress) {
             if (progress.stage != Stage::kCodes) return;
             EXPECT_EQ(progress.total, int64_t{5});
             done.push_back(progress.done);
           }));
  EXPECT(done == (std::vector<int64_t>{1, 2, 3, 4, 5}));
}

TEST("generate: can be cancelled between tokens and within a long prompt") {
  auto job = job_of({CodesSegment{100}});
  MaskCache cache(vocabulary(), at::kCPU);
  for (const Stage stage : {Stage::kText, Stage::kPrefill}) {
    job.prompt.assign(2000, 7);
    std::atomic<bool> cancelled = false;
    ScriptedDecoder decoder(1, varied);
    const Control control(&cancelled, [&](const Progress& progress) {
      if (progress.stage == stage && progress.done >= 3) cancelled = true;
    });
    EXPECT_THROWS(generate(decoder, vocabulary(), cache, job, control), "cancelled");
    EXPECT_EQ(decoder.feeds.size(), size_t{stage == Stage::kPrefill ? 2u : 4u + 3u});
  }
}

TEST("generate: reports logits that are not finite") {
  auto job = job_of({CodesSegment{2}});
  const auto broken = [](const History&) { return at::full({kVocabularySize}, std::nan("")); };
  EXPECT_THROWS(run(job, broken), "not finite");
  job.temperature = 0.0;
  EXPECT_THROWS(run(job, broken), "not finite");
}

TEST("generate: rejects an impossible job and says what to change") {
  const auto refused = [](const std::function<void(LanguageJob&)>& change) {
    auto job = job_of({CodesSegment{50}});
    change(job);
    check_job(job, vocabulary(), 100);
  };
  refused([](LanguageJob&) {});
  EXPECT_THROWS(refused([](LanguageJob& job) { job.prompt.assign(60, 1); }),
                "the prompt of 60 tokens and 50 new tokens do not fit into the language model's 100 positions");
  EXPECT_THROWS(refused([](LanguageJob& job) { job.program = {TextSegment{}}; }), "200 new tokens do not fit");
  EXPECT_THROWS(refused([](LanguageJob& job) { job.max_new_tokens = 49; }),
                "the program has 50 tokens, but maxNewTokens is 49");
  EXPECT_THROWS(refused([](LanguageJob& job) { job.prompt.clear(); }), "the prompt is empty");
  EXPECT_THROWS(refused([](LanguageJob& job) { job.prompt[0] = kVocabularySize; }), "the vocabulary ends at");
  EXPECT_THROWS(refused([](LanguageJob& job) { job.cfg_scale = 0.0; }), "cfgScale must be at least 1");
  EXPECT_THROWS(refused([](LanguageJob& job) { job.cfg_scale = 2.0; }), "needs a negative prompt");
  EXPECT_THROWS(refused([](LanguageJob& job) { job.temperature = std::nan(""); }), "temperature");
  EXPECT_THROWS(refused([](LanguageJob& job) { job.repetition_penalty = 0.0; }), "repetitionPenalty");
  EXPECT_THROWS(refused([](LanguageJob& job) { job.program = {PatternSegment{"a", false, 0}}; }), "maxTokens");
}

namespace {

const Placement kFloat32{at::kCPU, at::kFloat};

/// A random two-layer model over the small vocabulary, read from a checkpoint.
CausalLm tiny_model() {
  constexpr int64_t kHidden = 32, kHeads = 4, kKvHeads = 2, kDim = 16, kIntermediate = 48;
  auto random = at::detail::createCPUGenerator(5);
  const auto matrix = [&](int64_t rows, int64_t columns) {
    return at::randn({rows, columns}, random) / std::sqrt(static_cast<double>(columns));
  };
  Tensors tensors = {{"embed_tokens.weight", at::randn({kVocabularySize, kHidden}, random) * 0.4},
                     {"norm.weight", at::ones({kHidden})}};
  for (int64_t i = 0; i < 2; ++i) {
    const std::string layer = "layers." + std::to_string(i) + ".";
    tensors[layer + "input_layernorm.weight"] = at::ones({kHidden});
    tensors[layer + "post_attention_layernorm.weight"] = at::ones({kHidden});
    tensors[layer + "self_attn.q_norm.weight"] = at::ones({kDim});
    tensors[layer + "self_attn.k_norm.weight"] = at::ones({kDim});
    tensors[layer + "self_attn.q_proj.weight"] = matrix(kHeads * kDim, kHidden);
    tensors[layer + "self_attn.k_proj.weight"] = matrix(kKvHeads * kDim, kHidden);
    tensors[layer + "self_attn.v_proj.weight"] = matrix(kKvHeads * kDim, kHidden);
    tensors[layer + "self_attn.o_proj.weight"] = matrix(kHidden, kHeads * kDim);
    tensors[layer + "mlp.gate_proj.weight"] = matrix(kIntermediate, kHidden);
    tensors[layer + "mlp.up_proj.weight"] = matrix(kIntermediate, kHidden);
    tensors[layer + "mlp.down_proj.weight"] = matrix(kHidden, kIntermediate);
  }
  const auto directory = fixture_directory();
  write_safetensors(directory + "/model.safetensors", tensors);
  write_file(directory + "/config.json",
             "{\"vocab_size\": " + std::to_string(kVocabularySize) +
                 R"(, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
                    "num_key_value_heads": 2, "head_dim": 16, "rope_theta": 10000, "max_position_embeddings": 1024})");
  return CausalLm::load(directory, kFloat32, Control());
}

/// Decoder that feeds several ids to a real model one at a time.
class OneByOneDecoder : public Decoder {
 public:
  OneByOneDecoder(const CausalLm& model, int64_t rows) : model_(model), cache_(model.make_cache(rows, 400)) {}
  at::Tensor feed(const at::Tensor& ids, c10::ArrayRef<int64_t> rows) override {
    at::Tensor hidden;
    for (int64_t i = 0; i < ids.size(1); ++i) hidden = model_.feed(ids.narrow(1, i, 1).contiguous(), rows, cache_);
    return hidden;
  }
  at::Tensor logits(const at::Tensor& hidden, int64_t first, int64_t count) override {
    return model_.logits(hidden).narrow(1, first, count);
  }
  void copy_row(int64_t from, int64_t to) override { cache_.copy_row(from, to); }
  void clear_row(int64_t row) override { cache_.truncate(row, 0); }

 private:
  const CausalLm& model_;
  KvCache cache_;
};

}  // namespace

TEST("generate: a real model gives the same ids if it is fed one token at a time and computes all logits") {
  const auto model = tiny_model();
  auto job = job_of(kMixed, {1, 2, 3, 4});
  job.negative_prompt = {5, 6};
  job.cfg_scale = 1.8;
  job.top_p = 0.9;
  MaskCache cache(vocabulary(), at::kCPU);
  const auto result = generate(model, vocabulary(), cache, job, 300, Control());
  OneByOneDecoder decoder(model, 8);
  const auto expected = generate(decoder, vocabulary(), cache, job, Control());
  EXPECT(result.token_ids == expected.token_ids);
  for (const auto reason : result.finished) EXPECT(reason == FinishReason::kProgram);
}

TEST("generate: a real model gives the same ids for a seed in every batch") {
  const auto model = tiny_model();
  MaskCache cache(vocabulary(), at::kCPU);
  auto job = job_of(kMixed, {1, 2, 3, 4, 5, 6, 7, 8});
  job.negative_prompt = {5, 6};
  job.cfg_scale = 2.5;
  const auto all = generate(model, vocabulary(), cache, job, 300, Control());
  for (size_t row = 0; row < 8; ++row) {
    job.seeds = {row + 1};
    EXPECT(generate(model, vocabulary(), cache, job, 300, Control()).token_ids[0] == all.token_ids[row]);
  }
}

TEST("generate: rejects a tokenizer larger than the model") {
  const auto model = tiny_model();
  const Vocabulary larger({}, std::vector<int32_t>(kVocabularySize + 2, 0), {0}, 1, 10);
  MaskCache cache(larger, at::kCPU);
  EXPECT_THROWS(generate(model, larger, cache, job_of({CodesSegment{1}}), 300, Control()),
                "the tokenizer has 377 tokens, but the language model has 376");
}

TEST("generate: unconstrained at temperature 0 matches the greedy sequence of the reference") {
  const char* root = std::getenv("CARILLON_PARITY_ROOT");
  if (!root) SKIP("CARILLON_PARITY_ROOT is not set: the golden lies outside the repository");
  const auto golden = Safetensors(std::string(root) + "/goldens/lm_greedy.safetensors");
  const auto directory = std::string(root) + "/checkpoints/" + golden.metadata().at("checkpoint");
  const auto model = CausalLm::load(directory, kFloat32, Control());
  const auto prompt = golden.tensor("in.input_ids").to(at::kInt).flatten();
  const auto sequence = golden.tensor("out.sequence").to(at::kInt).flatten();
  const auto size = static_cast<int32_t>(model.config().vocab_size);
  // The reference implementation ignored end tokens. Therefore this end token is one that the sequence lacks.
  const Vocabulary plain({}, std::vector<int32_t>(static_cast<size_t>(size) + 1, 0), {size - 1}, 0, 0);
  MaskCache cache(plain, at::kCPU);
  SeededJob job;
  job.prompt = {prompt.const_data_ptr<int32_t>(), prompt.const_data_ptr<int32_t>() + prompt.numel()};
  job.program = {FreeSegment{}};
  job.seeds = {0, 1};
  job.temperature = 0.0;
  job.max_new_tokens = sequence.numel() - prompt.numel();
  for (const auto& ids : generate(model, plain, cache, job, 512, Control()).token_ids) {
    auto whole = job.prompt;
    whole.insert(whole.end(), ids.begin(), ids.end());
    EXPECT(at::tensor(whole, at::kInt).equal(sequence));
  }
}
