/** When a task uses the language model, and which one. Loads the models of a task, and applies their limits to it. */
import type { RuntimeInfo } from "../../engine/addon.js";
import type { LanguageModelInfo, ModelCatalog, SheetWriter } from "../../engine/types.js";
import { findModelByName, selectSlot } from "../models/models.js";
import type { GenerationRequest } from "../request/generation-request.js";
import { MAX_TURBO_STEPS } from "../request/schema.js";
import { LANGUAGE_MODEL_TASKS, supportedTaskTypes } from "../request/task-types.js";
import type { SongContext } from "./song-context.js";

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
  const lastComponent = requested.slice(requested.lastIndexOf("/") + 1);
  const installed = names.find((name) => name === requested) ?? names.find((name) => name === lastComponent);
  if (installed !== undefined) return installed;
  warnings.push(
    `lm_model_path ${JSON.stringify(requested)} is not installed; the default language model was used`,
  );
  return null;
}

export interface ReadySlot {
  slot: number;
  model: string;
  isTurbo: boolean;
  isLegoSft: boolean;
  /** Parameters of the request within the limits of the model. */
  denoise: GenerationRequest["denoise"];
}

/**
 * Loads the language model if the task uses it. If the task does not require the model, `SVC_INIT_LLM` decides. The
 * models in memory never decide, so that a request always makes the same song. `cover`, `repaint` and `extract` never
 * use the language model; `lego` and `complete` use it for text, but never for audio codes.
 * @returns the language model of the task, or null
 */
export async function provideLanguageModel(context: SongContext): Promise<LanguageModelInfo | null> {
  const { engine, request, signal, warnings, usesLmByDefault } = context;
  if (!usesLanguageModel(request, usesLmByDefault)) return null;
  const name = installedLanguageModel(engine.catalog, request.planning.languageModel, warnings);
  try {
    return await engine.planner.prepareLanguageModel(name, {
      signal,
      onProgress: context.progress.enter("load"),
    });
  } catch (error) {
    signal.throwIfAborted();
    const message = error instanceof Error ? error.message : String(error);
    if (needsLanguageModel(request)) throw new Error(`5Hz LM init failed: ${message}`, { cause: error });
    warnings.push(`the song was made without the language model: ${message}`);
    return null;
  }
}

/** Selects the slot of the requested model, loads the model if needed, and applies its limits. */
export async function prepareSlot({
  engine,
  request,
  signal,
  progress,
  warnings,
}: SongContext): Promise<ReadySlot> {
  const selected = selectSlot(engine.catalog.slots(), request.model);
  const call = { signal, onProgress: progress.enter("load") };
  const { slot, model, isTurbo, isLegoSft } =
    selected.model === null ? await engine.loader.loadSlot(selected.slot, null, call) : selected;
  const used = model ?? "";
  if (request.model !== null && findModelByName([used], request.model) === undefined) {
    warnings.push(`model ${JSON.stringify(request.model)} is not loaded; ${used} was used`);
  }
  const entry = engine.catalog.models().find(({ name }) => name === used);
  if (request.analysis === null && entry && !supportedTaskTypes(entry).includes(request.taskType)) {
    warnings.push(`${used} was not trained for task_type ${request.taskType}: use a base model`);
  }
  // At submission the limit was unknown if another model, or none, was loaded.
  const { inferenceSteps } = request.denoise;
  const exceeds = request.analysis === null && isTurbo && inferenceSteps > MAX_TURBO_STEPS;
  if (exceeds) {
    warnings.push(
      `inference_steps must be from 1 to ${MAX_TURBO_STEPS} for a turbo model, got ${inferenceSteps}; ${MAX_TURBO_STEPS} was used`,
    );
  }
  const denoise = exceeds ? { ...request.denoise, inferenceSteps: MAX_TURBO_STEPS } : request.denoise;
  return { slot, model: used, isTurbo, isLegoSft, denoise };
}
