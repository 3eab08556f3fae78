/** Names and values of request parameters in the user's language. */
import type { Parameters } from "./api.js";
import { language, t } from "./language.js";
import { formatTime } from "./words.js";

const LABELS: Readonly<Record<string, () => string>> = {
  prompt: () => t("Sound"),
  lyrics: () => t("Lyrics"),
  instrumental: () => t("Instrumental"),
  vocal_language: () => t("Language"),
  bpm: () => t("Tempo"),
  key_scale: () => t("Key"),
  time_signature: () => t("Time signature"),
  audio_duration: () => t("Length"),
  batch_size: () => t("Versions"),
  model: () => t("Model"),
  loras: () => t("Styles"),
  seed: () => t("Seed"),
  use_random_seed: () => t("Random seed"),
  inference_steps: () => t("Steps"),
  guidance_scale: () => t("Guidance"),
  task_type: () => t("What to do"),
  src_audio: () => t("Recording to work on"),
  src_audio_path: () => t("Recording to work on"),
  reference_audio: () => t("Reference recording"),
  reference_audio_path: () => t("Reference recording"),
  audio_cover_strength: () => t("Closeness to the original"),
  cover_noise_strength: () => t("Closeness at the start"),
  track_name: () => t("Stem"),
  track_classes: () => t("Stems to add"),
  thinking: () => t("Plan with the language model"),
  get_lrc: () => t("Lyric timestamps"),
  lm_model_path: () => t("Language model"),
  audio_format: () => t("File"),
  mp3_bitrate: () => t("Bit rate of MP3"),
  sample_rate: () => t("Sample rate"),
  normalization_db: () => t("Highest peak"),
  loudness: () => t("Loudness"),
  fade_in: () => t("Fade-in"),
  fade_out: () => t("Fade-out"),
  enable_normalization: () => t("Level the song"),
  audio_code_string: () => t("Audio codes"),
  repaint_mode: () => t("Blending at the edges"),
  instruction: () => t("Instruction"),
  global_caption: () => t("The whole song"),
  dcw_enabled: () => t("DCW correction"),
  dcw_mode: () => t("DCW bands"),
  dcw_scaler: () => t("DCW strength, low band"),
  dcw_high_scaler: () => t("DCW strength, high band"),
  use_adg: () => t("Adaptive dual guidance (ADG)"),
  guidance_variant: () => t("Kind of guidance"),
  eta: () => t("APG share (eta)"),
  momentum: () => t("APG momentum"),
  norm_threshold: () => t("APG limit"),
  cfg_interval_start: () => t("Guidance from time"),
  cfg_interval_end: () => t("Guidance up to time"),
  repaint_strength: () => t("Strength of the repaint"),
  repaint_latent_crossfade_frames: () => t("Crossfade in latent frames"),
  repaint_wav_crossfade_sec: () => t("Crossfade in seconds"),
  chunk_mask_mode: () => t("Mask of the new part"),
  cover_nofsq: () => t("Cover without audio codes"),
  src_latents_path: () => t("Latents of the recording"),
  ref_latents_path: () => t("Latents of the reference"),
  full_analysis_only: () => t("Only describe the recording"),
  extract_codes_only: () => t("Only extract audio codes"),
  peak_clip: () => t("Peaks that may clip"),
  get_scores: () => t("Score the songs"),
  return_latents: () => t("Keep the latents"),
  shift: () => t("Shift of the steps"),
  timesteps: () => t("Times of the steps"),
  free_timesteps: () => t("Use any times"),
  infer_method: () => t("Solver"),
  velocity_norm_threshold: () => t("Limit of outliers"),
  velocity_ema_factor: () => t("Smoothing of the path"),
  latent_rescale: () => t("Factor of the latents"),
  latent_shift: () => t("Offset of the latents"),
  use_format: () => t("Rewrite sound and lyrics"),
  lm_cfg_scale: () => t("Guidance of the language model"),
  lm_negative_prompt: () => t("What the plan avoids"),
  use_cot_caption: () => t("Reword the sound"),
  use_cot_language: () => t("Detect the language"),
  lm_seed: () => t("Seed of the language model"),
  lm_temperature: () => t("Temperature of the language model"),
  lm_top_k: () => t("Top-k of the language model"),
  lm_top_p: () => t("Top-p of the language model"),
  lm_min_p: () => t("Min-p of the language model"),
  lm_repetition_penalty: () => t("Penalty for repetitions"),
  constrained_decoding: () => t("Only valid facts"),
  constrained_decoding_debug: () => t("Log the language model"),
  allow_lm_batch: () => t("Plan versions together"),
  songs: () => t("Songs"),
  verbatim: () => t("Exactly as entered"),
  callback_url: () => t("Address for the result"),
  temporary: () => t("Delete after an hour"),
  analysis_only: () => t("Only find facts"),
  plan_only: () => t("Only plan"),
  encode_only: () => t("Only encode the recording"),
  decode_only: () => t("Only decode latents"),
};

/** Name of a parameter; without one, its API name in words. */
export function parameterName(name: string): string {
  return LABELS[name]?.() ?? apiNameInWords(name);
}

function apiNameInWords(name: string): string {
  const words = name
    .replaceAll("_", " ")
    .replace(/\blm\b/g, "LM")
    .replace(/\bcfg\b/g, "CFG")
    .replace(/\badg\b/g, "ADG")
    .replace(/\bdcw\b/g, "DCW");
  return words[0]?.toUpperCase() + words.slice(1);
}

/** Parameters that the settings of a song show. The others are in the raw data. */
const SHOWN =
  "audio_duration bpm key_scale time_signature vocal_language model loras seed inference_steps thinking lm_model_path audio_format mp3_bitrate loudness fade_in fade_out".split(
    " ",
  );

/** Settings of a song in words; those that were left to the service are absent. */
export function settingsInWords(parameters: Parameters): [name: string, value: string][] {
  return SHOWN.flatMap((name) => {
    const value = valueInWords(name, parameters[name]);
    return value === "" ? [] : [[parameterName(name), value] as [string, string]];
  });
}

/** Value of a parameter in words; "" if it is left to the service. */
export function valueInWords(name: string, value: unknown): string {
  if (value === undefined || value === null || value === false || value === 0) return "";
  if (value === true) return t("yes");
  if (Array.isArray(value)) return value.map((each) => String(each?.name ?? each?.path ?? each)).join(", ");
  const text = String(value);
  if (text === "") return "";
  if (name === "audio_duration") return formatTime(Number(value));
  if (name === "bpm") return `${text} BPM`;
  if (name === "time_signature") return `${text}/${text === "6" ? 8 : 4}`;
  if (name === "vocal_language") return languageName(text);
  if (name === "loudness") return `${text} LUFS`;
  return name.startsWith("fade_") ? `${text} s` : text;
}

/** Name of a language in the user's language. */
function languageName(code: string): string {
  return new Intl.DisplayNames([language()], { type: "language" }).of(code) ?? code;
}
