/** Rules that say when a parameter of POST /release_task has an effect. Those of rendering parameters are in the engine. */
import type { RenderedSong, SubmittedRendering } from "../../engine/render-parameters.js";
import type { LanguageModelInfo } from "../../engine/types.js";
import type { Rule, Uses } from "../../parameters.js";
import { type Analysis, LANGUAGE_MODEL_TASKS, type TaskType } from "./task-types.js";

/** What the rules know at submission: parameters as they are sent, and facts about the task. */
export interface SubmissionFacts extends SubmittedRendering {
  taskType: TaskType;
  prompt: string;
  lyrics: string;
  instrumental: boolean;
  sampleMode: boolean;
  sampleQuery: string;
  instruction: string | null;
  audioFormat: string;
  peakClip: number | null;
  normalizationDb: number | null;
  loudness: number | null;
  useAudioCodes: boolean;
  useRandomSeed: boolean;
  seed: readonly unknown[];
  batchSize: number;
  trackName: string;
  trackClasses: readonly string[];
  repaintingWindows: readonly unknown[];
  cfgScale: number;
}

/** Output of the language model. A song sheet has caption, lyrics and metadata. */
export type LmOutput = "song sheet" | "metadata" | "audio codes";

/** What the rules know about a song after it was made. */
export interface SongFacts extends RenderedSong {
  request: RenderedSong["request"] & {
    words: { sampleMode: boolean; sampleQuery: string; instruction: string | null };
    sampling: { temperature: number };
  };
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
}

export type SongUses = Uses<Analysis, SubmissionFacts, SongFacts>;

/** Checks the types of rules that are written in place. */
export const uses = (own: SongUses): Uses => own;

export const needsPlanning: Rule<Pick<SubmissionFacts, "taskType">> = ({ taskType }) =>
  LANGUAGE_MODEL_TASKS.includes(taskType) ? null : `task_type ${taskType} does not use the language model`;

export const overriddenByInstruction: Rule<SubmissionFacts> = ({ instruction }) =>
  instruction === null ? null : "replaced by instruction";

export const overriddenByWindows: Rule<SubmissionFacts> = ({ repaintingWindows }) =>
  repaintingWindows.length === 0 ? null : "replaced by repainting_windows";

export const needsLanguageModel: Rule<SongFacts> = ({ languageModel }) =>
  languageModel === null ? "the song was made without a language model" : null;

export const needsWriting =
  (...kinds: LmOutput[]): Rule<SongFacts> =>
  ({ written }) =>
    kinds.some((kind) => written.has(kind)) ? null : `the language model wrote no ${kinds.join(" and no ")}`;

const needsSampling: Rule<SongFacts> = ({ request }) =>
  request.sampling.temperature > 0 ? null : "lm_temperature 0 always picks the most likely token";

const needsAnyWriting = needsWriting("song sheet", "metadata", "audio codes");

/** Uses of parameters of the language model: of all its output, of its draws, of its text, of its audio codes. */
export const lmOutput: SongUses = {
  atSubmission: [needsPlanning],
  afterSong: [needsLanguageModel, needsAnyWriting],
};
export const lmSampling: SongUses = {
  ...lmOutput,
  afterSong: [needsLanguageModel, needsAnyWriting, needsSampling],
};
export const lmText: SongUses = {
  analyses: ["full", "metadata"],
  atSubmission: [needsPlanning],
  afterSong: [needsLanguageModel, needsWriting("song sheet", "metadata")],
};
export const lmCodes: SongUses = {
  atSubmission: [needsPlanning],
  afterSong: [needsLanguageModel, needsWriting("audio codes")],
};
export const needsSource: readonly Rule<SubmissionFacts>[] = [
  ({ taskType }) => (taskType === "text2music" ? "task_type text2music uses no source" : null),
  ({ hasCodes }) => (hasCodes ? "replaced by audio_code_string" : null),
];
