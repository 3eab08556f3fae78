/**
 * Rules that say when a parameter of POST /release_task has an effect. If the client sets a parameter that has no
 * effect, a line in `warnings` names it and the reason.
 */
import type { LanguageModelInfo } from "../../engine/types.js";
import { reasonToIgnore } from "../../ignored.js";
import { namesOf } from "../../parameters.js";
import { ANALYSES, type Analysis, type GenerationRequest } from "./generation-request.js";
import { type GenerationParameters, generationSchema, type TaskType } from "./schema.js";
import { makesStems } from "./stems.js";

/** Facts about a task that are known at submission. */
export interface SubmissionFacts extends GenerationParameters {
  analysis: Analysis | null;
  /** Whether the task uses audio codes sent by the client. */
  hasCodes: boolean;
  /** Whether the client sent latents instead of audio for the source, or for the timbre reference. */
  latents: { isSource: boolean; isReference: boolean };
}

/** Output of the language model. A song sheet has caption, lyrics and metadata. */
export type LmOutput = "song sheet" | "metadata" | "audio codes";

/** Facts about a song that are known after it was made. */
export interface SongFacts {
  request: GenerationRequest;
  /** Name of the DiT model. */
  model: string;
  isTurbo: boolean;
  isLegoSft: boolean;
  /** Language model of the song; null if none was used. */
  languageModel: LanguageModelInfo | null;
  written: ReadonlySet<LmOutput>;
  /** Whether the language of the lyrics was known before the language model planned the song. */
  isLanguageNamed: boolean;
  hasWords: boolean;
  hasLyricTimes: boolean;
  /** Why the song has no scores; null if it was scored or scores were not requested. */
  noScoresReason: string | null;
  /** Whether the window of repaint or lego spans the whole source. */
  isWholeWindow: boolean;
}

type Key = keyof GenerationParameters;
/** Returns why a parameter has no effect; null if it has or may have an effect. */
type Rule<Facts> = (facts: Facts) => string | null;

interface Use {
  /** Analyses that use the parameter; default: none. For songs, the rules below decide whether it has an effect. */
  analyses?: readonly Analysis[];
  atSubmission?: readonly Rule<SubmissionFacts>[];
  afterSong?: readonly Rule<SongFacts>[];
}

/** Tasks that use the language model. */
export const LANGUAGE_MODEL_TASKS: readonly TaskType[] = ["text2music", "lego", "complete"];

const needsTask =
  (...tasks: TaskType[]): Rule<SubmissionFacts> =>
  ({ taskType }) =>
    tasks.includes(taskType) ? null : `not used by task_type ${taskType}, only by ${tasks.join(", ")}`;

const needsPlanning: Rule<SubmissionFacts> = ({ taskType }) =>
  LANGUAGE_MODEL_TASKS.includes(taskType) ? null : `task_type ${taskType} does not use the language model`;

const overriddenByTimesteps: Rule<SubmissionFacts> = ({ timesteps }) =>
  timesteps === null ? null : "replaced by timesteps";

const overriddenByInstruction: Rule<SubmissionFacts> = ({ instruction }) =>
  instruction === null ? null : "replaced by instruction";

const overriddenByWindows: Rule<SubmissionFacts> = ({ repaintingWindows }) =>
  repaintingWindows.length === 0 ? null : "replaced by repainting_windows";

const needsBaseModel: Rule<SongFacts> = ({ isTurbo, model }) =>
  isTurbo ? `${model} is a turbo model` : null;

const needsGuidance: Rule<SongFacts> = ({ request }) =>
  request.guidance.guidanceScale > 1
    ? null
    : `guidance_scale ${request.guidance.guidanceScale} means no guidance`;

const needsPartialWindow: Rule<SongFacts> = ({ isWholeWindow }) =>
  isWholeWindow ? "the window spans the whole source" : null;

const needsLanguageModel: Rule<SongFacts> = ({ languageModel }) =>
  languageModel === null ? "the song was made without a language model" : null;

const needsWriting =
  (...kinds: LmOutput[]): Rule<SongFacts> =>
  ({ written }) =>
    kinds.some((kind) => written.has(kind)) ? null : `the language model wrote no ${kinds.join(" and no ")}`;

const needsSampling: Rule<SongFacts> = ({ request }) =>
  request.sampling.temperature > 0 ? null : "lm_temperature 0 always picks the most likely token";

const needsAnyWriting = needsWriting("song sheet", "metadata", "audio codes");

const lmOutput: Use = {
  atSubmission: [needsPlanning],
  afterSong: [needsLanguageModel, needsAnyWriting],
};
const lmSampling: Use = { ...lmOutput, afterSong: [needsLanguageModel, needsAnyWriting, needsSampling] };
const lmText: Use = {
  analyses: ["full", "metadata"],
  atSubmission: [needsPlanning],
  afterSong: [needsLanguageModel, needsWriting("song sheet", "metadata")],
};
const lmCodes: Use = {
  atSubmission: [needsPlanning],
  afterSong: [needsLanguageModel, needsWriting("audio codes")],
};
const guidance: Use = { afterSong: [needsBaseModel, needsGuidance] };
const needsProjection: Rule<SubmissionFacts> = ({ guidanceVariant, useAdg }) => {
  const variant = guidanceVariant ?? (useAdg ? "adg" : "apg_classic");
  return variant === "apg_classic" ? null : `not used by guidance_variant ${variant}`;
};
const projection: Use = { ...guidance, atSubmission: [needsProjection] };
const needsCorrection: Rule<SubmissionFacts> = ({ dcwEnabled }) =>
  dcwEnabled ? null : "dcw_enabled is false";
const correction: Use = { atSubmission: [needsCorrection] };
const repaintWindow: Use = { atSubmission: [needsTask("repaint", "lego")], afterSong: [needsPartialWindow] };

const needsSource: readonly Rule<SubmissionFacts>[] = [
  ({ taskType }) => (taskType === "text2music" ? "task_type text2music uses no source" : null),
  ({ hasCodes }) => (hasCodes ? "replaced by audio_code_string" : null),
];

const USES: Readonly<Record<Key, Use>> = {
  prompt: {
    analyses: ["metadata"],
    afterSong: [
      ({ request: { words }, languageModel }) =>
        languageModel !== null && words.sampleQuery !== "" ? "replaced by sample_query" : null,
      ({ request: { words }, languageModel }) =>
        words.sampleMode && languageModel?.writesText ? "sample_mode writes the prompt" : null,
    ],
  },
  lyrics: {
    analyses: ["metadata"],
    atSubmission: [({ instrumental }) => (instrumental ? "instrumental is true" : null)],
  },
  instrumental: { analyses: ["metadata"] },
  thinking: {
    atSubmission: [
      ({ taskType, hasCodes }) => (hasCodes ? null : needsPlanning({ taskType } as SubmissionFacts)),
    ],
  },
  vocalLanguage: {},
  timesLyrics: {
    afterSong: [
      ({ hasWords }) => (hasWords ? null : "the song has no lyrics"),
      ({ hasLyricTimes, model }) => (hasLyricTimes ? null : `${model} cannot time these lyrics`),
    ],
  },
  getScores: { afterSong: [({ noScoresReason }) => noScoresReason] },
  callbackUrl: { analyses: ["codes", "full", "metadata"] },
  audioFormat: {},
  mp3Bitrate: {
    atSubmission: [({ audioFormat }) => (audioFormat === "mp3" ? null : `audio_format is ${audioFormat}`)],
  },
  sampleRate: {},
  normalizationDb: {},
  fadeInSeconds: {},
  fadeOutSeconds: {},
  sampleMode: { atSubmission: [needsPlanning], afterSong: [needsLanguageModel] },
  sampleQuery: { atSubmission: [needsPlanning], afterSong: [needsLanguageModel] },
  useFormat: {
    atSubmission: [
      needsPlanning,
      ({ prompt, lyrics, sampleMode, sampleQuery }) =>
        sampleMode || `${prompt}${lyrics}${sampleQuery}`.trim() !== ""
          ? null
          : "there is no prompt and no lyrics",
    ],
    afterSong: [needsLanguageModel, needsWriting("song sheet", "metadata")],
  },
  model: { analyses: ["codes", "full"] },
  loras: {},
  bpm: {},
  keyScale: {},
  timeSignature: {},
  durationSeconds: {
    atSubmission: [
      ({ taskType, hasCodes }) =>
        taskType === "text2music" || hasCodes ? null : "the source sets the length",
      ({ hasCodes }) => (hasCodes ? "audio_code_string sets the length" : null),
    ],
  },
  audioCodes: {
    atSubmission: [
      ({ taskType }) =>
        taskType === "text2music" || taskType === "cover" ? null : `task_type ${taskType} uses a source`,
      ({ thinking, useAudioCodes }) =>
        thinking || useAudioCodes ? null : "needs thinking or use_audio_codes",
    ],
  },
  useAudioCodes: { atSubmission: [({ hasCodes }) => (hasCodes ? null : "no audio_code_string is used")] },
  useRandomSeed: {
    analyses: ["full", "metadata"],
    atSubmission: [({ seed }) => (seed.length > 0 ? null : "no seed was sent")],
  },
  seed: {
    analyses: ["full", "metadata"],
    atSubmission: [({ useRandomSeed }) => (useRandomSeed ? "use_random_seed is true" : null)],
  },
  batchSize: {
    atSubmission: [
      ({ taskType, trackName, trackClasses, batchSize }) =>
        makesStems(taskType) && trackName === "" && trackClasses.length > 0 && batchSize > 1
          ? "track_classes makes one song for each stem"
          : null,
    ],
  },

  inferenceSteps: { atSubmission: [overriddenByTimesteps] },
  shift: { atSubmission: [overriddenByTimesteps], afterSong: [needsBaseModel] },
  timesteps: {},
  inferMethod: {},
  dcwEnabled: {},
  dcwMode: correction,
  dcwScaler: {
    atSubmission: [
      needsCorrection,
      ({ dcwMode }) => (dcwMode === "high" ? "dcw_mode high corrects the high band" : null),
    ],
  },
  dcwHighScaler: {
    atSubmission: [
      needsCorrection,
      ({ dcwMode }) => (dcwMode === "low" || dcwMode === "pix" ? `not used by dcw_mode ${dcwMode}` : null),
    ],
  },
  velocityNormThreshold: {},
  velocityEmaFactor: {
    atSubmission: [
      ({ timesteps, inferenceSteps }) =>
        (timesteps?.length ?? inferenceSteps + 1) > 2 ? null : "the song is made in one step",
    ],
  },
  latentRescale: {},
  latentShift: {},
  audioCoverStrength: {
    atSubmission: [
      ({ taskType, hasCodes, thinking }) =>
        taskType === "text2music" && !hasCodes && !thinking
          ? "there is no source and no audio codes to follow"
          : null,
    ],
  },
  coverNoiseStrength: {},
  guidanceScale: { afterSong: [needsBaseModel] },
  useAdg: {
    ...guidance,
    atSubmission: [
      ({ guidanceVariant }) => (guidanceVariant === null ? null : "replaced by guidance_variant"),
    ],
  },
  guidanceVariant: guidance,
  eta: projection,
  momentum: projection,
  normThreshold: projection,
  cfgIntervalStart: guidance,
  cfgIntervalEnd: guidance,
  repaintMode: repaintWindow,
  repaintStrength: {
    atSubmission: [
      ...(repaintWindow.atSubmission ?? []),
      ({ repaintMode }) => (repaintMode === "balanced" ? null : "used only by repaint_mode balanced"),
    ],
    afterSong: [needsPartialWindow],
  },
  repaintLatentCrossfadeFrames: repaintWindow,
  repaintWavCrossfadeSeconds: {
    ...repaintWindow,
    atSubmission: [
      ...(repaintWindow.atSubmission ?? []),
      ({ latents }) => (latents.isSource ? "src_latents have no samples to fade" : null),
    ],
  },
  chunkMaskMode: repaintWindow,
  coverNofsq: {
    atSubmission: [
      ({ taskType, hasCodes }) =>
        hasCodes ? "audio codes replace the source" : needsTask("cover")({ taskType } as SubmissionFacts),
    ],
  },

  languageModel: {
    analyses: ["full", "metadata"],
    atSubmission: [needsPlanning],
    afterSong: [needsLanguageModel],
  },
  lmBackend: { atSubmission: [() => reasonToIgnore("lm_backend")] },
  temperature: { ...lmOutput, analyses: ["metadata"] },
  cfgScale: lmCodes,
  negativePrompt: {
    atSubmission: [
      needsPlanning,
      ({ cfgScale }) => (cfgScale > 1 ? null : `lm_cfg_scale ${cfgScale} means no guidance`),
    ],
    afterSong: [needsLanguageModel, needsWriting("audio codes")],
  },
  topK: { ...lmSampling, analyses: ["metadata"] },
  topP: { ...lmSampling, analyses: ["metadata"] },
  minP: { ...lmSampling, analyses: ["metadata"] },
  lmSeeds: { ...lmSampling, analyses: ["full", "metadata"] },
  repetitionPenalty: { ...lmOutput, analyses: ["metadata"] },
  useCotCaption: {
    atSubmission: [
      needsPlanning,
      ({ taskType }) => (taskType === "text2music" ? null : "the caption describes a single stem"),
    ],
    afterSong: [
      needsLanguageModel,
      ({ languageModel }) =>
        languageModel?.writesText ? null : `the language model ${languageModel?.name} does not write text`,
      needsWriting("metadata"),
    ],
  },
  useCotLanguage: {
    analyses: ["metadata"],
    atSubmission: [needsPlanning],
    afterSong: [
      needsLanguageModel,
      ({ languageModel }) =>
        languageModel?.writesText ? null : `the language model ${languageModel?.name} does not write text`,
      ({ isLanguageNamed }) => (isLanguageNamed ? "the language is already known" : null),
      needsWriting("metadata"),
    ],
  },
  constrained: lmText,
  debug: lmText,
  sharesBatch: {
    atSubmission: [needsPlanning, ({ batchSize }) => (batchSize > 1 ? null : "the task makes one song")],
    afterSong: [needsLanguageModel],
  },

  taskType: {},
  instruction: {},
  referenceAudioPath: {
    atSubmission: [({ latents }) => (latents.isReference ? "replaced by ref_latents" : null)],
  },
  srcAudioPath: {
    analyses: ["codes", "full"],
    atSubmission: [...needsSource, ({ latents }) => (latents.isSource ? "replaced by src_latents" : null)],
  },
  srcLatentsPath: { atSubmission: needsSource },
  refLatentsPath: {},
  returnLatents: {},
  trackName: { atSubmission: [needsTask("extract", "lego"), overriddenByInstruction] },
  trackClasses: {
    atSubmission: [
      needsTask("extract", "lego", "complete"),
      overriddenByInstruction,
      ({ taskType, trackName }) =>
        makesStems(taskType) && trackName !== "" ? "replaced by track_name" : null,
    ],
  },
  globalCaption: {
    afterSong: [
      ({ isLegoSft, model }) => (isLegoSft ? null : `${model} was not trained on stems`),
      ({ request: { words } }) =>
        words.instruction?.toLowerCase().includes("a segment") ? "instruction asks for a segment" : null,
    ],
  },
  repaintingStartSeconds: { atSubmission: [needsTask("repaint", "lego"), overriddenByWindows] },
  repaintingEndSeconds: { atSubmission: [needsTask("repaint", "lego"), overriddenByWindows] },
  repaintingWindows: { atSubmission: [needsTask("repaint", "lego")] },
  analysisOnly: { analyses: ["metadata"] },
  fullAnalysisOnly: { analyses: ["full"] },
  extractCodesOnly: { analyses: ["codes"] },
};

/** Name of a parameter in warnings. `src_audio` stands for the uploaded file and for `src_audio_path`. */
export function nameInWarnings(key: Key): string {
  return namesOf(generationSchema.shape[key])[0].replace(/_(audio|latents)_path$/, "_$1");
}

/** Parameters without effect, each with the reason. */
export type UnusedParameters = ReadonlyMap<Key, string>;

/** Returns the `chosen` parameters that have no effect with any model. */
export function unusedAtSubmission(chosen: readonly Key[], facts: SubmissionFacts): UnusedParameters {
  const { analysis } = facts;
  if (analysis === null) return unusedBy(chosen, (key) => USES[key].atSubmission, facts);
  const reason = `not used by ${ANALYSES[analysis]}, which makes no music`;
  return new Map(chosen.flatMap((key) => (USES[key].analyses?.includes(analysis) ? [] : [[key, reason]])));
}

/** Returns the `chosen` parameters whose effect is known only after rendering. */
export function undecidedAtSubmission(chosen: readonly Key[], unused: UnusedParameters): Key[] {
  return chosen.filter((key) => USES[key].afterSong !== undefined && !unused.has(key));
}

/** Returns the `chosen` parameters that had no effect in any song. */
export function unusedInSongs(chosen: readonly Key[], songs: readonly SongFacts[]): UnusedParameters {
  const [first = new Map(), ...others] = songs.map((song) =>
    unusedBy(chosen, (key) => USES[key].afterSong, song),
  );
  return new Map([...first].filter(([key]) => others.every((unused) => unused.has(key))));
}

function unusedBy<Facts>(
  chosen: readonly Key[],
  rulesOf: (key: Key) => readonly Rule<Facts>[] | undefined,
  facts: Facts,
): UnusedParameters {
  const unused = new Map<Key, string>();
  for (const key of chosen) {
    const reason = rulesOf(key)
      ?.map((rule) => rule(facts))
      .find((found) => found !== null);
    if (reason != null) unused.set(key, reason);
  }
  return unused;
}

/** Warnings about parameters without effect, one line per reason. */
export function warningsOf(unused: UnusedParameters): string[] {
  const byReason = new Map<string, Key[]>();
  for (const [key, reason] of unused) byReason.set(reason, [...(byReason.get(reason) ?? []), key]);
  return [...byReason].map(([reason, keys]) => {
    const were = keys.length === 1 ? "was" : "were";
    return `${keys.map(nameInWarnings).join(", ")} ${were} ignored: ${reason}`;
  });
}
