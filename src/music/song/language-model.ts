/** When a task uses the language model, and which one. */
import type { RuntimeInfo } from "../../engine/addon.js";
import type { ModelCatalog, SheetWriter } from "../../engine/types.js";
import { findModelByName } from "../models/models.js";
import type { GenerationRequest } from "../request/generation-request.js";
import { LANGUAGE_MODEL_TASKS } from "../request/task-types.js";

/** GPU memory that the language model and the renderer need together. */
const MIN_GPU_BYTES = 6 * 2 ** 30;

/**
 * Resolves SVC_INIT_LLM. If on, the language model is loaded at start, and plans even songs that do not require it.
 * "auto" means on if the language model runs on a GPU with enough memory.
 */
export function usesLmByDefault(
  setting: "auto" | "on" | "off",
  languageModelDevice: string,
  runtime: RuntimeInfo,
): boolean {
  if (setting !== "auto") return setting === "on";
  return plansOnGpu(languageModelDevice, runtime, MIN_GPU_BYTES);
}

/** Whether the language model runs on a GPU, and a GPU has more than `minBytes` of memory. */
export function plansOnGpu(languageModelDevice: string, { devices }: RuntimeInfo, minBytes = 0): boolean {
  if (languageModelDevice === "cpu") return false;
  return devices.some(({ name, memoryBytes }) => name.startsWith("cuda") && memoryBytes > minBytes);
}

function takesLanguageModel({ analysis, taskType, planning }: GenerationRequest): boolean {
  if (planning.verbatim) return false;
  if (analysis === null) return LANGUAGE_MODEL_TASKS.includes(taskType);
  return analysis === "full" || analysis === "metadata" || analysis === "plan";
}

/** Whether the task fails without the language model. */
export function needsLanguageModel(request: GenerationRequest): boolean {
  return request.analysis !== null || request.planning.thinking || writesTextBeforePlanning(request);
}

/** Whether the language model writes or formats the caption and lyrics before it plans the song. */
export function writesTextBeforePlanning({ words }: GenerationRequest): boolean {
  const { sampleMode, sampleQuery, useFormat, prompt, lyrics } = words;
  const hasWords = `${prompt}${lyrics}`.trim() !== "";
  return sampleMode || sampleQuery !== "" || (useFormat && hasWords);
}

/** Whether a task uses the language model, provided that it can be loaded. */
export function usesLanguageModel(request: GenerationRequest, usesLmByDefault: boolean): boolean {
  return takesLanguageModel(request) && (needsLanguageModel(request) || usesLmByDefault);
}

/** Codes are written for text2music only: in other tasks they would replace the source audio. */
export function writesCodes({ planning, taskType, songs }: GenerationRequest): boolean {
  return planning.thinking && taskType === "text2music" && songs.every(({ codes }) => codes === null);
}

/** Checks at submission that texts fit the language model that a task requires. @throws EngineError PROMPT_TOO_LONG */
export async function checkTextLength(
  catalog: ModelCatalog,
  writer: SheetWriter,
  request: GenerationRequest,
): Promise<void> {
  if (!takesLanguageModel(request) || !needsLanguageModel(request)) return;
  const { analysis, words, planning, facts } = request;
  const { prompt, lyrics, sampleQuery, sampleMode } = words;
  const plansSongs = analysis === null || analysis === "plan";
  const writesSheet = plansSongs && (sampleMode || sampleQuery !== "");
  const writeCodes = plansSongs && writesCodes(request);
  const plans = analysis === "metadata" || (writeCodes && !writesSheet);
  if (!plans && !writesSheet) return;
  await writer.checkTextLength({
    languageModel: installedLanguageModel(catalog, planning.languageModel, []),
    fields: writesSheet ? { sample_query: sampleQuery } : { prompt, lyrics },
    codesSeconds: writeCodes && !writesSheet ? (facts.durationSeconds ?? 0) : null,
  });
}

/** Returns the installed language model with the requested name or path; null for the default. */
export function installedLanguageModel(
  catalog: ModelCatalog,
  requested: string | null,
  warnings: string[],
): string | null {
  if (requested === null) return null;
  const names = catalog.languageModels().map((model) => model.name);
  const installed = findModelByName(names, requested);
  if (installed !== undefined) return installed;
  warnings.push(
    `lm_model_path ${JSON.stringify(requested)} is not installed; the default language model was used`,
  );
  return null;
}
