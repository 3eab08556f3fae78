/** A task's record, and one run of it, whatever queue it is in: its time limit, its progress, and how it ended. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import { v4 as uuid } from "uuid";
import type { GenerationRequest } from "../request/schema.js";
import type { TaskProgress } from "../song/progress.js";
import { JobAborted, type Jobs, type Origin } from "./job-queue.js";
import type { SongResult, Task } from "./store.js";

/** What setTimeout can count. */
const MAX_TIMER_MS = 2 ** 31 - 1;
/** Between attempts to write to a store that refuses: the first one, doubled up to the last one. */
const FIRST_RETRY_MS = 500;
const MAX_RETRY_MS = 30_000;

/** What aborted jobs get to clean up after themselves. One in a native call needs longer, and is left to itself. */
const ABORT_SECONDS = 1;

/** How a run ended, in terms of its task. */
export type Outcome =
  | { state: "succeeded"; result: SongResult; progress: 1 }
  | { state: "failed"; error: string; progress: number }
  /** It waits again. */
  | { state: "queued"; why: "shutdown" | "disk-full"; cause: unknown };

export interface RunOptions {
  /** 0: no limit. */
  timeoutSeconds: number;
  onProgress(progress: TaskProgress): void;
  log: Logger;
}

/** The progress of a task that has begun and told nothing yet. */
export const BEGUN: TaskProgress = { value: 0.01, stage: "running", text: "", previewSeconds: 0 };

export class RunningJob {
  readonly controller = new AbortController();
  progress: TaskProgress = BEGUN;
  /** What the run took; null where it was told to stop, which says nothing of the length of jobs. */
  seconds: number | null = null;

  /**
   * Null where the run found the device lost: the process is then to end, and whoever is next finds the task
   * interrupted.
   */
  async run(task: Task, jobs: Jobs, options: RunOptions): Promise<Outcome | null> {
    const { timeoutSeconds } = options;
    const timeout = new JobAborted("timeout", `the job ran longer than ${timeoutSeconds} seconds`);
    const timer =
      timeoutSeconds > 0
        ? setTimeout(() => this.controller.abort(timeout), Math.min(timeoutSeconds * 1000, MAX_TIMER_MS))
        : undefined;
    const startedMs = performance.now();
    const outcome = await this.#outcome(task, jobs, options);
    clearTimeout(timer);
    if (!this.controller.signal.aborted || outcome?.state === "succeeded") {
      this.seconds = (performance.now() - startedMs) / 1000;
    }
    return outcome;
  }

  async #outcome(task: Task, jobs: Jobs, { onProgress, log }: RunOptions): Promise<Outcome | null> {
    const { signal } = this.controller;
    try {
      signal.throwIfAborted();
      const report = (progress: TaskProgress) => {
        this.progress = progress;
        onProgress(progress);
      };
      const result = await jobs.run(task, { signal, report });
      return { state: "succeeded", result, progress: 1 };
    } catch (error) {
      const cause: unknown = signal.aborted ? signal.reason : error;
      if (signal.aborted) log.info({ ...named(task), reason: oneLine(cause) }, "task stopped");
      else log.error({ ...named(task), err: cause }, "task failed");
      if (hasCode(cause, "DEVICE_LOST")) return null;
      if (hasCode(cause, "DISK_FULL")) return { state: "queued", why: "disk-full", cause };
      return this.aborted(cause);
    }
  }

  /** The outcome of a run that ends for `cause`, also where it never heard of it. */
  aborted(cause: unknown): Outcome {
    const isShutdown = cause instanceof JobAborted && cause.why === "shutdown";
    if (isShutdown) return { state: "queued", why: "shutdown", cause };
    return this.failed(cause);
  }

  failed(cause: unknown): Outcome {
    return { state: "failed", error: oneLine(cause), progress: this.progress.value };
  }
}

/** A run under way, as queues keep it. */
interface Work {
  task: { id: string; requestId?: string | undefined };
  job: RunningJob;
  ended: Promise<void>;
  /** Its task was given back without it: whatever it still does is no longer heard. */
  isAbandoned: boolean;
}

/** Lets jobs finish for so long, then tells the rest to stop; `stopping` fires then. What is deaf is abandoned. */
export async function stopJobs<W extends Work>(
  running: ReadonlyMap<string, W>,
  graceSeconds: number,
  stopping: AbortController,
  settle: (work: W, outcome: Outcome) => Promise<void>,
  log: Logger,
): Promise<void> {
  const works = [...running.values()];
  const ended = Promise.all(works.map((work) => work.ended));
  await within(graceSeconds, ended);
  for (const { job } of works) {
    job.controller.abort(new JobAborted("shutdown", "the server is stopping"));
  }
  stopping.abort();
  await within(ABORT_SECONDS, ended);
  for (const work of running.values()) {
    work.isAbandoned = true;
    await settle(work, work.job.aborted(work.job.controller.signal.reason)).catch((err: unknown) => {
      log.error({ ...named(work.task), err }, "a task could not be given back");
    });
  }
}

/** Waits for the promise, but no longer than this. */
async function within(seconds: number, promise: Promise<unknown>): Promise<void> {
  const over = new AbortController();
  const timeout = sleep(seconds * 1000, undefined, { signal: over.signal }).catch(() => {});
  await Promise.race([promise, timeout]);
  over.abort();
}

/** The record of a task that was accepted for this place in the queue. */
export function acceptedTask(
  request: GenerationRequest,
  { submission, requestId, share }: Origin,
  place: { sequence: number; turn: number; position: number },
): Task {
  const { sequence, turn, position } = place;
  return {
    id: uuid(),
    sequence,
    state: "queued",
    createdAtMs: Date.now(),
    finishedAtMs: null,
    interruptions: 0,
    request,
    ...(submission && { submission: { ...submission, position } }),
    ...(requestId && { requestId }),
    ...(share && { share }),
    turn,
    result: null,
    error: null,
    progress: 0,
  };
}

/** A task as log lines name it. */
export function named({ id, requestId }: { id: string; requestId?: string | undefined }) {
  return { task: id, request: requestId };
}

/** The wait after so many failed attempts to write to a store. */
export function retryDelayMs(attempt: number): number {
  return Math.min(FIRST_RETRY_MS * 2 ** attempt, MAX_RETRY_MS);
}

function hasCode(cause: unknown, code: string): boolean {
  return cause instanceof Error && "code" in cause && cause.code === code;
}

/** The message of a failure without a stack trace or line breaks. */
function oneLine(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  return message.split("\n", 1)[0] || "the job failed without a message";
}
