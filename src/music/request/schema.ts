/**
 * Parameters of POST /release_task. Names, aliases, defaults and ranges are defined only here, in
 * planning-parameters.ts, output-parameters.ts and ../../engine/render-parameters.ts.
 */
import { z } from "zod";
import { STEMS } from "../../engine/conditioning.js";
import { BPM_RANGE, DURATION_SECONDS_RANGE } from "../../engine/metadata.js";
import { inferenceSteps, needsTask, renderParameters } from "../../engine/render-parameters.js";
import {
  BPM_UNIT,
  type Fields,
  finiteNumber,
  flag,
  integer,
  isObject,
  namesOf,
  offByDefault,
  oneOf,
  optionalText,
  parameter,
  refuse,
  refusePart,
  text,
  trimmed,
  within,
  withinOrAuto,
  withoutClock,
  withoutUnit,
} from "../../parameters.js";
import { unparsedCodes } from "./audio-codes.js";
import { tryParseClientJson } from "./json.js";
import { loraList } from "./loras.js";
import { audioFormat, outputParameters } from "./output-parameters.js";
import { planningParameters, samplingParameters } from "./planning-parameters.js";
import { isCoverWithoutCodes, makesStems, TASK_TYPES, type TaskType } from "./task-types.js";
import {
  lmSampling,
  needsLanguageModel,
  needsPlanning,
  needsSource,
  needsWriting,
  overriddenByInstruction,
  overriddenByWindows,
  uses,
} from "./uses.js";
import {
  customInstruction,
  keyScale,
  lyrics,
  optionalLanguage,
  repaintEnd,
  repaintWindows,
  requestedSeeds,
  textList,
  timeSignature,
} from "./value-types.js";

/** Vocal language if neither the client, the language model nor the lyrics determine one. */
export const DEFAULT_LANGUAGE = "en";

const audioDuration = (min: number) =>
  parameter(
    ["audio_duration", "duration", "audioDuration", "target_duration", "targetDuration"],
    z.preprocess(withoutClock, withinOrAuto(finiteNumber, min, DURATION_SECONDS_RANGE.max)).default(null),
    "Length in seconds. Unset or 0: chosen by the language model, else estimated from lyrics and tempo, else 30.",
    uses({
      atSubmission: [
        ({ taskType, hasCodes }) =>
          taskType === "text2music" || hasCodes ? null : "the source sets the length",
        ({ hasCodes }) => (hasCodes ? "audio_code_string sets the length" : null),
      ],
    }),
  );

/** Parameters that a request holds as they are sent, by group. Keys are the internal names, with units. */
export const parameterGroups = {
  words: z.object({
    prompt: parameter(
      ["prompt", "caption"],
      text.default(""),
      "Description of the song: genre, instruments, mood, voice.",
      uses({
        analyses: ["metadata"],
        afterSong: [
          ({ request: { words }, languageModel }) =>
            languageModel !== null && words.sampleQuery !== "" ? "replaced by sample_query" : null,
          ({ request: { words }, languageModel }) =>
            words.sampleMode && languageModel?.writesText ? "sample_mode writes the prompt" : null,
        ],
      }),
    ),
    lyrics: parameter(
      "lyrics",
      lyrics.default(""),
      "Lyrics, with section tags such as [Verse] and [Chorus] on separate lines. Blank or [Instrumental]: no vocals.",
      uses({
        analyses: ["metadata"],
        atSubmission: [({ instrumental }) => (instrumental ? "instrumental is true" : null)],
      }),
    ),
    vocalLanguage: parameter(
      ["vocal_language", "vocalLanguage", "language"],
      optionalLanguage,
      "Language of the lyrics: a code such as en, ja or de, a locale such as en-US, or a name such as English. Unset: detected by the language model or from the lyrics.",
    ),
    sampleMode: parameter(
      "sample_mode",
      offByDefault,
      "Let the language model write caption, lyrics and metadata.",
      uses({ atSubmission: [needsPlanning], afterSong: [needsLanguageModel] }),
    ),
    sampleQuery: parameter(
      ["sample_query", "sampleQuery", "description", "desc"],
      trimmed.default(""),
      "Short description from which the language model writes caption, lyrics and metadata.",
      uses({ atSubmission: [needsPlanning], afterSong: [needsLanguageModel] }),
    ),
    /** `format` is an alias of this flag; the format of the audio file is `audio_format`. */
    useFormat: parameter(
      ["use_format", "useFormat", "format"],
      offByDefault,
      "Let the language model rewrite caption and lyrics in the format that the models were trained on.",
      uses({
        atSubmission: [
          needsPlanning,
          ({ prompt, lyrics, sampleMode, sampleQuery }) =>
            sampleMode || `${prompt}${lyrics}${sampleQuery}`.trim() !== ""
              ? null
              : "there is no prompt and no lyrics",
        ],
        afterSong: [needsLanguageModel, needsWriting("song sheet", "metadata")],
      }),
    ),
    instruction: parameter(
      "instruction",
      customInstruction.nullable().default(null),
      "Instruction for the model; unset: the instruction of the task type.",
    ),
    globalCaption: parameter(
      "global_caption",
      text.default(""),
      "Description of the whole song, if the prompt describes a single stem.",
      uses({
        afterSong: [
          ({ isLegoSft, model }) => (isLegoSft ? null : `${model} was not trained on stems`),
          ({ request: { words } }) =>
            words.instruction?.toLowerCase().includes("a segment") ? "instruction asks for a segment" : null,
        ],
      }),
    ),
  }),
  facts: z.object({
    bpm: parameter(
      "bpm",
      z
        .preprocess(
          (value) => withoutUnit(value, BPM_UNIT),
          withinOrAuto(integer, BPM_RANGE.min, BPM_RANGE.max),
        )
        .default(null),
      "Beats per minute. Unset or 0: chosen by the language model, or by the model from the caption.",
    ),
    keyScale: parameter(
      ["key_scale", "keyscale", "keyScale", "key"],
      keyScale.default(""),
      'Key, such as "F# minor".',
    ),
    /** "2", "3", "4" or "6" for 2/4, 3/4, 4/4 or 6/8; "" if unknown. */
    timeSignature: parameter(
      ["time_signature", "timesignature", "timeSignature"],
      timeSignature.default(""),
      "Beats in a bar: 2, 3, 4, or 6 for 6/8.",
    ),
    durationSeconds: audioDuration(DURATION_SECONDS_RANGE.min),
  }),
  /** Windows of repaint and lego. */
  repaint: z.object({
    repaintingStartSeconds: parameter(
      "repainting_start",
      finiteNumber.default(0),
      "Start of the repainted window in seconds; negative: before the start of the source.",
      uses({ atSubmission: [needsTask("repaint", "lego"), overriddenByWindows] }),
    ),
    repaintingEndSeconds: parameter(
      "repainting_end",
      repaintEnd,
      "End of the repainted window in seconds; may exceed the source. Unset or 0: end of the source.",
      uses({ atSubmission: [needsTask("repaint", "lego"), overriddenByWindows] }),
    ),
    repaintingWindows: parameter(
      "repainting_windows",
      repaintWindows.default([]),
      "Several windows, such as [[10, 20], [45.5, 60]], replacing repainting_start and repainting_end. End null or 0: end of the source; 0 after a negative start: its start.",
      uses({ atSubmission: [needsTask("repaint", "lego")] }),
    ),
  }),
  planning: planningParameters,
  sampling: samplingParameters,
  ...renderParameters,
  output: z.object({
    audioFormat,
    ...outputParameters.shape,
    timesLyrics: parameter(
      ["get_lrc", "getLrc", "lrc"],
      offByDefault,
      "Return lyric timestamps in `lrc` of the song, if the model supports them.",
      uses({
        afterSong: [
          ({ hasWords }) => (hasWords ? null : "the song has no lyrics"),
          ({ hasLyricTimes, model }) => (hasLyricTimes ? null : `${model} cannot time these lyrics`),
        ],
      }),
    ),
    getScores: parameter(
      ["get_scores", "getScores"],
      offByDefault,
      "Let the language model score how well each song fits caption, lyrics and metadata; returned in `scores`.",
      uses({ afterSong: [({ noScoresReason }) => noScoresReason] }),
    ),
    normalizes: parameter(
      "enable_normalization",
      flag.default(true),
      "Scale the peak of each song. false: the level of the decoder, which may clip in formats other than wav32.",
      uses({
        analyses: ["audio"],
        atSubmission: [
          ({ peakClip }) => (peakClip === null ? null : "replaced by peak_clip"),
          ({ normalizationDb }) => (normalizationDb === null ? null : "normalization_db sets the level"),
          ({ loudness }) => (loudness === null ? null : "loudness sets the level"),
        ],
      }),
    ),
    returnLatents: parameter(
      ["return_latents", "returnLatents"],
      offByDefault,
      "Store the latents of each song; `latents` of the song is their URL. They save encoding when a later task edits the song.",
      uses({ analyses: ["full"] }),
    ),
  }),
};

/** Parameters that a song of the list `songs` may set for itself. */
export const ownParts = z.object({
  prompt: parameterGroups.words.shape.prompt,
  lyrics: parameterGroups.words.shape.lyrics,
  vocalLanguage: parameterGroups.words.shape.vocalLanguage,
  ...parameterGroups.facts.shape,
});

const MAX_OWN_SONGS = 9;

/** Songs as sent; sent-parameters.ts reads their parameters. */
const unparsedSongs = z
  .unknown()
  .transform((value, context): Fields[] => {
    const list = typeof value === "string" ? tryParseClientJson(value, "songs") : value;
    if (!Array.isArray(list))
      return refuse(context, `must be a list of 1 to ${MAX_OWN_SONGS} objects`, value);
    if (list.length === 0 || list.length > MAX_OWN_SONGS) {
      return refusePart(context, `must hold 1 to ${MAX_OWN_SONGS} songs`, list.length);
    }
    const wrong = list.findIndex((song) => !isObject(song));
    if (wrong < 0) return list;
    return refusePart(context, `[${wrong}] must be an object with the parameters of a song`, list[wrong]);
  })
  .meta({ type: "array", items: { type: "object" }, minItems: 1, maxItems: MAX_OWN_SONGS });

/** All parameters of a task. parse.ts derives other fields of the request from those outside the groups. */
export const generationSchema = z.object({
  ...parameterGroups.words.shape,
  instrumental: parameter(
    ["instrumental", "is_instrumental"],
    offByDefault,
    "Song without vocals; lyrics are ignored.",
    uses({ analyses: ["metadata"] }),
  ),
  ...parameterGroups.output.shape,
  model: parameter(
    ["model", "model_name", "modelName", "dit_model", "ditModel", "synth_model"],
    optionalText,
    "Name of a model from GET /v1/models; unset: the default model.",
    uses({ analyses: ["latents", "audio", "codes", "full"] }),
  ),
  loras: parameter(
    "loras",
    loraList.nullable().default(null),
    "Adapters for this task only: a list of objects with `path` (as in POST /v1/lora/load) or `name` of a loaded adapter, and `scale` (default 1). Empty list: no adapters. Unset: the loaded adapters.",
  ),
  ...parameterGroups.facts.shape,
  /** Audio codes as the client sent them. audio-codes.ts parses them if they are used. */
  audioCodes: parameter(
    ["audio_code_string", "audioCodeString", "audio_codes"],
    unparsedCodes.nullable().default(null),
    "Audio codes of the song, five per second: one text for all songs, or one per song. Used only with thinking or use_audio_codes.",
    uses({
      atSubmission: [
        ({ taskType }) =>
          taskType === "text2music" || taskType === "cover" ? null : `task_type ${taskType} uses a source`,
        ({ thinking, useAudioCodes }) =>
          thinking || useAudioCodes ? null : "needs thinking or use_audio_codes",
      ],
    }),
  ),
  useAudioCodes: parameter(
    "use_audio_codes",
    offByDefault,
    "Render audio_code_string without the language model.",
    uses({ atSubmission: [({ hasCodes }) => (hasCodes ? null : "no audio_code_string is used")] }),
  ),
  useRandomSeed: parameter(
    "use_random_seed",
    flag.default(true),
    "Draw a random seed for every song; false uses `seed`.",
    uses({
      analyses: ["full", "metadata"],
      atSubmission: [({ seed }) => (seed.length > 0 ? null : "no seed was sent")],
    }),
  ),
  seed: parameter(
    "seed",
    requestedSeeds.default([]),
    "Seed per song, from 0 to 2^64 - 1; -1 or unset: random. The same seed and settings make the same song; noise is drawn as torch draws it on CUDA. Send seeds above 2^53 as text if your JSON library rounds them.",
    uses({
      analyses: ["full", "metadata"],
      atSubmission: [({ useRandomSeed }) => (useRandomSeed ? "use_random_seed is true" : null)],
    }),
  ),
  batchSize: parameter(
    ["batch_size", "n"],
    within(integer, 1, 8).default(2),
    "Number of songs, each with its own seed.",
    uses({
      atSubmission: [
        ({ taskType, trackName, trackClasses, batchSize }) =>
          makesStems(taskType) && trackName === "" && trackClasses.length > 0 && batchSize > 1
            ? "track_classes makes one song for each stem"
            : null,
      ],
    }),
  ),
  songs: parameter(
    "songs",
    unparsedSongs.nullable().default(null),
    `Songs of one batch with texts of their own: a list of objects with any of ${Object.values(ownParts.shape)
      .map((type) => namesOf(type)[0])
      .join(", ")}. Replaces batch_size; other parameters apply to all songs.`,
  ),
  ...parameterGroups.denoise.shape,
  ...parameterGroups.guidance.shape,
  ...parameterGroups.edit.shape,
  ...parameterGroups.planning.shape,
  lmSeeds: parameter(
    "lm_seed",
    requestedSeeds.default([]),
    "Seed of the language model per song; -1 or unset: the song's seed. A single value applies to all songs, which then share a plan.",
    uses({ ...lmSampling, analyses: ["full", "metadata"] }),
  ),
  ...parameterGroups.sampling.shape,
  taskType: parameter(
    "task_type",
    z
      .preprocess((word) => (isCoverWithoutCodes(word) ? "cover" : word), oneOf(TASK_TYPES))
      .default("text2music"),
    "Task type. All but text2music need a source. cover-nofsq is a cover with cover_nofsq.",
  ),
  referenceAudioPath: parameter(
    ["reference_audio_path", "ref_audio_path", "referenceAudioPath", "refAudioPath"],
    optionalText,
    "Timbre reference: absolute path on the server, or `file` of an earlier song.",
    uses({
      atSubmission: [({ latents }) => (latents.isReference ? "replaced by ref_latents" : null)],
    }),
  ),
  srcAudioPath: parameter(
    ["src_audio_path", "ctx_audio_path", "sourceAudioPath", "srcAudioPath", "ctxAudioPath"],
    optionalText,
    "Source recording: absolute path on the server, or `file` of an earlier song. It sets the length.",
    uses({
      analyses: ["latents", "codes", "full"],
      atSubmission: [...needsSource, ({ latents }) => (latents.isSource ? "replaced by src_latents" : null)],
    }),
  ),
  srcLatentsPath: parameter(
    ["src_latents_path", "srcLatentsPath"],
    optionalText,
    "Latents of the source, instead of src_audio: `latents` of an earlier song, or a safetensors file on the server with a tensor `latents` [frames, channels].",
    uses({ analyses: ["audio", "codes", "full"], atSubmission: needsSource }),
  ),
  refLatentsPath: parameter(
    ["ref_latents_path", "refLatentsPath"],
    optionalText,
    "Latents of the timbre reference, instead of reference_audio.",
  ),
  trackName: parameter(
    "track_name",
    trimmed.default(""),
    `Stem to extract, or to add to the source (lego): ${STEMS.join(", ")}.`,
    uses({ atSubmission: [needsTask("extract", "lego"), overriddenByInstruction] }),
  ),
  trackClasses: parameter(
    ["track_classes", "trackClasses", "instruments"],
    textList.default([]),
    "Several stems: complete adds them to the source; extract and lego make one song per stem. extract accepts `all`.",
    uses({
      atSubmission: [
        needsTask("extract", "lego", "complete"),
        overriddenByInstruction,
        ({ taskType, trackName }) =>
          makesStems(taskType) && trackName !== "" ? "replaced by track_name" : null,
      ],
    }),
  ),
  callbackUrl: parameter(
    ["callback_url", "callbackUrl"],
    optionalText,
    "http or https URL that receives the task's signed result when it ends. Public addresses and hosts in SVC_CALLBACK_HOSTS only.",
    uses({ analyses: ["latents", "audio", "codes", "full", "metadata"] }),
  ),
  isTemporary: parameter(
    "temporary",
    offByDefault,
    "Delete the songs an hour after they were made, unless PATCH /v1/tasks/{id} keeps them: songs of a radio.",
    uses({ analyses: ["latents", "audio", "codes", "full", "metadata", "plan"] }),
  ),
  ...parameterGroups.repaint.shape,
  analysisOnly: parameter(
    "analysis_only",
    offByDefault,
    "Return metadata for caption and lyrics; makes no music.",
    uses({ analyses: ["metadata"] }),
  ),
  fullAnalysisOnly: parameter(
    "full_analysis_only",
    offByDefault,
    "Return a description of the source; makes no music.",
    uses({ analyses: ["full"] }),
  ),
  extractCodesOnly: parameter(
    "extract_codes_only",
    offByDefault,
    "Return the audio codes of the source; makes no music.",
    uses({ analyses: ["codes"] }),
  ),
  planOnly: parameter(
    "plan_only",
    offByDefault,
    "Return what the language model plans for the songs: caption, lyrics, metadata and, with thinking, audio codes; makes no music.",
    uses({ analyses: ["plan"] }),
  ),
  encodeOnly: parameter(
    "encode_only",
    offByDefault,
    "Return the latents of src_audio, encoded by the model's VAE; makes no music.",
    uses({ analyses: ["latents"] }),
  ),
  decodeOnly: parameter(
    "decode_only",
    offByDefault,
    "Return src_latents as a song, decoded by the model's VAE without rendering.",
    uses({ analyses: ["audio"] }),
  ),
});

/** Maximum number of steps of turbo models, which are distilled to few steps. */
export const MAX_TURBO_STEPS = 20;
const turboInferenceSteps = inferenceSteps(MAX_TURBO_STEPS);
/** Duration without a minimum, for task types whose source sets the length. */
const anyAudioDuration = audioDuration(0);

/** Returns the schema with the ranges that apply to the kind of model and the task type. */
export function generationSchemaFor(isTurbo: boolean, taskType: TaskType) {
  const { inferenceSteps, durationSeconds } = generationSchema.shape;
  return generationSchema.extend({
    inferenceSteps: isTurbo ? turboInferenceSteps : inferenceSteps,
    durationSeconds: taskType === "text2music" ? durationSeconds : anyAudioDuration,
  });
}

/**
 * Names of the field that holds the task ids in POST /query_result. Forms often append brackets to repeated fields.
 */
export const TASK_ID_NAMES = ["task_id_list", "taskIdList", "task_id_list[]", "taskIdList[]"] as const;

export type GenerationParameters = z.output<typeof generationSchema>;
