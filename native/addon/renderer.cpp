#include "addon/renderer.h"

#include <initializer_list>
#include <memory>
#include <string>
#include <utility>

#include "addon/adapter.h"
#include "addon/call.h"
#include "addon/samples.h"
#include "addon/values.h"
#include "core/tasks/renderer.h"
#include "core/training/preparation.h"

namespace carillon::addon {
namespace {

/// The value of `key`, one of a few words; a TypeError that lists them for any other.
template <typename Value>
Value choice_of(const Napi::Object& object, const char* key,
                std::initializer_list<std::pair<const char*, Value>> choices) {
  const auto text = text_of(object, key);
  std::string words;
  for (const auto& [word, value] : choices) {
    if (text == word) return value;
    words += (words.empty() ? "" : ", ") + std::string(word);
  }
  throw Napi::TypeError::New(object.Env(), std::string(key) + " must be one of " + words);
}

/// What the job's task works on and how.
void read_task(const Napi::Object& object, RenderJob& job) {
  job.task = choice_of<Task>(object, "task",
                             {{"text2music", Task::kText2Music},
                              {"cover", Task::kCover},
                              {"repaint", Task::kRepaint},
                              {"lego", Task::kLego},
                              {"extract", Task::kExtract},
                              {"complete", Task::kComplete}});
  if (has(object, "sourceAudio")) job.source_audio = audio_of(object, "sourceAudio");
  if (has(object, "referenceAudio")) job.reference_audio = audio_of(object, "referenceAudio");
  if (has(object, "window")) {
    const auto window = object_of(object, "window");
    job.window = {number_of(window, "startSeconds"), number_of(window, "endSeconds")};
  }
  const auto repaint = object_of(object, "repaint");
  job.repaint_mode = choice_of<RepaintMode>(repaint, "mode",
                                            {{"conservative", RepaintMode::kConservative},
                                             {"balanced", RepaintMode::kBalanced},
                                             {"aggressive", RepaintMode::kAggressive}});
  job.repaint_strength = number_of(repaint, "strength");
  job.chunk_mask =
      choice_of<ChunkMask>(object, "chunkMask", {{"explicit", ChunkMask::kExplicit}, {"auto", ChunkMask::kAuto}});
  job.cover_strength = number_of(object, "coverStrength");
  job.cover_noise_strength = number_of(object, "coverNoiseStrength");
}

RenderJob job_of(const Napi::Object& object) {
  RenderJob job;
  read_task(object, job);
  job.text_token_ids = ids_of(object, "textTokenIds");
  if (has(object, "plainTextTokenIds")) job.plain_text_token_ids = ids_of(object, "plainTextTokenIds");
  job.lyric_token_ids = ids_of(object, "lyricTokenIds");
  job.frames = integer_of(object, "frames");
  if (const auto codes = optional_array(object, "audioCodes")) {
    for (uint32_t i = 0; i < codes->Length(); ++i) job.audio_codes.push_back(ids_of(codes->Get(i), "audioCodes"));
  }
  job.seeds = seeds_of(object, "seeds");
  job.inference_steps = static_cast<int>(integer_of(object, "inferenceSteps"));
  job.shift = number_of(object, "shift");
  if (has(object, "timesteps")) job.timesteps = numbers_of(object, "timesteps");
  job.infer_method =
      choice_of<InferMethod>(object, "inferMethod", {{"ode", InferMethod::kOde}, {"sde", InferMethod::kSde}});
  job.guidance.scale = number_of(object, "guidanceScale");
  job.guidance.by_angle = flag_of(object, "useAdg");
  job.guidance.interval_start = number_of(object, "cfgIntervalStart");
  job.guidance.interval_end = number_of(object, "cfgIntervalEnd");
  return job;
}

Napi::Value to_js(Napi::Env env, const RenderResult& result) {
  auto object = Napi::Object::New(env);
  auto audio = Napi::Array::New(env);
  for (const auto& item : result.audio) audio.Set(audio.Length(), float_array(env, item));
  object.Set("audio", audio);
  object.Set("samplesPerChannel", static_cast<double>(result.samples_per_channel));
  auto timings = Napi::Object::New(env);
  timings.Set("conditions", result.timings.conditions);
  timings.Set("denoise", result.timings.denoise);
  timings.Set("decode", result.timings.decode);
  object.Set("timings", timings);
  return object;
}

Napi::Value info_of(Napi::Env env, const RendererInfo& info) {
  auto object = Napi::Object::New(env);
  object.Set("device", info.placement.device.str());
  object.Set("dtype", dtype_name(info.placement.dtype));
  object.Set("isTurbo", info.is_turbo);
  object.Set("isLegoSft", info.is_lego_sft);
  object.Set("sampleRate", static_cast<double>(info.sample_rate));
  object.Set("samplesPerFrame", static_cast<double>(info.samples_per_frame));
  object.Set("framesPerCode", static_cast<double>(info.frames_per_code));
  object.Set("codebookSize", static_cast<double>(info.codebook_size));
  object.Set("maxFrames", static_cast<double>(info.max_frames));
  object.Set("parameterCount", static_cast<double>(info.parameter_count));
  object.Set("unusedTensors", text_array(env, info.unused_tensors));
  return object;
}

void require_open(const std::shared_ptr<Renderer>& renderer) {
  if (!renderer) fail(ErrorCode::kBadArgument, "this renderer was closed");
}

/// NativeRenderer.
class RendererObject : public Napi::ObjectWrap<RendererObject> {
 public:
  static Napi::Value make(Napi::Env env, std::shared_ptr<Renderer> renderer) {
    const auto constructor = DefineClass(env, "NativeRenderer",
                                         {InstanceMethod<&RendererObject::render>("render"),
                                          InstanceMethod<&RendererObject::prepare_sample>("prepareSample"),
                                          InstanceMethod<&RendererObject::load_adapter>("loadAdapter"),
                                          InstanceMethod<&RendererObject::apply_adapter>("applyAdapter"),
                                          InstanceMethod<&RendererObject::encode_codes>("encodeCodes"),
                                          InstanceMethod<&RendererObject::close>("close")});
    const auto object = constructor.New({});
    object.Set("info", info_of(env, renderer->info()));
    Unwrap(object)->renderer_ = std::move(renderer);
    return object;
  }

  explicit RendererObject(const Napi::CallbackInfo& info) : Napi::ObjectWrap<RendererObject>(info) {}

 private:
  Napi::Value render(const Napi::CallbackInfo& info) {
    const auto job = job_of(info[0].As<Napi::Object>());
    return Call::start(info.Env(), Lane::render(), info[1], [renderer = renderer_, job](const Control& control) {
      require_open(renderer);
      const auto result = renderer->render(job, control);
      return [result](Napi::Env env) { return to_js(env, result); };
    });
  }

  Napi::Value prepare_sample(const Napi::CallbackInfo& info) {
    const auto sample = info[0].As<Napi::Object>();
    PreparationJob job;
    job.text_token_ids = ids_of(sample, "textTokenIds");
    job.lyric_token_ids = ids_of(sample, "lyricTokenIds");
    job.audio = audio_of(sample, "audio");
    const auto metadata = text_of(sample, "metadata");
    const std::string path = info[1].ToString();
    return Call::start(info.Env(), Lane::render(), info[2],
                       [renderer = renderer_, job, metadata, path](const Control& control) mutable {
                         require_open(renderer);
                         job.metadata = notes_of(metadata);
                         write_sample(path, carillon::prepare_sample(*renderer, job, control));
                         return [](Napi::Env env) { return env.Undefined(); };
                       });
  }

  Napi::Value load_adapter(const Napi::CallbackInfo& info) {
    const auto files = info[0].As<Napi::Object>();
    const std::string path = text_of(files, "path");
    const double epsilon = choice_of<double>(files, "doraEpsilon",
                                             {{"float32", kLokrNormEpsilon}, {"bfloat16", kLokrNormEpsilonBfloat16}});
    return Call::start(info.Env(), Lane::render(), info[1], [renderer = renderer_, path, epsilon](const Control&) {
      require_open(renderer);
      const LoadedAdapter loaded{std::make_shared<const Adapter>(renderer->load_adapter(path, epsilon)), renderer};
      return [loaded](Napi::Env env) { return adapter_to_js(env, loaded); };
    });
  }

  Napi::Value apply_adapter(const Napi::CallbackInfo& info) {
    const LoadedAdapter loaded = info[0].IsNull() ? LoadedAdapter() : adapter_of(info[0]);
    const double scale = info[1].ToNumber();
    return Call::start(info.Env(), Lane::render(), info[2], [renderer = renderer_, loaded, scale](const Control&) {
      require_open(renderer);
      if (loaded.adapter && loaded.renderer.lock() != renderer) {
        fail(ErrorCode::kBadArgument, "this adapter was loaded for another renderer");
      }
      renderer->apply_adapter(loaded.adapter, scale);
      return [](Napi::Env env) { return env.Undefined(); };
    });
  }

  Napi::Value encode_codes(const Napi::CallbackInfo& info) {
    const auto audio = audio_of(info[0], "audio");
    return Call::start(info.Env(), Lane::render(), info[1], [renderer = renderer_, audio](const Control& control) {
      require_open(renderer);
      const auto codes = renderer->encode_codes(audio, control);
      return [codes](Napi::Env env) { return id_array(env, codes); };
    });
  }

  Napi::Value close(const Napi::CallbackInfo& info) {
    return Call::start(info.Env(), Lane::render(), info.Env().Undefined(),
                       [renderer = std::move(renderer_)](const Control&) mutable {
                         renderer.reset();
                         return [](Napi::Env env) { return env.Undefined(); };
                       });
  }

  std::shared_ptr<Renderer> renderer_;
};

}  // namespace

Napi::Value load_renderer(const Napi::CallbackInfo& info) {
  const auto options = info[0].As<Napi::Object>();
  const Renderer::Directories directories{text_of(options, "modelDirectory"), text_of(options, "vaeDirectory"),
                                          text_of(options, "textEncoderDirectory")};
  const bool offload = flag_of(options, "offload");
  const Renderer::Residency residency{.model = !offload && !flag_of(options, "offloadModel"),
                                      .text_encoder_and_vae = !offload};
  const auto device = text_of(options, "device");
  const auto dtype = text_of(options, "dtype");
  return Call::start(info.Env(), Lane::render(), info[1], [=](const Control& control) {
    const auto renderer = std::make_shared<Renderer>(directories, choose_placement(device, dtype), residency, control);
    return [renderer](Napi::Env env) { return RendererObject::make(env, renderer); };
  });
}

}  // namespace carillon::addon
