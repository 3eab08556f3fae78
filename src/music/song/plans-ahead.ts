/**
 * Plans waiting tasks together with a running one. The language model reads each weight once for all songs of
 * a batch, so planning several tasks takes little longer than planning one. A task is planned again when it
 * runs if its plan requests have changed since, or if planning failed.
 */
import { isDeepStrictEqual } from "node:util";
import type { CallOptions, Progress } from "../../engine/addon.js";
import { type BatchLimits, maxPlannedSongs } from "../../engine/batches.js";
import type { LanguageModelInfo, Plan, PlanRequest, SongPlanner } from "../../engine/types.js";
import type { Task } from "../queue/store.js";
import { usesLanguageModel } from "./language-model.js";
import { planRequestsOf } from "./plan-songs.js";

const MAX_SONGS_ON_GPU = 8;
/**
 * Lower than on a GPU, because on a CPU a batch takes longer than a single song: two songs take 1.15 times as
 * long, and eight songs 2.3 times (3 times with AVX2).
 */
const MAX_SONGS_ON_CPU = 4;

interface PlanAhead {
  requests: PlanRequest[];
  /** Resolves with the plans, or with null if planning failed or was stopped. */
  plans: Promise<Plan[] | null>;
  stop: AbortController;
  /** Progress callback of the task; undefined until the task runs. */
  onProgress: ((progress: Progress) => void) | undefined;
}

export class PlansAhead {
  readonly #ahead = new Map<string, PlanAhead>();

  constructor(
    private readonly planner: SongPlanner,
    private readonly usesLmByDefault: boolean,
    private readonly isOnGpu: boolean,
    private readonly limits: BatchLimits,
  ) {}

  /**
   * Returns the plans of a running task. If there are none yet, makes them, and plans waiting tasks in the
   * same batch. A waiting task joins the batch only if its songs are not longer than those of the running
   * task.
   */
  async plan(
    { id, request }: Task,
    lm: LanguageModelInfo,
    requests: PlanRequest[],
    call: CallOptions,
    waitingTasks: (count: number) => Promise<readonly Task[]>,
  ): Promise<Plan[]> {
    const plans = await this.#take(id, requests, call);
    if (plans !== null) return plans;
    const planning = this.planner.planSongs(requests, call);
    const planWaiting = async () => {
      const free = this.#maxSongs(requests.length) - requests.length;
      if (!request.sampling.sharesBatch || free <= 0) return;
      const waiting = (await waitingTasks(free)).filter(
        (task) => task.request.planning.languageModel === request.planning.languageModel,
      );
      this.#planWaiting(waiting, lm, requests, free);
    };
    const [own] = await Promise.all([planning, planWaiting()]);
    return own;
  }

  /** Stops planning a task and deletes its plans. */
  drop(id: string): void {
    this.#ahead.get(id)?.stop.abort();
    this.#ahead.delete(id);
  }

  close(): void {
    for (const id of this.#ahead.keys()) this.drop(id);
  }

  async #take(id: string, requests: PlanRequest[], call: CallOptions): Promise<Plan[] | null> {
    const ahead = this.#ahead.get(id);
    if (ahead === undefined || !isDeepStrictEqual(ahead.requests, requests)) {
      this.drop(id);
      return null;
    }
    ahead.onProgress = call.onProgress;
    const stop = () => ahead.stop.abort();
    call.signal?.addEventListener("abort", stop, { once: true });
    try {
      const plans = await ahead.plans;
      call.signal?.throwIfAborted();
      return plans;
    } finally {
      call.signal?.removeEventListener("abort", stop);
      this.#ahead.delete(id);
    }
  }

  /** Maximum number of songs in one planning batch. The batch includes `own` songs of the running task. */
  #maxSongs(own: number): number {
    const fast = this.isOnGpu ? MAX_SONGS_ON_GPU : Math.min(2 * own, MAX_SONGS_ON_CPU);
    return Math.min(fast, maxPlannedSongs(this.limits, this.isOnGpu));
  }

  #planWaiting(
    waiting: readonly Task[],
    lm: LanguageModelInfo,
    own: readonly PlanRequest[],
    maxSongs: number,
  ): void {
    let songs = 0;
    for (const { id, request } of waiting) {
      if (this.#ahead.has(id) || !usesLanguageModel(request, this.usesLmByDefault)) continue;
      const requests = planRequestsOf(request, lm);
      if (requests === null || !canJoin(requests, own)) continue;
      songs += requests.length;
      if (songs > maxSongs) return;
      this.#begin(id, requests);
    }
  }

  #begin(id: string, requests: PlanRequest[]): void {
    const stop = new AbortController();
    const onProgress = (progress: Progress) => ahead.onProgress?.(progress);
    const plans = this.planner.planSongs(requests, { signal: stop.signal, onProgress }).catch(() => null);
    const ahead: PlanAhead = { requests, plans, stop, onProgress: undefined };
    this.#ahead.set(id, ahead);
  }
}

/**
 * Whether the language model can decode `requests` in one batch with `own`, in the time that `own` takes
 * alone.
 */
function canJoin(requests: readonly PlanRequest[], own: readonly PlanRequest[]): boolean {
  const [one] = requests;
  const [other] = own;
  return (
    one !== undefined &&
    other !== undefined &&
    one.writeCodes === other.writeCodes &&
    one.cfgScale === other.cfgScale &&
    isDeepStrictEqual(one.sampling, other.sampling) &&
    longestSeconds(requests) <= longestSeconds(own)
  );
}

/** Longest requested duration; Infinity if the language model chooses one. */
function longestSeconds(requests: readonly PlanRequest[]): number {
  return Math.max(...requests.map(({ metadata }) => metadata.durationSeconds ?? Number.POSITIVE_INFINITY));
}
