/** State that the steps of a job share, and the start and end of a job. */
import { access, constants } from "node:fs/promises";
import { dirname } from "node:path";
import type { CallOptions } from "../../engine/addon.js";
import type { LanguageModelInfo, MusicEngine, Plan, PlanRequest, SongAdapter } from "../../engine/types.js";
import { EncodeError } from "../audio/encode.js";
import type { GenerationRequest } from "../request/generation-request.js";
import { expectedSeconds } from "./lyric-length.js";
import { SongProgress, type TaskProgress } from "./progress.js";
import { JobStages } from "./stages.js";

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
  /** Aborted by an exception of `onProgress`. */
  failed: AbortSignal;
  progress: SongProgress;
  stages: JobStages;
  maxSourceSeconds: number;
  /** Whether the language model also plans songs that do not require it. */
  usesLmByDefault: boolean;
  adapters?: readonly SongAdapter[] | undefined;
  planSongs: PlanSongs;
  warnings: string[];
}

/** Output file of song `index`: its name in the record, and its path. */
export type Destination = (index: number, kind: "audio" | "latents") => { name: string; path: string };

export interface JobOptions {
  destination: Destination;
  /** Maximum length of source and reference audio. */
  maxSourceSeconds: number;
  /** Whether the language model also plans songs that do not require it; default false. */
  usesLmByDefault?: boolean;
  /** Adapters for the songs; absent: none. */
  adapters?: readonly SongAdapter[] | undefined;
  /** Cancels the job; absent: it cannot be cancelled. */
  signal?: AbortSignal;
  onProgress?(progress: TaskProgress): void;
  /** Function that plans the songs; default: `planSongs` of the engine. */
  planSongs?: PlanSongs;
}

/**
 * Starts a job. An exception of `onProgress`, or its rejection, aborts the signals `signal` and `failed` of the context:
 * some steps turn errors into warnings, so the job ends with `failed.throwIfAborted()`.
 */
export function startJob(
  engine: MusicEngine,
  request: GenerationRequest,
  options: JobOptions,
): Omit<SongContext, "engine" | "request"> {
  const { maxSourceSeconds, usesLmByDefault = false, adapters } = options;
  const { planSongs = (_lm, requests, call) => engine.planner.planSongs(requests, call) } = options;
  const failed = new AbortController();
  const stages = new JobStages(engine, request, expectedSeconds(request), usesLmByDefault);
  const progress = new SongProgress(request.songs.length, stages.expected, (reached) => {
    try {
      const reported: unknown = options.onProgress?.(reached);
      if (reported instanceof Promise) reported.catch((error: unknown) => failed.abort(error));
    } catch (error) {
      failed.abort(error);
      throw error;
    }
  });
  return {
    progress,
    stages,
    maxSourceSeconds,
    usesLmByDefault,
    adapters,
    planSongs,
    signal: AbortSignal.any([...(options.signal ? [options.signal] : []), failed.signal]),
    failed: failed.signal,
    warnings: [...request.warnings],
  };
}

/** @throws EncodeError if the folder of the first file is not writable */
export async function assertWritable(destination: Destination): Promise<void> {
  const folder = dirname(destination(0, "audio").path);
  await access(folder, constants.W_OK).catch((cause: Error) => {
    throw new EncodeError("ENCODE_FAILED", `the folder ${folder} is not writable: ${cause.message}`, {
      cause,
    });
  });
}
