/** Kinds of tasks: task types, and analyses, which make no music. */

export const TASK_TYPES = ["text2music", "cover", "repaint", "lego", "extract", "complete"] as const;
export type TaskType = (typeof TASK_TYPES)[number];

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
 * Analysis that a task runs instead of making songs. "codes" returns the audio codes of the source. "full"
 * describes the source. "metadata" suggests metadata for the caption and lyrics.
 */
export type Analysis = "codes" | "full" | "metadata";

/** Parameters that select the analyses. */
export const ANALYSES: Readonly<Record<Analysis, string>> = {
  codes: "extract_codes_only",
  full: "full_analysis_only",
  metadata: "analysis_only",
};

/** Returns the analysis that the flags select. If several flags are set, the cheapest analysis wins. */
export function analysisOf(flags: {
  extractCodesOnly: boolean;
  fullAnalysisOnly: boolean;
  analysisOnly: boolean;
}): Analysis | null {
  if (flags.extractCodesOnly) return "codes";
  if (flags.fullAnalysisOnly) return "full";
  return flags.analysisOnly ? "metadata" : null;
}
