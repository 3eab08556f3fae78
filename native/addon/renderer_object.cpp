#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "addon/call.h"
#include "addon/entry.h"
#include "addon/exports.h"
#include "addon/values.h"
#include "core/runtime/choice.h"
#include "core/runtime/device.h"
#include "core/tasks/renderer.h"
#include "core/training/training_sample.h"

namespace carillon::addon {

namespace {

/// An adapter, and the renderer whose model it was validated against.
struct LoadedAdapter {
  std::shared_ptr<const Adapter> adapter;
  std::weak_ptr<Renderer> renderer;
};

/// Type tag of NativeAdapter objects.
constexpr napi_type_tag kTag = {0x6361'7269'6c6c'6f6e, 0x6164'6170'7465'7200};

class AdapterObject : public Napi::ObjectWrap<AdapterObject> {
 public:
  explicit AdapterObject(const Napi::CallbackInfo& info) : Napi::ObjectWrap<AdapterObject>(info) {}
  LoadedAdapter loaded;
};

Napi::Value info_of(Napi::Env env, const Adapter& adapter) {
  return NewObject(env)
      .set("kind", name_of_choice(adapter.kind))
      .set("moduleCount", adapter.modules.size())
      .set("unmatchedTensors", array_to_js(env, adapter.unmatched_tensors))
      .set("warnings", array_to_js(env, adapter.warnings));
}

/// Creates a NativeAdapter (src/engine/addon.ts).
Napi::Value adapter_to_js(Napi::Env env, LoadedAdapter adapter) {
  const auto object = AdapterObject::DefineClass(env, "NativeAdapter", {}).New({});
  object.TypeTag(&kTag);
  object.Set("info", info_of(env, *adapter.adapter));
  AdapterObject::Unwrap(object)->loaded = std::move(adapter);
  return object;
}

/// Returns the adapter of a NativeAdapter object. Throws a TypeError for any other value.
LoadedAdapter adapter_of(const Napi::Value& value) {
  if (!value.IsObject() || !value.As<Napi::Object>().CheckTypeTag(&kTag)) {
    wrong_type(value.Env(), "adapter", "a NativeAdapter");
  }
  return AdapterObject::Unwrap(value.As<Napi::Object>())->loaded;
}

struct JobAdapter {
  LoadedAdapter loaded;
  double scale;
};

std::vector<JobAdapter> adapters_of(const Napi::Object& job) {
  return array_of(job.Get("adapters"), "adapters", "an array of adapters with scales", [](const Napi::Value& value) {
    const auto each = object_of(value, "an adapter of the job");
    return JobAdapter{adapter_of(each.Get("adapter")), number_of(each, "scale")};
  });
}

/// Throws kBadArgument if an adapter was loaded for another renderer.
std::vector<ActiveAdapter> active_adapters(const std::shared_ptr<Renderer>& renderer,
                                     const std::vector<JobAdapter>& adapters) {
  std::vector<ActiveAdapter> active;
  for (const auto& [loaded, scale] : adapters) {
    require(loaded.renderer.lock() == renderer, "this adapter was loaded for another renderer");
    active.push_back({loaded.adapter, scale});
  }
  return active;
}

// Read the value of a parameter, by the type of its field.

void read(const Napi::Object& group, const char* key, double& field) { field = number_of(group, key); }
void read(const Napi::Object& group, const char* key, int32_t& field) { field = int32_of(group, key); }
void read(const Napi::Object& group, const char* key, int64_t& field) { field = integer_of(group, key); }
void read(const Napi::Object& group, const char* key, bool& field) { field = flag_of(group, key); }
void read(const Napi::Object& group, const char* key, std::vector<double>& field) { field = numbers_of(group, key); }
template <typename Choice>
  requires std::is_enum_v<Choice>
void read(const Napi::Object& group, const char* key, Choice& field) {
  field = choice_of(group, key, kChoices<Choice>);
}
template <typename Value>
void read(const Napi::Object& group, const char* key, std::optional<Value>& field) {
  if (has(group, key)) read(group, key, field.emplace());
}

/// Reads a parameter group of src/engine/render-parameters.ts. Throws if a parameter is missing or unknown.
template <typename Parameters>
Parameters group_of(const Napi::Object& job, const char* name) {
  const auto group = object_of(job, name);
  const auto refuse = [&](const std::string& key, const char* why) {
    throw bad_argument(group.Env(), std::string(name) + "." + key + " " + why);
  };
  Parameters parameters;
  std::set<std::string> known;
  parameters.each_parameter([&](const char* key, auto& field) {
    if (!group.Has(key)) refuse(key, "is missing");
    read(group, key, field);
    known.insert(key);
  });
  const auto keys = group.GetPropertyNames();
  for (uint32_t i = 0; i < keys.Length(); ++i) {
    const std::string key = keys.Get(i).ToString();
    if (!known.contains(key)) refuse(key, "is not a known parameter");
  }
  return parameters;
}

std::optional<LyricSpan> timed_lyrics_of(const Napi::Object& prompt) {
  if (!has(prompt, "timedLyrics")) return std::nullopt;
  const auto span = object_of(prompt, "timedLyrics");
  return LyricSpan{integer_of(span, "first"), integer_of(span, "count")};
}

PromptIds prompt_of(const Napi::Object& song) {
  const auto prompt = object_of(song, "prompt");
  return {.text = ids_of(prompt, "text"),
          .lyrics = ids_of(prompt, "lyrics"),
          .plain_text = has(prompt, "plainText") ? ids_of(prompt, "plainText") : std::vector<int32_t>(),
          .timed_lyrics = timed_lyrics_of(prompt)};
}

std::vector<RenderSong> songs_of(const Napi::Object& job) {
  return array_of(job.Get("songs"), "songs", "an array of songs", [](const Napi::Value& value) {
    const auto song = object_of(value, "a song");
    return RenderSong{.prompt = prompt_of(song),
                      .codes = has(song, "codes") ? ids_of(song, "codes") : std::vector<int32_t>(),
                      .seed = seed_of(song, "seed")};
  });
}

GivenRecording recording_of(const Napi::Object& object, const char* audio, const char* latents) {
  return {.audio = has(object, audio) ? audio_of(object.Get(audio), audio) : at::Tensor(),
          .latents = has(object, latents) ? latents_of(object.Get(latents), latents) : at::Tensor()};
}

Source given_source(const Napi::Object& job) {
  if (!has(job, "source")) return {};
  const auto object = object_of(job, "source");
  Source source{recording_of(object, "audio", "latents")};
  if (source.latents.defined() && has(object_of(object, "latents"), "gain")) {
    source.gain = number_of(object_of(object, "latents"), "gain");
  }
  if (has(object, "window")) {
    const auto window = object_of(object, "window");
    source.window = Window{number_of(window, "startSeconds"), number_of(window, "endSeconds")};
  }
  return source;
}

RenderJob render_job(const Napi::Object& object) {
  return {.task = choice_of(object, "task", kChoices<Task>),
          .songs = songs_of(object),
          .samples = integer_of(object, "samples"),
          .source = given_source(object),
          .reference = recording_of(object, "referenceAudio", "referenceLatents"),
          .denoise = group_of<Denoise>(object, "denoise"),
          .guidance = group_of<Guidance>(object, "guidance"),
          .edit = group_of<EditParameters>(object, "edit")};
}

Napi::Object song_to_js(Napi::Env env, const RenderedSong& song) {
  return NewObject(env)
      .set("audio", array_to_js(env, song.audio))
      .set("latents", array_to_js(env, song.latents))
      .set("gain", song.gain)
      .set("lyricSeconds", array_to_js(env, song.lyric_seconds));
}

Napi::Value to_js(Napi::Env env, const RenderResult& result) {
  auto songs = Napi::Array::New(env);
  for (const RenderedSong& song : result.songs) songs.Set(songs.Length(), song_to_js(env, song));
  const auto& [conditions, denoise, decode] = result.timings;
  const Napi::Value timings =
      NewObject(env).set("conditions", conditions).set("denoise", denoise).set("decode", decode);
  return NewObject(env)
      .set("songs", songs)
      .set("samplesPerChannel", result.samples_per_channel)
      .set("timings", timings);
}

/// Creates a DecodedAudio object (src/engine/addon.ts).
Napi::Value audio_part_to_js(Napi::Env env, int64_t item, int64_t begin, const at::Tensor& audio) {
  return NewObject(env).set("item", item).set("begin", begin).set("audio", array_to_js(env, audio));
}

Napi::Value info_of(Napi::Env env, const RendererInfo& info) {
  return NewObject(env)
      .set("device", info.placement.device.str())
      .set("dtype", dtype_name(info.placement.dtype))
      .set("isTurbo", info.is_turbo)
      .set("isLegoSft", info.is_lego_sft)
      .set("sampleRate", info.sample_rate)
      .set("samplesPerFrame", info.samples_per_frame)
      .set("framesPerCode", info.frames_per_code)
      .set("codebookSize", info.codebook_size)
      .set("maxFrames", info.max_frames)
      .set("silentFrame", array_to_js(env, info.silent_frame))
      .set("unusedTensors", array_to_js(env, info.unused_tensors));
}

/// State of a NativeRenderer.
struct OpenRenderer {
  std::shared_ptr<Renderer> renderer;  // null after close()
  WorkerThread& thread;
};

void require_open(const std::shared_ptr<Renderer>& renderer) {
  require(renderer != nullptr, "this renderer is closed");
}

Napi::Value render_songs(OpenRenderer& open, const Napi::CallbackInfo& info) {
  const auto object = object_of(info[0], "job");
  auto work = [renderer = open.renderer, job = render_job(object), adapters = adapters_of(object)](
                  const Control& control, const Call::SendEvent& send) mutable -> Call::MakeValue {
    require_open(renderer);
    job.adapters = active_adapters(renderer, adapters);
    std::vector<int64_t> sent_samples(job.songs.size());
    const Vae::Listener listener = [&](int64_t item, const at::Tensor& audio) {
      int64_t& begin = sent_samples[static_cast<size_t>(item)];
      send([=, from = begin](Napi::Env env) { return audio_part_to_js(env, item, from, audio); });
      begin += audio.size(0);
    };
    const auto result = renderer->render(job, control, send ? listener : nullptr);
    return [result](Napi::Env env) { return to_js(env, result); };
  };
  return Call::start(info.Env(), open.thread, info[1], Call::WorkWithEvents(std::move(work)));
}

Napi::Value prepare_sample(OpenRenderer& open, const Napi::CallbackInfo& info) {
  const auto sample = object_of(info[0], "sample");
  PreparationJob job;
  job.prompts = {.text = ids_of(sample, "textTokenIds"), .lyrics = ids_of(sample, "lyricTokenIds")};
  job.audio = audio_of(sample.Get("audio"), "audio");
  const auto metadata = text_of(sample, "metadata");
  const auto path = text_of(info[1], "path");
  return Call::start(info.Env(), open.thread, info[2],
                     [renderer = open.renderer, job, metadata, path](const Control& control) mutable {
                       require_open(renderer);
                       job.metadata = sample_metadata(Json::parse(metadata, "metadata"));
                       write_sample(path, carillon::prepare_sample(*renderer, job, control));
                       return [](Napi::Env env) { return env.Undefined(); };
                     });
}

Napi::Value load_adapter(OpenRenderer& open, const Napi::CallbackInfo& info) {
  const auto files = object_of(info[0], "files");
  const std::string path = text_of(files, "path");
  const double epsilon = choice_of<double>(files, "doraEpsilon",
                                           {{"float32", kLokrNormEpsilon}, {"bfloat16", kLokrNormEpsilonBfloat16}});
  return Call::start(info.Env(), open.thread, info[1], [renderer = open.renderer, path, epsilon](const Control&) {
    require_open(renderer);
    const LoadedAdapter loaded{std::make_shared<const Adapter>(renderer->load_adapter(path, epsilon)), renderer};
    return [loaded](Napi::Env env) { return adapter_to_js(env, loaded); };
  });
}

/// Runs a method of Renderer that converts audio or latents to codes, latents or audio.
template <typename Convert>
Napi::Value convert(OpenRenderer& open, const Napi::CallbackInfo& info, const at::Tensor& input, Convert method) {
  return Call::start(info.Env(), open.thread, info[1],
                     [renderer = open.renderer, input, method](const Control& control) {
                       require_open(renderer);
                       const auto output = (renderer.get()->*method)(input, control);
                       return [output](Napi::Env env) { return array_to_js(env, output); };
                     });
}

Napi::Value encode_codes(OpenRenderer& open, const Napi::CallbackInfo& info) {
  return convert(open, info, audio_of(info[0], "audio"), &Renderer::encode_codes);
}

Napi::Value codes_of_latents(OpenRenderer& open, const Napi::CallbackInfo& info) {
  return convert(open, info, latents_of(info[0], "latents"), &Renderer::codes_of_latents);
}

Napi::Value encode_latents(OpenRenderer& open, const Napi::CallbackInfo& info) {
  return convert(open, info, audio_of(info[0], "audio"), &Renderer::encode_recording);
}

Napi::Value decode_latents(OpenRenderer& open, const Napi::CallbackInfo& info) {
  return convert(open, info, latents_of(info[0], "latents"), &Renderer::decode_latents);
}

Napi::Value close_renderer(OpenRenderer& open, const Napi::CallbackInfo& info) {
  return Call::start(info.Env(), open.thread, info.Env().Undefined(),
                     [renderer = std::move(open.renderer)](const Control&) mutable {
                       renderer.reset();
                       release_cached_memory();
                       return [](Napi::Env env) { return env.Undefined(); };
                     });
}

/// Creates a NativeRenderer of src/engine/addon.ts.
Napi::Value renderer_to_js(Napi::Env env, std::shared_ptr<Renderer> renderer, WorkerThread& thread) {
  auto object = Napi::Object::New(env);
  object.Set("info", info_of(env, renderer->info()));
  add_methods<OpenRenderer>(object, {std::move(renderer), thread},
                            {{"render", render_songs},
                             {"prepareSample", prepare_sample},
                             {"loadAdapter", load_adapter},
                             {"encodeCodes", encode_codes},
                             {"codesOfLatents", codes_of_latents},
                             {"encodeLatents", encode_latents},
                             {"decodeLatents", decode_latents},
                             {"close", close_renderer}});
  return object;
}

}  // namespace

Napi::Value load_renderer(const Napi::CallbackInfo& info) {
  const auto options = object_of(info[0], "options");
  const Renderer::Directories directories{source_of(options, "model"), source_of(options, "vae"),
                                          source_of(options, "textEncoder")};
  const bool offload = flag_of(options, "offload");
  const Renderer::Residency residency{.model = !offload && !flag_of(options, "offloadModel"),
                                      .text_encoder_and_vae = !offload};
  const auto device = text_of(options, "device");
  const auto dtype = text_of(options, "dtype");
  const auto quantization = text_of(options, "quantization");
  WorkerThread& thread = WorkerThread::render(device);
  return Call::start(info.Env(), thread, info[1], [=, &thread](const Control& control) {
    const Placement placement = choose_placement(device, dtype, quantization);
    use_own_stream(placement.device, false);
    const auto renderer = std::make_shared<Renderer>(directories, placement, residency, control);
    return [renderer, &thread](Napi::Env env) { return renderer_to_js(env, renderer, thread); };
  });
}

}  // namespace carillon::addon
