#include <algorithm>
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "addon/call.h"
#include "addon/entry.h"
#include "addon/exports.h"
#include "addon/values.h"
#include "core/lm/generate.h"
#include "core/lm/score.h"
#include "core/lm/vocabulary.h"
#include "core/qwen3/causal_lm.h"
#include "core/runtime/device.h"
#include "core/runtime/resident.h"

namespace carillon::addon {
namespace {

/// Queue of the requests to one model. A batch takes its requests from this queue.
class WaitingRequests : public RequestQueue {
 public:
  /// Adds a request. Returns true if the caller must start a batch, because none is running or queued.
  bool add(std::shared_ptr<LanguageRequest> request) {
    const std::lock_guard lock(mutex_);
    requests_.push_back(std::move(request));
    return !std::exchange(has_batch_, true);
  }
  /// Removes and returns the first request of a new batch.
  std::shared_ptr<LanguageRequest> take_first() {
    const std::lock_guard lock(mutex_);
    return pop();
  }
  /// Removes and returns the next request if it fits the running batch. Returns null while other work waits for the
  /// thread, because a batch that always takes new requests might never end.
  std::shared_ptr<LanguageRequest> take(const std::function<bool(const LanguageRequest&)>& fits) override {
    if (WorkerThread::language().has_waiting()) return nullptr;
    const std::lock_guard lock(mutex_);
    return requests_.empty() || !fits(*requests_.front()) ? nullptr : pop();
  }
  /// Must be called after each batch. If the result is true, the caller must start another batch.
  bool end_batch() {
    const std::lock_guard lock(mutex_);
    return has_batch_ = !requests_.empty();
  }

 private:
  std::shared_ptr<LanguageRequest> pop() {
    auto request = std::move(requests_.front());
    requests_.pop_front();
    return request;
  }

  std::mutex mutex_;
  std::deque<std::shared_ptr<LanguageRequest>> requests_;
  bool has_batch_ = false;  // whether a batch is running or queued on the thread
};

/// A model and the token masks of constrained decoding for its vocabulary. Used on the language model's thread only.
struct LoadedModel {
  LoadedModel(ResidentModel<CausalLm> resident, Vocabulary tokens, int64_t context_tokens, int64_t songs,
              const Control& control)
      : model(std::move(resident)),
        vocabulary(std::move(tokens)),
        max_context_tokens(context_tokens),
        max_songs(songs) {
    const auto loaded = model.acquire(control);
    placement = loaded->placement();
    unused_tensors = loaded->unused_tensors();
    masks.emplace(vocabulary, placement.device);
  }

  ResidentModel<CausalLm> model;
  Vocabulary vocabulary;
  std::optional<MaskCache> masks;
  int64_t max_context_tokens;
  int64_t max_songs;  // maximum number of songs that are decoded together
  WaitingRequests waiting;
  Placement placement;
  std::vector<std::string> unused_tensors;
};

Vocabulary vocabulary_of(const Napi::Object& object) {
  const auto value = object.Get("bytes");
  if (!value.IsTypedArray() || value.As<Napi::TypedArray>().TypedArrayType() != napi_uint8_array) {
    wrong_type(object.Env(), "vocabulary.bytes", "a Uint8Array");
  }
  const auto bytes = value.As<Napi::Uint8Array>();
  return Vocabulary({bytes.Data(), bytes.Data() + bytes.ElementLength()}, ids_of(object, "offsets"),
                    ids_of(object, "endTokenIds"), int32_of(object, "firstAudioCodeId"),
                    int32_of(object, "audioCodeCount"));
}

Segment segment_of(const Napi::Object& object) {
  const auto kind = text_of(object, "kind");
  if (kind == "tokens") return TokensSegment{ids_of(object, "ids")};
  if (kind == "pattern") {
    return PatternSegment{text_of(object, "pattern"),
                          choice_of<bool>(object, "choose", {{"greedy", true}, {"sample", false}}),
                          integer_of(object, "maxTokens")};
  }
  if (kind == "codes") {
    return CodesSegment{has(object, "count") ? std::optional(integer_of(object, "count")) : std::nullopt};
  }
  if (kind == "text") return TextSegment{};
  if (kind == "free") return FreeSegment{};
  throw bad_argument(object.Env(), "unknown segment kind '" + kind + "'");
}

LanguageJob language_job(const Napi::Object& object) {
  LanguageJob job;
  job.prompt = ids_of(object, "promptTokenIds");
  if (has(object, "negativePromptTokenIds")) job.negative_prompt = ids_of(object, "negativePromptTokenIds");
  job.program = array_of(object.Get("program"), "program", "an array of segments", [](const Napi::Value& segment) {
    return segment_of(object_of(segment, "a segment of the program"));
  });
  job.seed = seed_of(object, "seed");
  job.max_new_tokens = integer_of(object, "maxNewTokens");
  job.temperature = number_of(object, "temperature");
  job.cfg_scale = number_of(object, "cfgScale");
  job.top_k = integer_of(object, "topK");
  job.top_p = number_of(object, "topP");
  job.min_p = number_of(object, "minP");
  job.repetition_penalty = number_of(object, "repetitionPenalty");
  job.shares_batch = !has(object, "sharesBatch") || flag_of(object, "sharesBatch");
  job.stage = choice_of<Stage>(object, "stage",
                               {{"metadata", Stage::kMetadata}, {"codes", Stage::kCodes}, {"text", Stage::kText}});
  return job;
}

std::vector<LanguageJob> language_jobs(const Napi::Value& value) {
  return array_of(value, "jobs", "an array of language jobs",
                  [](const Napi::Value& job) { return language_job(object_of(job, "a language job")); });
}

Napi::Value to_js(Napi::Env env, const LanguageResult& result) {
  return NewObject(env)
      .set("tokenIds", array_to_js(env, result.token_ids))
      .set("finished", name_of_choice(result.finished));
}

/// Converts the scores of all targets to a JS array of TokenScores (src/engine/addon.ts).
Napi::Value to_js(Napi::Env env, const std::vector<TokenScores>& all) {
  auto array = Napi::Array::New(env);
  for (const auto& scores : all) {
    const Napi::Value object = NewObject(env)
                                   .set("logProbabilities", array_to_js(env, scores.log_probabilities))
                                   .set("ranks", array_to_js(env, scores.ranks));
    array.Set(array.Length(), object);
  }
  return array;
}

Napi::Value info_of(Napi::Env env, const LoadedModel& loaded) {
  return NewObject(env)
      .set("device", loaded.placement.device.str())
      .set("dtype", dtype_name(loaded.placement.dtype))
      .set("unusedTensors", array_to_js(env, loaded.unused_tensors));
}

[[noreturn]] void fail_closed() { fail(ErrorCode::kBadArgument, "this language model is closed"); }

void start_batch(std::shared_ptr<LoadedModel> loaded);

void run_batch(const std::shared_ptr<LoadedModel>& loaded) {
  const auto first = loaded->waiting.take_first();
  std::shared_ptr<CausalLm> model;
  try {
    first->control.check();
    model = loaded->model.acquire(first->control);
  } catch (...) {
    first->reject(std::current_exception());
  }
  if (model) {
    generate(*model, loaded->vocabulary, *loaded->masks, first, loaded->waiting, loaded->max_context_tokens,
             loaded->max_songs);
  }
  if (loaded->waiting.end_batch()) start_batch(loaded);
}

void start_batch(std::shared_ptr<LoadedModel> loaded) {
  WorkerThread::language().add([loaded = std::move(loaded)] { run_batch(loaded); });
}

/// The model that the methods of a NativeLanguageModel use; null after close().
using OpenModel = std::shared_ptr<LoadedModel>;

Napi::Value generate_tokens(OpenModel& loaded, const Napi::CallbackInfo& info) {
  auto jobs = language_jobs(info[0]);
  if (loaded == nullptr) {
    return Call::start(info.Env(), WorkerThread::language(), info[1],
                       [](const Control&) -> Call::MakeValue { fail_closed(); });
  }
  Call* const call = Call::create(info.Env(), info[1]);
  const auto promise = call->promise();
  const auto resolve = [call](std::vector<LanguageResult> results) {
    call->resolve([results = std::move(results)](Napi::Env env) {
      auto array = Napi::Array::New(env);
      for (const auto& result : results) array.Set(array.Length(), to_js(env, result));
      return array;
    });
  };
  const auto reject = [call](const std::exception_ptr& error) { call->reject(error); };
  const bool needs_batch = loaded->waiting.add(
      std::make_shared<LanguageRequest>(LanguageRequest{std::move(jobs), call->control(), resolve, reject}));
  if (needs_batch) start_batch(loaded);
  return promise;
}

Napi::Value score_targets(OpenModel& loaded, const Napi::CallbackInfo& info) {
  const auto job = object_of(info[0], "job");
  const auto prompt = ids_of(job, "promptTokenIds");
  const auto targets = id_lists_of(job, "targets");
  return Call::start(info.Env(), WorkerThread::language(), info[1], [=](const Control& control) {
    if (loaded == nullptr) fail_closed();
    const auto model = loaded->model.acquire(control);
    const auto scores = carillon::score(*model, prompt, targets, loaded->max_context_tokens, control);
    return [scores](Napi::Env env) { return to_js(env, scores); };
  });
}

Napi::Value close_model(OpenModel& loaded, const Napi::CallbackInfo& info) {
  return Call::start(info.Env(), WorkerThread::language(), info.Env().Undefined(),
                     [held = std::move(loaded)](const Control&) mutable {
                       held.reset();
                       release_cached_memory();
                       return [](Napi::Env env) { return env.Undefined(); };
                     });
}

/// Creates a NativeLanguageModel of src/engine/addon.ts.
Napi::Value language_model_to_js(Napi::Env env, OpenModel loaded) {
  auto object = Napi::Object::New(env);
  object.Set("info", info_of(env, *loaded));
  add_methods<OpenModel>(object, std::move(loaded),
                         {{"generate", generate_tokens}, {"score", score_targets}, {"close", close_model}});
  return object;
}

}  // namespace

Napi::Value load_language_model(const Napi::CallbackInfo& info) {
  const auto options = object_of(info[0], "options");
  const auto source = source_of(options, "model");
  const auto device = text_of(options, "device");
  const auto dtype = text_of(options, "dtype");
  const auto quantization = text_of(options, "quantization");
  const bool offload = flag_of(options, "offload");
  const auto max_context_tokens = integer_of(options, "maxContextTokens");
  const auto max_songs =
      has(options, "maxSongs") ? integer_of(options, "maxSongs") : std::numeric_limits<int64_t>::max();
  constexpr int64_t kMostContextTokens = 1 << 20;
  require(max_context_tokens >= 1 && max_context_tokens <= kMostContextTokens,
          "maxContextTokens must be 1 to " + std::to_string(kMostContextTokens));
  require(max_songs >= 1, "maxSongs must be at least 1");
  const auto vocabulary = vocabulary_of(object_of(options, "vocabulary"));
  return Call::start(info.Env(), WorkerThread::language(), info[1], [=](const Control& control) {
    const auto placement = choose_placement(device, dtype, quantization);
    use_own_stream(placement.device, true);  // is_urgent: each token waits for the previous one
    ResidentModel<CausalLm> model([=](const Control& call) { return CausalLm::load(source, placement, call); },
                                  !offload, control);
    const auto loaded =
        std::make_shared<LoadedModel>(std::move(model), vocabulary, max_context_tokens, max_songs, control);
    return [loaded](Napi::Env env) { return language_model_to_js(env, loaded); };
  });
}

}  // namespace carillon::addon
