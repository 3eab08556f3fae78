#include "core/tasks/task_inputs.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "core/runtime/error.h"

namespace carillon {

namespace {

using Layers = std::function<at::Tensor(const at::Tensor& sequences, const std::vector<int64_t>& lengths)>;

/// Runs `layers` on the sequence [1, any L, ..] of each song and returns the results. On a GPU, one call processes all
/// sequences. On the CPU, each sequence has its own call, so that the result for a song does not depend on other songs.
std::vector<at::Tensor> run_on_songs(const std::vector<at::Tensor>& songs, const at::Device& device,
                                     const Layers& layers) {
  std::vector<int64_t> lengths;
  std::vector<at::Tensor> results;
  for (const at::Tensor& song : songs) {
    lengths.push_back(song.size(1));
    if (device.is_cpu()) results.push_back(layers(song, {song.size(1)}));
  }
  return device.is_cpu() ? results : layers(at::cat(songs, 1), lengths).split_with_sizes(lengths, 1);
}

at::Tensor row_of(const std::vector<int32_t>& ids) { return at::tensor(ids, at::kLong).unsqueeze(0); }

}  // namespace

std::vector<PromptStates> encode_prompts(const TextEncoder& text_encoder, const std::vector<RenderSong>& songs,
                                         bool with_plain_text, const Control& control) {
  std::vector<at::Tensor> texts;
  std::vector<PromptStates> states;
  for (const RenderSong& song : songs) {
    texts.push_back(row_of(song.prompt.text));
    if (with_plain_text) texts.push_back(row_of(song.prompt.plain_text));
    states.push_back({{}, {}, text_encoder.embed(row_of(song.prompt.lyrics))});
  }
  texts = run_on_songs(texts, states[0].lyrics.device(), [&](const auto& ids, const auto& lengths) {
    return text_encoder.encode(ids, lengths, control);
  });
  auto text = texts.begin();
  for (PromptStates& song : states) {
    song.text = *text++;
    if (with_plain_text) song.plain_text = *text++;
  }
  return states;
}

EncodedPrompts encode_conditions(const AceStep& model, const std::vector<PromptStates>& songs,
                                 const at::Tensor& timbre_latents, const Control& control) {
  const at::Device device = model.placement.device;
  const at::Tensor clip = timbre_latents.defined()
                              ? timbre_latents.to(device, model.placement.dtype)
                              : model.silence_of(std::min(model.config.timbre_fix_frame, model.max_frames()));
  const at::Tensor timbre = model.encoder.encode_timbre(clip).unsqueeze(0);  // [1, 1, E]
  std::vector<at::Tensor> lyrics, texts;
  for (const PromptStates& song : songs) {
    lyrics.push_back(song.lyrics);
    texts.push_back(song.text);
    if (song.plain_text.defined()) texts.push_back(song.plain_text);
  }
  lyrics = run_on_songs(lyrics, device, [&](const auto& embeddings, const auto& lengths) {
    return model.encoder.encode_lyrics(embeddings, {.lengths = lengths}, control);
  });
  texts = run_on_songs(texts, device, [&](const auto& text, const auto&) { return model.encoder.project_text(text); });
  EncodedPrompts encoded;
  auto text = texts.begin();
  for (size_t i = 0; i < songs.size(); ++i) {
    encoded.task.push_back(at::cat({lyrics[i], timbre, *text++}, 1));
    if (songs[i].plain_text.defined()) encoded.plain.push_back(at::cat({lyrics[i], timbre, *text++}, 1));
  }
  return encoded;
}

int64_t rendered_frames(const AceStep& model, int64_t frames) {
  constexpr int64_t kFewestFrames = 128;
  return std::max(frames, std::min(kFewestFrames, model.max_frames()));
}

at::Tensor make_context(const AceStep& model, const ContextInputs& inputs) {
  at::Tensor source = inputs.source;
  if (inputs.reads_codes) {
    const at::Tensor codes = model.tokenizer.tokenize(source, model.silence).quantized;
    source = model.detokenizer.hints(codes).narrow(1, 0, source.size(1));
  }
  return at::cat({source, inputs.chunk_mask}, 2).to(model.placement.dtype);
}

namespace {

/// Latents of the job's audio codes, cut or padded with silence: [B, frames, C].
at::Tensor code_hints(const AceStep& model, const RenderJob& job, int64_t frames) {
  std::vector<at::Tensor> rows;
  for (const RenderSong& song : job.songs) rows.push_back(at::tensor(song.codes, at::kLong));
  const at::Tensor hints = model.detokenizer.hints(model.tokenizer.embed(at::stack(rows).to(model.placement.device)));
  const int64_t coded = std::min(frames, hints.size(1));
  return at::cat({hints.narrow(1, 0, coded), model.silence_of(frames - coded).expand({hints.size(0), -1, -1})}, 1);
}

}  // namespace

ContextInputs text2music_context(const AceStep& model, const RenderJob& job, int64_t frames) {
  const int64_t total = rendered_frames(model, frames);
  const at::Tensor source = has_codes(job) ? code_hints(model, job, total) : model.silence_of(total);
  return {.source = source, .chunk_mask = at::ones_like(source)};
}

namespace {

RepaintBlend blend_of_mode(const EditParameters& edit) {
  constexpr double kLongestFadeFrames = 25, kLongestFadeSeconds = 0.05;
  double strength = edit.repaint_strength;
  switch (edit.repaint_mode) {
    case RepaintMode::kConservative:
      strength = 0.0;
      break;
    case RepaintMode::kBalanced:
      break;
    case RepaintMode::kAggressive:
      return {.injection_ratio = 0,
              .crossfade_frames = 0,
              .crossfade_seconds = kLongestFadeSeconds,
              .keeps_waveform = false};
  }
  const double hold = 1.0 - strength;
  return {.injection_ratio = hold,
          .crossfade_frames = std::lrint(kLongestFadeFrames * hold),  // rounds half to even
          .crossfade_seconds = kLongestFadeSeconds * hold,
          .keeps_waveform = true};
}

}  // namespace

RepaintBlend repaint_blend(const EditParameters& edit) {
  RepaintBlend blend = blend_of_mode(edit);
  blend.crossfade_frames = edit.latent_crossfade_frames.value_or(blend.crossfade_frames);
  blend.crossfade_seconds = edit.waveform_crossfade_seconds.value_or(blend.crossfade_seconds);
  return blend;
}

std::optional<Repaint> make_repaint(const at::Tensor& latents, const at::Tensor& inside, const RepaintBlend& blend) {
  if (inside.all().item<bool>()) return std::nullopt;
  return Repaint{.mask = inside,
                 .clean = latents,
                 .injection_ratio = blend.injection_ratio,
                 .crossfade_frames = blend.crossfade_frames};
}

namespace {

/// Latents of the source, padded with silence to the rendered length: [1, T, C] float32 on the model's device.
at::Tensor latents_to_render(const AceStep& model, const SourceRecording& source) {
  const int64_t total = rendered_frames(model, source.frames);
  if (!source.latents.defined()) return model.silence_of(total).to(at::kFloat);
  const auto silence = [&](int64_t frames) { return model.silence_of(frames).to(at::kFloat); };
  const int64_t rest = total - source.begin - source.latents.size(1);
  return at::cat({silence(source.begin), source.latents.to(model.placement.device), silence(rest)}, 1);
}

/// Returns a mask [1, frames] over the rendered frames that is true inside the window. If the window reaches the end of
/// the song, the mask is also true for the padding after the song.
at::Tensor inside_window(const SourceRecording& source, int64_t frames, int64_t samples_per_frame, at::Device device) {
  const auto [begin, end] = frames_inside(source.window, source.frames, samples_per_frame);
  at::Tensor mask = at::zeros({1, frames}, at::device(device).dtype(at::kBool));
  mask.slice(1, begin, end == source.frames ? frames : end).fill_(true);
  return mask;
}

/// Makes the inputs of repaint and lego. Repaint reads silence inside the window. Lego reads the whole source.
TaskInputs windowed_inputs(const AceStep& model, const RenderJob& job, const SourceRecording& source,
                           const at::Tensor& latents, int64_t samples_per_frame) {
  const at::Tensor inside = inside_window(source, latents.size(1), samples_per_frame, latents.device());
  const at::Tensor window = inside.to(latents.scalar_type());
  const at::Tensor chunk_mask = job.edit.chunk_mask == ChunkMask::kExplicit ? window : at::ones_like(window);
  at::Tensor input = latents;
  if (job.task == Task::kRepaint) {
    input = at::where(inside.unsqueeze(-1), model.silence_of(latents.size(1)).to(at::kFloat), latents);
  }
  return {.context = {.source = input, .chunk_mask = chunk_mask.unsqueeze(-1).expand_as(input)},
          .repaint = make_repaint(latents, inside, repaint_blend(job.edit))};
}

}  // namespace

TaskInputs task_inputs(const AceStep& model, const RenderJob& job, const std::optional<SourceRecording>& source,
                       const RendererInfo& info) {
  if (!source) return {.context = text2music_context(model, job, song_frames(job, info))};
  const at::Tensor latents = latents_to_render(model, *source);
  switch (job.task) {
    case Task::kText2Music:
      break;  // text2music has no source
    case Task::kRepaint:
    case Task::kLego:
      return windowed_inputs(model, job, *source, latents, info.samples_per_frame);
    case Task::kCover:
    case Task::kExtract:
    case Task::kComplete:
      return {.context = {.source = latents,
                          .chunk_mask = at::ones_like(latents),
                          .reads_codes = job.task == Task::kCover && !job.edit.cover_skips_codes}};
  }
  fail(ErrorCode::kInternal, "text2music was given a source");
}

PaddedStates stack_padded(const std::vector<at::Tensor>& songs) {
  if (songs.empty()) return {};
  int64_t longest = 0;
  for (const at::Tensor& song : songs) longest = std::max(longest, song.size(1));
  std::vector<at::Tensor> states, masks;
  bool is_padded = false;
  for (const at::Tensor& song : songs) {
    const int64_t padding = longest - song.size(1);
    is_padded = is_padded || padding > 0;
    states.push_back(at::constant_pad_nd(song, {0, 0, 0, padding}));
    masks.push_back(at::arange(longest, song.options().dtype(at::kLong)).unsqueeze(0) < song.size(1));
  }
  return {at::cat(states), is_padded ? at::cat(masks) : at::Tensor()};
}

DenoiseJob denoise_job(const AceStep& model, const TaskInputs& inputs, const Denoise& denoise, const Guidance& guidance,
                       const PaddedStates& states, const PaddedStates& plain_states, int64_t batch) {
  const auto for_all = [&](const at::Tensor& x) { return x.expand({batch, -1, -1}); };
  const auto mask_for_all = [&](const at::Tensor& mask) {
    return mask.defined() ? mask.expand({batch, -1}) : mask;
  };
  std::optional<Conditions> plain;
  if (plain_states.states.defined()) {
    const ContextInputs silent{
        .source = model.silence_of(inputs.context.source.size(1)).expand_as(inputs.context.source),
        .chunk_mask = inputs.context.chunk_mask};
    plain = {for_all(plain_states.states), for_all(make_context(model, silent)), mask_for_all(plain_states.mask)};
  }
  return {.conditions = {for_all(states.states), for_all(make_context(model, inputs.context)),
                         mask_for_all(states.mask)},
          .null_condition = model.null_condition,
          .denoise = denoise,
          .guidance = guidance,
          .conditions_after_cover = plain,
          .cover_source = for_all(inputs.context.source),
          .repaint = inputs.repaint};
}

}  // namespace carillon
