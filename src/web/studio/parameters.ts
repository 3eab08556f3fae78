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
