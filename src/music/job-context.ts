/** What the steps of one job share, and what they all need first: models and recordings. */
import type { MusicEngine, PlanarAudio } from "../engine/types.js";
import { decodeAudio } from "./decode.js";
import { namedModel, selectSlot } from "./model-selection.js";
import { supportedTaskTypes } from "./models.js";
import type { JobProgress } from "./progress.js";
import { type AudioInput, type GenerationRequest, MAX_TURBO_STEPS } from "./request/schema.js";

export interface JobContext {
  engine: MusicEngine;
  request: GenerationRequest;
  signal: AbortSignal;
  progress: JobProgress;
  /** Recordings that last longer are refused. */
  maxSourceSeconds: number;
  /** Whether the language model has a part in songs that only leave it room to. */
  plansUnasked: boolean;
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
  if (request.analysis === null && !supportedTaskTypes(used, isTurbo).includes(request.taskType)) {
    warnings.push(
      `${used} is a turbo model, made for other tasks than ${request.taskType}: use a base model`,
    );
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
