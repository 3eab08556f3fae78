/** Loads the models of a task, and applies their limits to it. */
import type { CallOptions } from "../../engine/addon.js";
import type { LanguageModelInfo } from "../../engine/types.js";
import { say } from "../../notes.js";
import { findModelByName, selectSlot } from "../models/models.js";
import type { GenerationRequest } from "../request/generation-request.js";
import { MAX_TURBO_STEPS } from "../request/schema.js";
import { supportedTaskTypes } from "../request/task-types.js";
import { installedLanguageModel, needsLanguageModel, usesLanguageModel } from "./language-model.js";
import type { SongContext } from "./song-context.js";

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
  const { request, signal, warnings, usesLmByDefault } = context;
  if (!usesLanguageModel(request, usesLmByDefault)) return null;
  try {
    return await loadLanguageModel(context, { signal, onProgress: context.progress.enter("load") });
  } catch (error) {
    signal.throwIfAborted();
    const message = error instanceof Error ? error.message : String(error);
    if (needsLanguageModel(request)) throw new Error(`5Hz LM init failed: ${message}`, { cause: error });
    warnings.push(say("made_without_language_model", { reason: message }));
    return null;
  }
}

/** Loads the requested language model, or the default. */
export function loadLanguageModel(context: SongContext, call: CallOptions): Promise<LanguageModelInfo> {
  const { engine, request, warnings } = context;
  const name = installedLanguageModel(engine.catalog, request.planning.languageModel, warnings);
  return engine.planner.prepareLanguageModel(name, call);
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
    warnings.push(say("model_not_loaded", { model: request.model, used }));
  }
  const entry = engine.catalog.models().find(({ name }) => name === used);
  if (request.analysis === null && entry && !supportedTaskTypes(entry).includes(request.taskType)) {
    warnings.push(say("model_not_trained", { model: used, task_type: request.taskType }));
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
