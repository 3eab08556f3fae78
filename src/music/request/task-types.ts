/** Kinds of tasks: task types, and analyses, which render nothing. */
import type { ModelEntry } from "../../engine/types.js";

export const TASK_TYPES = ["text2music", "cover", "repaint", "lego", "extract", "complete"] as const;
export type TaskType = (typeof TASK_TYPES)[number];

/**
 * Task types that a model was trained for, as listed in its configuration. Without such a list, a turbo model
 * supports text2music, cover and repaint, and any other model supports all types. Tasks of unsupported types
 * run with a warning.
 */
export function supportedTaskTypes({
  supportedTasks,
  isTurbo,
}: Pick<ModelEntry, "supportedTasks" | "isTurbo">) {
  if (supportedTasks !== null) return TASK_TYPES.filter((task) => supportedTasks.includes(task));
  return TASK_TYPES.filter((task) => !isTurbo || ["text2music", "cover", "repaint"].includes(task));
}

/** Tasks that use the language model. */
export const LANGUAGE_MODEL_TASKS: readonly TaskType[] = ["text2music", "lego", "complete"];

/** Whether the word is a task type of acestep.cpp that stands for a cover with `cover_nofsq`. */
export function isCoverWithoutCodes(word: unknown): boolean {
  return typeof word === "string" && /^cover[-_]?nofsq$/i.test(word.trim());
}

/** Whether each song of the task is a single stem. */
export function makesStems(taskType: TaskType): boolean {
  return taskType === "extract" || taskType === "lego";
}

/**
 * What a task does instead of rendering songs. "latents" encodes the source, "audio" decodes its latents. "codes"
 * returns the audio codes of the source. "full" describes the source. "metadata" suggests metadata for the caption and
 * lyrics. "plan" writes what the language model would plan for the songs.
 */
export type Analysis = "latents" | "audio" | "codes" | "full" | "metadata" | "plan";

/** Parameters that select the analyses. */
export const ANALYSES: Readonly<Record<Analysis, string>> = {
  latents: "encode_only",
  audio: "decode_only",
  codes: "extract_codes_only",
  full: "full_analysis_only",
  metadata: "analysis_only",
  plan: "plan_only",
};

/** The flag of each analysis; the first that is set wins. */
const FLAGS = {
  latents: "encodeOnly",
  audio: "decodeOnly",
  codes: "extractCodesOnly",
  full: "fullAnalysisOnly",
  metadata: "analysisOnly",
  plan: "planOnly",
} as const satisfies Record<Analysis, string>;

/** Returns the analysis that the flags select. If several flags are set, the cheapest analysis wins. */
export function analysisOf(flags: Record<(typeof FLAGS)[Analysis], boolean>): Analysis | null {
  return (Object.keys(FLAGS) as Analysis[]).find((analysis) => flags[FLAGS[analysis]]) ?? null;
}

/** Whether the task works on the source without rendering. */
export function readsSourceOnly(analysis: Analysis | null): boolean {
  return analysis !== null && analysis !== "metadata" && analysis !== "plan";
}
