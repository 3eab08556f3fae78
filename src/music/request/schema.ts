/**
 * The parameters of POST /release_task: with those of rendering (../../engine/render-parameters.ts), which it spreads,
 * the only place where a name, an alias, a default or a range stands.
 */
import { z } from "zod";
import { BPM_RANGE, DURATION_SECONDS_RANGE } from "../../engine/metadata.js";
import { inferenceSteps, renderParameters } from "../../engine/render-parameters.js";
import {
  elementsOf,
  finiteNumber,
  flag,
  instead,
  integer,
  isTooLong,
  lyricsText,
  NUMERIC,
  namesOf,
  oneOf,
  outOfRange,
  parameter,
  refuse,
  text,
  textOrNull,
  trimmed,
  within,
  withinOrAuto,
} from "../../parameters.js";
import { parseSeed, type SeedPositions } from "../song/seeds.js";
import type { StatedFacts } from "../song/stated-facts.js";
import { codeItems } from "./audio-codes.js";
import { readClientJson } from "./json.js";

export const TASK_TYPES = ["text2music", "cover", "repaint", "lego", "extract", "complete"] as const;
export const AUDIO_FORMATS = ["flac", "mp3", "opus", "aac", "wav", "wav32"] as const;
export type TaskType = (typeof TASK_TYPES)[number];
export type AudioFormat = (typeof AUDIO_FORMATS)[number];

const MAX_SEEDS = 8;
const MAX_TEXTS = 64;
/** Characters. */
const MAX_LISTED_TEXT = 256;

/** `42`, `"42,123"` or `[42, 123]`: a seed per item; -1, blanks and what is absent are random. */
const seedPositions = z
  .unknown()
  .transform((value, context): SeedPositions => {
    const elements = elementsOf(value)?.slice(0, MAX_SEEDS);
    if (elements?.length === 0) return [];
    if (elements?.some(isSeed) !== true) {
      return refuse(context, "must be an integer or a list of integers", value);
    }
    const seeds = elements.map((element) => parseSeed(element));
    const used = seeds.map((seed) => seed ?? null);
    if (seeds.every((seed, i) => seed === null || seed === Number(elements[i]))) return used;
    const isTooLarge = seeds.some((seed, i) => seed === undefined && isSeed(elements[i] as string | number));
    const report = isTooLarge ? outOfRange : instead;
    return report(
      context,
      "must hold integers from -1 to 9007199254740991",
      value,
      used.map((seed) => seed ?? -1),
    );
  })
  .meta({ type: ["integer", "array", "string"], items: { type: ["integer", "null"], minimum: -1 } });

/** Also a blank, a place that the client leaves open. */
function isSeed(element: string | number): boolean {
  const text = String(element).trim();
  return text === "" || NUMERIC.test(text);
}

/** Texts: one, a list of them, or JSON text of a list; blank ones are dropped. */
const textList = z
  .unknown()
  .transform((value, context): string[] => {
    const list = readJsonList(value) ?? (Array.isArray(value) ? value : [value]);
    const isText = (element: unknown) => typeof element === "string" || typeof element === "number";
    if (!list.every(isText)) return refuse(context, "must be text or a list of texts", value);
    if (list.length > MAX_TEXTS) {
      return refuse(context, `must hold at most ${MAX_TEXTS} texts and holds ${list.length}`, value);
    }
    const texts = list.map(String);
    if (texts.some((text) => isTooLong(text, MAX_LISTED_TEXT, context))) return z.NEVER;
    return texts.map((text) => text.trim()).filter((text) => text !== "");
  })
  .meta({
    type: ["array", "string"],
    items: { type: "string", maxLength: MAX_LISTED_TEXT },
    maxItems: MAX_TEXTS,
  });

function readJsonList(value: unknown): unknown[] | undefined {
  if (typeof value !== "string" || !value.trim().startsWith("[")) return undefined;
  return readClientJson(value, "a list of texts") as unknown[] | undefined;
}

const TIME_SIGNATURES = new Map(
  ["2", "3", "4", "6"].flatMap((beats) => [
    [beats, beats],
    [beats === "6" ? "6/8" : `${beats}/4`, beats],
  ]),
);

/** The language of vocals where neither the client nor the language model names a language. */
export const DEFAULT_LANGUAGE = "en";

const INT32_MAX = 2 ** 31 - 1;

/** `N/A` is how the service's own results once spelled an unknown key. */
const keyScale = trimmed
  .transform((key) => (key.toUpperCase() === "N/A" ? "" : key))
  .meta({ type: "string" });

const timeSignature = trimmed
  .transform((value, context): string => {
    const compact = value.replace(/\s/g, "");
    if (compact.toUpperCase() === "N/A") return "";
    return TIME_SIGNATURES.get(compact) ?? instead(context, "must be one of 2, 3, 4, 6", value, undefined);
  })
  .meta({ type: "string", enum: ["", "2", "3", "4", "6"] });

/** Values of 1 or more turn nucleus sampling off, that is 1; those at or below 0 mean the default. */
const topP = (fallback: number) =>
  finiteNumber
    .transform((value) => (value <= 0 ? fallback : Math.min(value, 1)))
    .meta({ type: "number", minimum: 0, maximum: 1 });

const audioDuration = (min: number) =>
  parameter(
    ["audio_duration", "duration", "audioDuration", "target_duration", "targetDuration"],
    withinOrAuto(finiteNumber, min, DURATION_SECONDS_RANGE.max).default(null),
    "Length in seconds; open or 0: the language model decides, else 30.",
  );

/** What a task is made of. Keys are what the service calls a value; units stand in the names. */
export const generationSchema = z.object({
  prompt: parameter(
    ["prompt", "caption"],
    text.default(""),
    "What the song should sound like: genre, instruments, mood, voice.",
  ),
  lyrics: parameter(
    "lyrics",
    lyricsText.default(""),
    "Words to sing, with section tags such as [Verse] and [Chorus] on lines of their own; none, or [Instrumental], sings nothing.",
  ),
  thinking: parameter(
    "thinking",
    flag.default(false),
    "The language model plans the song as audio codes before it is rendered.",
  ),
  vocalLanguage: parameter(
    ["vocal_language", "vocalLanguage", "language"],
    textOrNull.nullable().default(null),
    "Language of the lyrics, such as en, ja or de; open: found by the language model or in the words.",
  ),
  timesLyrics: parameter(
    ["get_lrc", "getLrc", "lrc"],
    flag.default(false),
    "Tells when each line of the lyrics is sung, in `lrc` of the song, where the model can.",
  ),
  audioFormat: parameter("audio_format", oneOf(AUDIO_FORMATS).default("mp3"), "Format of the audio file."),
  sampleMode: parameter(
    "sample_mode",
    flag.default(false),
    "The language model writes caption, lyrics and metadata.",
  ),
  sampleQuery: parameter(
    ["sample_query", "sampleQuery", "description", "desc"],
    trimmed.default(""),
    "A wish in one sentence, of which the language model makes caption, lyrics and metadata.",
  ),
  /** `format` is this flag, not the audio format. */
  useFormat: parameter(
    ["use_format", "useFormat", "format"],
    flag.default(false),
    "The language model rewrites caption and lyrics in the form that the models know best.",
  ),
  model: parameter(
    ["model", "model_name", "modelName", "dit_model", "ditModel"],
    textOrNull.nullable().default(null),
    "Name of a model of GET /v1/models; open: the default model.",
  ),

  bpm: parameter(
    "bpm",
    withinOrAuto(integer, BPM_RANGE.min, BPM_RANGE.max).default(null),
    "Beats per minute; open or 0: the language model decides, else the model hears it from the caption.",
  ),
  keyScale: parameter(
    ["key_scale", "keyscale", "keyScale", "key"],
    keyScale.default(""),
    'Key, such as "F# minor".',
  ),
  /** "2", "3", "4", "6" for 2/4, 3/4, 4/4, 6/8, or "". */
  timeSignature: parameter(
    ["time_signature", "timesignature", "timeSignature"],
    timeSignature.default(""),
    "Beats in a bar: 2, 3, 4, or 6 for 6/8.",
  ),
  audioDurationSeconds: audioDuration(DURATION_SECONDS_RANGE.min),
  /** As they came. */
  audioCodes: parameter(
    ["audio_code_string", "audioCodeString", "audio_codes"],
    codeItems.nullable().default(null),
    "The song as audio codes, five a second: one text of codes for all songs, or one for each. They act with thinking or use_audio_codes.",
  ),
  useAudioCodes: parameter(
    "use_audio_codes",
    flag.default(false),
    "Makes the song of audio_code_string without the language model.",
  ),

  useRandomSeed: parameter(
    "use_random_seed",
    flag.default(true),
    "Draws a seed for every song; false takes `seed`.",
  ),
  seed: parameter(
    "seed",
    seedPositions.default([]),
    "A seed for each song; -1 or open: a random one. The same seed and settings make the same song.",
  ),
  batchSize: parameter(
    "batch_size",
    within(integer, 1, 8).default(2),
    "Songs that are made, each from its own seed.",
  ),
  ...renderParameters.denoise.shape,
  ...renderParameters.guidance.shape,
  ...renderParameters.edit.shape,

  lmModelPath: parameter(
    "lm_model_path",
    textOrNull.nullable().default(null),
    "Name of the language model; open: the default one.",
  ),
  lmBackend: parameter(
    "lm_backend",
    trimmed.default("vllm"),
    "Accepted for compatibility: there is one built-in backend.",
  ),
  lmTemperature: parameter(
    "lm_temperature",
    within(finiteNumber, 0, 2).default(0.85),
    "How freely the language model writes; 0 takes the likeliest.",
  ),
  lmCfgScale: parameter(
    "lm_cfg_scale",
    finiteNumber.default(2.5),
    "How strongly audio codes follow the words; 1 or less: no guidance.",
  ),
  lmNegativePrompt: parameter(
    "lm_negative_prompt",
    text.default("NO USER INPUT"),
    "What guided audio codes are led away from.",
  ),
  lmTopK: parameter(
    "lm_top_k",
    integer
      .transform((count) => Math.min(Math.max(count, 0), INT32_MAX))
      .meta({ type: "integer", minimum: 0 })
      .default(0),
    "Tokens that the language model chooses among; 0: all.",
  ),
  lmTopP: parameter(
    "lm_top_p",
    topP(0.9).default(0.9),
    "Share of probability that the language model chooses within; 1: all.",
  ),
  lmRepetitionPenalty: parameter(
    "lm_repetition_penalty",
    finiteNumber
      .transform((penalty) => (penalty <= 0 ? 1 : penalty))
      .meta({ type: "number" })
      .default(1),
    "Above 1, the language model repeats itself less.",
  ),
  useCotCaption: parameter(
    ["use_cot_caption", "cot_caption", "cot-caption"],
    flag.nullable().default(null),
    "The language model rewords the caption while it plans; open: where it is able to write.",
  ),
  useCotLanguage: parameter(
    ["use_cot_language", "cot_language", "cot-language"],
    flag.default(true),
    "The language model finds the language of the lyrics where none is named.",
  ),
  constrainedDecoding: parameter(
    ["constrained_decoding", "constrainedDecoding", "constrained"],
    flag.default(true),
    "Holds the language model to well-formed metadata.",
  ),
  constrainedDecodingDebug: parameter(
    "constrained_decoding_debug",
    flag.default(false),
    "The log tells what the language model was held to and what it wrote.",
  ),
  allowLmBatch: parameter(
    ["allow_lm_batch", "allowLmBatch", "parallel_thinking"],
    flag.default(true),
    "Accepted, without effect: the songs of a batch are planned one by one.",
  ),

  taskType: parameter(
    "task_type",
    oneOf(TASK_TYPES).default("text2music"),
    "What to make. All but text2music work on a source.",
  ),
  instruction: parameter(
    "instruction",
    textOrNull.nullable().default(null),
    "What the model is told to do; open: the words of the task type.",
  ),
  referenceAudioPath: parameter(
    ["reference_audio_path", "ref_audio_path", "referenceAudioPath", "refAudioPath"],
    textOrNull.nullable().default(null),
    "A recording whose timbre to take: an absolute path on the server, or the file of an earlier song.",
  ),
  srcAudioPath: parameter(
    ["src_audio_path", "ctx_audio_path", "sourceAudioPath", "srcAudioPath", "ctxAudioPath"],
    textOrNull.nullable().default(null),
    "The recording to work on: an absolute path on the server, or the file of an earlier song. It sets the length.",
  ),
  trackName: parameter(
    "track_name",
    trimmed.default(""),
    "The stem to extract, or to lay over the source (lego).",
  ),
  trackClasses: parameter(
    ["track_classes", "trackClasses", "instruments"],
    textList.default([]),
    "The stems to complete the source with.",
  ),
  globalCaption: parameter(
    "global_caption",
    text.default(""),
    "What the whole song sounds like, where the prompt tells of one stem.",
  ),
  repaintingStartSeconds: parameter(
    "repainting_start",
    finiteNumber.default(0),
    "Where what is made anew begins, in seconds; below 0: ahead of the source.",
  ),
  /** Null: the end of the audio, which 0 and negative values mean as well. */
  repaintingEndSeconds: parameter(
    "repainting_end",
    finiteNumber
      .transform((end) => (end <= 0 ? null : end))
      .meta({ type: ["number", "null"] })
      .default(null),
    "Where it ends, perhaps beyond the source; open or 0: the end of the source.",
  ),
  analysisOnly: parameter(
    "analysis_only",
    flag.default(false),
    "Makes no music: finds metadata for caption and lyrics.",
  ),
  fullAnalysisOnly: parameter(
    "full_analysis_only",
    flag.default(false),
    "Makes no music: describes the source.",
  ),
  extractCodesOnly: parameter(
    "extract_codes_only",
    flag.default(false),
    "Makes no music: tells the audio codes of the source.",
  ),
});

/** Turbo models are distilled to few steps. */
export const MAX_TURBO_STEPS = 20;
const turboInferenceSteps = inferenceSteps(MAX_TURBO_STEPS);
/** Regions of a few seconds are common where a source sets the length. */
const anyAudioDuration = audioDuration(0);

/** The parameters with the ranges of one family of models and one task type. */
export function generationSchemaFor(isTurbo: boolean, taskType: TaskType) {
  const { inferenceSteps, audioDurationSeconds } = generationSchema.shape;
  return generationSchema.extend({
    inferenceSteps: isTurbo ? turboInferenceSteps : inferenceSteps,
    audioDurationSeconds: taskType === "text2music" ? audioDurationSeconds : anyAudioDuration,
  });
}

/** Names of the ids of POST /query_result; forms that repeat a field often put brackets behind its name. */
export const TASK_ID_NAMES = ["task_id_list", "taskIdList", "task_id_list[]", "taskIdList[]"] as const;

/** Names that a form may repeat to spell a list. */
export const LIST_NAMES: ReadonlySet<string> = new Set([
  ...[generationSchema.shape.trackClasses, generationSchema.shape.audioCodes].flatMap((type) =>
    namesOf(type),
  ),
  ...TASK_ID_NAMES,
]);

export type GenerationParameters = z.output<typeof generationSchema>;

/** A recording that a task works on. */
export interface AudioInput {
  /** As the client wrote it; once the task is accepted, the file's real path. */
  path: string;
  /** True: the file was uploaded for this task and goes with it. */
  isUpload: boolean;
}

/** What a task that makes no music finds out: the codes of its source, all about it, or metadata for its words. */
export type Analysis = "codes" | "full" | "metadata";

/** Parameters that are settled while a request is parsed and go no further. */
type Settled =
  | "seed"
  | "useRandomSeed"
  | "audioCodes"
  | "useAudioCodes"
  | "referenceAudioPath"
  | "srcAudioPath"
  | "analysisOnly"
  | "fullAnalysisOnly"
  | "extractCodesOnly";

/** One task as the service works on it; plain data that survives JSON. */
export interface GenerationRequest extends Omit<GenerationParameters, Settled> {
  /** One per item. */
  seeds: number[];
  /** The client's codes, one list per item and all of one length, or null where none are in use. */
  audioCodes: number[][] | null;
  /** What the task works on; null where it needs none. */
  sourceAudio: AudioInput | null;
  /** Whose timbre to take. */
  referenceAudio: AudioInput | null;
  /** Null: the task makes songs. */
  analysis: Analysis | null;
  /** What the words say of the song; it fills empty fields. Absent from tasks of older versions. */
  stated?: StatedFacts;
  /** What was accepted but not taken literally, for people to read. */
  warnings: string[];
}
