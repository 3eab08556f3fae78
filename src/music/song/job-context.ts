/** What the steps of one job share, and what they all need first: recordings, a renderer, and the language model where it has a part. */

import type { RuntimeInfo } from "../../engine/addon.js";
import type { LanguageModelInfo, MusicEngine, PlanarAudio, SongAdapter } from "../../engine/types.js";
import { decodeAudio } from "../audio/decode.js";
import { namedModel, selectSlot, supportedTaskTypes } from "../models.js";
import {
  type AudioInput,
  type GenerationRequest,
  MAX_TURBO_STEPS,
  type TaskType,
} from "../request/schema.js";
import type { JobProgress } from "./progress.js";

export interface JobContext {
  engine: MusicEngine;
  request: GenerationRequest;
  signal: AbortSignal;
  progress: JobProgress;
  /** Recordings that last longer are refused. */
  maxSourceSeconds: number;
  /** Whether the language model has a part in songs that only leave it room to. */
  plansUnasked: boolean;
  /** See JobOptions. */
  adapter?: SongAdapter | null | undefined;
  /** What a reader of the result should know. */
  warnings: string[];
}

/** The recordings of a job, decoded. */
export interface Recordings {
  source: PlanarAudio | null;
  reference: PlanarAudio | null;
}

/**
 * Reads the recordings that the request names.
 * @throws DecodeError
 */
export async function readRecordings(context: JobContext): Promise<Recordings> {
  const { sourceAudio, referenceAudio } = context.request;
  if (sourceAudio !== null || referenceAudio !== null) context.progress.enter("source");
  const source = sourceAudio === null ? null : await read(context, sourceAudio, "src_audio");
  const reference = referenceAudio === null ? null : await read(context, referenceAudio, "reference_audio");
  return { source, reference };
}

function read(context: JobContext, { path }: AudioInput, name: string): Promise<PlanarAudio> {
  const { maxSourceSeconds: maxSeconds, signal } = context;
  return decodeAudio({ path, name, maxSeconds, signal });
}

/** The slot that the request's model means, loaded. */
export async function readySlot({
  engine,
  request,
  signal,
  progress,
  warnings,
}: JobContext): Promise<{ slot: number; model: string; isTurbo: boolean }> {
  const selected = selectSlot(engine.slots(), request.model);
  const call = { signal, onProgress: progress.enter("load") };
  const { slot, model, isTurbo } =
    selected.model === null ? await engine.loadSlot(selected.slot, null, call) : selected;
  const used = model ?? "";
  if (request.model !== null && namedModel([used], request.model) === undefined) {
    warnings.push(`model ${JSON.stringify(request.model)} is not loaded; ${used} was used`);
  }
  if (request.analysis === null && !supportedTaskTypes(engine, used).includes(request.taskType)) {
    warnings.push(`${used} is made for other tasks than ${request.taskType}: use a base model`);
  }
  return { slot, model: used, isTurbo };
}

/** What the model allows of the request: submission may have met another model, or none yet. */
export function withinModelLimits({ request, warnings }: JobContext, isTurbo: boolean): GenerationRequest {
  const { inferenceSteps } = request;
  if (!isTurbo || inferenceSteps <= MAX_TURBO_STEPS) return request;
  warnings.push(
    `inference_steps must be from 1 to ${MAX_TURBO_STEPS} for a turbo model, got ${inferenceSteps}; ${MAX_TURBO_STEPS} was used`,
  );
  return { ...request, inferenceSteps: MAX_TURBO_STEPS };
}

/** Graphics memory that holds the language model beside the renderer. */
const MIN_GPU_BYTES = 6 * 2 ** 30;

/**
 * What SVC_INIT_LLM decides: whether the language model is loaded at start and plans also the songs that only leave it
 * room to; "auto" does on a graphics card that has room for it.
 */
export function plansUnasked(
  setting: "auto" | "on" | "off",
  languageModelDevice: string,
  runtime: RuntimeInfo,
): boolean {
  if (setting !== "auto") return setting === "on";
  if (languageModelDevice === "cpu") return false;
  return runtime.devices.some(
    ({ name, memoryBytes }) => name.startsWith("cuda") && memoryBytes > MIN_GPU_BYTES,
  );
}

/** The tasks that the language model has a part in. */
const LANGUAGE_MODEL_TASKS: readonly TaskType[] = ["text2music", "lego", "complete"];

function takesLanguageModel({ analysis, taskType }: GenerationRequest): boolean {
  return analysis === null ? LANGUAGE_MODEL_TASKS.includes(taskType) : analysis !== "codes";
}

/** True where a task fails without the language model; false where it only leaves gaps. */
function needsLanguageModel(request: GenerationRequest): boolean {
  return request.analysis !== null || request.thinking || asksForWords(request);
}

function asksForWords({ sampleMode, sampleQuery, useFormat }: GenerationRequest): boolean {
  return sampleMode || sampleQuery !== "" || useFormat;
}

/**
 * Makes the language model ready if the task takes one: those that need it do, whatever `SVC_INIT_LLM` says, and those
 * that it would only improve do where the configuration plans unasked. What happens to be loaded decides nothing, so
 * that a request makes the same song on any day.
 * @returns the model that the task works with, or null for none
 */
export async function provideLanguageModel(context: JobContext): Promise<LanguageModelInfo | null> {
  const { engine, request, signal, warnings, plansUnasked } = context;
  if (!takesLanguageModel(request)) {
    if (request.analysis === null && asksForWords(request)) {
      warnings.push(
        `sample_mode, sample_query and use_format were ignored: task_type ${request.taskType} does without the language model`,
      );
    }
    return null;
  }
  const isNeeded = needsLanguageModel(request);
  if (!isNeeded && !plansUnasked) return null;
  const name = installedName(engine, request.lmModelPath, warnings);
  try {
    return await engine.prepareLanguageModel(name, { signal, onProgress: context.progress.enter("load") });
  } catch (error) {
    signal.throwIfAborted();
    const message = error instanceof Error ? error.message : String(error);
    if (isNeeded) throw new Error(`5Hz LM init failed: ${message}`, { cause: error });
    warnings.push(`the language model had no part in the song: ${message}`);
    return null;
  }
}

/**
 * Says at submission what a task that needs the language model could not be made of.
 * @throws EngineError PROMPT_TOO_LONG
 */
export async function checkWords(engine: MusicEngine, request: GenerationRequest): Promise<void> {
  if (!takesLanguageModel(request) || !needsLanguageModel(request)) return;
  const { prompt, lyrics, sampleQuery, taskType } = request;
  const writesSheet = request.analysis === null && (request.sampleMode || sampleQuery !== "");
  const writeCodes =
    request.thinking && request.analysis === null && taskType === "text2music" && request.audioCodes === null;
  const plans = request.analysis === "metadata" || (writeCodes && !writesSheet);
  if (!plans && !writesSheet) return;
  await engine.checkWords({
    languageModel: installedName(engine, request.lmModelPath, []),
    fields: writesSheet ? { sample_query: sampleQuery } : { prompt, lyrics },
    codesSeconds: writeCodes && !writesSheet ? (request.audioDurationSeconds ?? 0) : null,
  });
}

/** The model that a task asks for by name or path, or null where it asks for none that is there. */
function installedName(engine: MusicEngine, asked: string | null, warnings: string[]): string | null {
  if (asked === null) return null;
  const names = engine.languageModels().map((model) => model.name);
  const lastComponent = asked.slice(asked.lastIndexOf("/") + 1);
  const installed = names.find((name) => name === asked) ?? names.find((name) => name === lastComponent);
  if (installed !== undefined) return installed;
  warnings.push(
    `lm_model_path ${JSON.stringify(asked)} is not installed; the default language model was used`,
  );
  return null;
}
