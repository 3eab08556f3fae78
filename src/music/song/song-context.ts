/**
 * State that the steps of a job share, and functions that prepare it: read recordings, load a model, load the
 * language model.
 */

import type { CallOptions, RuntimeInfo } from "../../engine/addon.js";
import type {
  LanguageModelInfo,
  ModelCatalog,
  MusicEngine,
  Plan,
  PlanarAudio,
  PlanRequest,
  SheetWriter,
  SongAdapter,
  SongLatents,
} from "../../engine/types.js";
import { decodeAudio } from "../audio/decode.js";
import { readLatents } from "../audio/latents-file.js";
import { findModelByName, selectSlot, supportedTaskTypes } from "../models/models.js";
import { LANGUAGE_MODEL_TASKS } from "../request/effects.js";
import { type AudioInput, type GenerationRequest, MAX_TURBO_STEPS } from "../request/schema.js";
import { makesStems } from "../request/stems.js";
import type { SongProgress } from "./progress.js";

/** Like `planSongs` of the engine, but the first argument is the language model of the task. */
export type PlanSongs = (
  lm: LanguageModelInfo,
  requests: PlanRequest[],
  call: CallOptions,
) => Promise<Plan[]>;

export interface SongContext {
  engine: MusicEngine;
  request: GenerationRequest;
  signal: AbortSignal;
  progress: SongProgress;
  maxSourceSeconds: number;
  /** Whether the language model also plans songs that do not require it. */
  usesLmByDefault: boolean;
  adapters?: readonly SongAdapter[] | undefined;
  planSongs: PlanSongs;
  warnings: string[];
}

/** Reduces the request of a task to one of its songs. */
export function requestForItem(request: GenerationRequest, item: number): GenerationRequest {
  const stem = makesStems(request.taskType) ? request.trackClasses[item] : undefined;
  return {
    ...request,
    ...(stem !== undefined && { trackName: stem, trackClasses: [] }),
    batchSize: 1,
    seeds: request.seeds.slice(item, item + 1),
    lmSeeds: request.lmSeeds?.length > 1 ? request.lmSeeds.slice(item, item + 1) : request.lmSeeds,
    audioCodes: request.audioCodes?.slice(item, item + 1) ?? null,
  };
}

export interface Recordings {
  source: PlanarAudio | null;
  reference: PlanarAudio | null;
  sourceLatents: SongLatents | null;
  referenceLatents: SongLatents | null;
}

/** @throws DecodeError, RequestError for latents */
export async function readRecordings(context: SongContext): Promise<Recordings> {
  const { sourceAudio, referenceAudio, sourceLatents, referenceLatents } = context.request;
  if (sourceAudio !== null || referenceAudio !== null) context.progress.enter("source");
  const latentsOf = (input: AudioInput | null | undefined, name: string) =>
    input ? readLatents(input.path, name, context.maxSourceSeconds) : null;
  const source = sourceAudio === null ? null : await read(context, sourceAudio, "src_audio");
  const reference = referenceAudio === null ? null : await read(context, referenceAudio, "reference_audio");
  return {
    source,
    reference,
    sourceLatents: await latentsOf(sourceLatents, "src_latents"),
    referenceLatents: await latentsOf(referenceLatents, "ref_latents"),
  };
}

function read(context: SongContext, { path }: AudioInput, name: string): Promise<PlanarAudio> {
  const { maxSourceSeconds: maxSeconds, signal } = context;
  return decodeAudio({ path, name, maxSeconds, signal });
}

export interface ReadySlot {
  slot: number;
  model: string;
  isTurbo: boolean;
  isLegoSft: boolean;
}

/** Selects the slot of the requested model, and loads the model if needed. */
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
  if (request.analysis === null && !supportedTaskTypes(engine.catalog, used).includes(request.taskType)) {
    warnings.push(`${used} was not trained for task_type ${request.taskType}: use a base model`);
  }
  return { slot, model: used, isTurbo, isLegoSft };
}

/**
 * Applies the limits of the loaded model. At submission the limits were unknown if another model, or none, was
 * loaded.
 */
export function clampToModelLimits({ request, warnings }: SongContext, isTurbo: boolean): GenerationRequest {
  const { inferenceSteps } = request;
  if (!isTurbo || inferenceSteps <= MAX_TURBO_STEPS) return request;
  warnings.push(
    `inference_steps must be from 1 to ${MAX_TURBO_STEPS} for a turbo model, got ${inferenceSteps}; ${MAX_TURBO_STEPS} was used`,
  );
  return { ...request, inferenceSteps: MAX_TURBO_STEPS };
}

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

function takesLanguageModel({ analysis, taskType }: GenerationRequest): boolean {
  return analysis === null ? LANGUAGE_MODEL_TASKS.includes(taskType) : analysis !== "codes";
}

/** Whether the task fails without the language model. */
function needsLanguageModel(request: GenerationRequest): boolean {
  return request.analysis !== null || request.thinking || writesTextBeforePlanning(request);
}

/** Whether the language model writes or formats the caption and lyrics before it plans the song. */
export function writesTextBeforePlanning({
  sampleMode,
  sampleQuery,
  useFormat,
  prompt,
  lyrics,
}: GenerationRequest): boolean {
  const hasWords = `${prompt}${lyrics}`.trim() !== "";
  return sampleMode || sampleQuery !== "" || (useFormat && hasWords);
}

/** Whether a task uses the language model, provided that it can be loaded. */
export function usesLanguageModel(request: GenerationRequest, usesLmByDefault: boolean): boolean {
  return takesLanguageModel(request) && (needsLanguageModel(request) || usesLmByDefault);
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
  const name = installedLanguageModel(engine.catalog, request.lmModelPath, warnings);
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

/** Checks at submission that texts fit the language model that a task requires. @throws EngineError PROMPT_TOO_LONG */
export async function checkTextLength(
  catalog: ModelCatalog,
  writer: SheetWriter,
  request: GenerationRequest,
): Promise<void> {
  if (!takesLanguageModel(request) || !needsLanguageModel(request)) return;
  const { prompt, lyrics, sampleQuery, taskType } = request;
  const writesSheet = request.analysis === null && (request.sampleMode || sampleQuery !== "");
  const writeCodes =
    request.thinking && request.analysis === null && taskType === "text2music" && request.audioCodes === null;
  const plans = request.analysis === "metadata" || (writeCodes && !writesSheet);
  if (!plans && !writesSheet) return;
  await writer.checkTextLength({
    languageModel: installedLanguageModel(catalog, request.lmModelPath, []),
    fields: writesSheet ? { sample_query: sampleQuery } : { prompt, lyrics },
    codesSeconds: writeCodes && !writesSheet ? (request.audioDurationSeconds ?? 0) : null,
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
