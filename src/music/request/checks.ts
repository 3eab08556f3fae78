/** Checks of parameters that belong together. */
import { RequestError } from "../errors.js";
import { checkSampleRate } from "./output-parameters.js";
import type { GenerationParameters } from "./schema.js";
import type { Analysis } from "./task-types.js";

/** @throws RequestError for an empty interval, or a sample rate that the format does not support */
export function checkTogether(
  parameters: GenerationParameters & { analysis: Analysis | null },
  warnings: string[],
): void {
  const { taskType, repaintingStartSeconds: start, repaintingEndSeconds: end } = parameters;
  const hasWindow =
    (taskType === "repaint" || taskType === "lego") && parameters.repaintingWindows.length === 0;
  // The length of the source is not known yet.
  if (hasWindow && end !== null && start >= end) {
    throw new RequestError(`repainting_start must be below repainting_end, got ${start} and ${end}`);
  }
  const { cfgIntervalStart: from, cfgIntervalEnd: to } = parameters;
  if (from > to) {
    throw new RequestError(`cfg_interval_start must not be above cfg_interval_end, got ${from} and ${to}`);
  }
  const { analysis, thinking, useRandomSeed, seed, lmSeeds, batchSize } = parameters;
  if (analysis !== null) return;
  if (thinking && (taskType === "lego" || taskType === "complete")) {
    warnings.push(`thinking writes no audio codes: task_type ${taskType} uses a source`);
  }
  const lists = { seed: useRandomSeed ? [] : seed, lm_seed: lmSeeds };
  for (const [name, { length }] of Object.entries(lists)) {
    if (length <= batchSize) continue;
    warnings.push(`${name} holds ${length} seeds for batch_size ${batchSize}: extra seeds were ignored`);
  }
  for (const [name, level] of Object.entries({
    normalization_db: parameters.normalizationDb,
    loudness: parameters.loudness,
  })) {
    if (level === null || taskType !== "repaint") continue;
    warnings.push(`${name} changes the level of the whole song, including parts that repaint keeps`);
  }
  checkSampleRate(parameters.audioFormat, parameters);
}
