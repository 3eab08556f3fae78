/** State that the steps of a job share. */
import type { CallOptions } from "../../engine/addon.js";
import type { LanguageModelInfo, MusicEngine, Plan, PlanRequest, SongAdapter } from "../../engine/types.js";
import type { GenerationRequest } from "../request/generation-request.js";
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
