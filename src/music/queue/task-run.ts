/** Creates the record of a new task, and runs a task: time limit, progress and outcome. Used by all queues. */
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import { say } from "../../notes.js";
import type { GenerationRequest } from "../request/generation-request.js";
import type { TaskProgress } from "../song/progress.js";
import type { SongResult, Task } from "./store.js";
import { type RunControl, stopped, TaskAborted, type TaskOrigin, type TaskRunner } from "./task-queue.js";

/** Maximum delay of `setTimeout`. */
const MAX_TIMER_MS = 2 ** 31 - 1;
/** Delay before the second attempt to write to the store. It doubles with each attempt, up to MAX_RETRY_MS. */
const FIRST_RETRY_MS = 500;
const MAX_RETRY_MS = 30_000;

/** Time for aborted jobs to clean up. A job that is still in a native call after this time is abandoned. */
const ABORT_SECONDS = 1;
/** Time to record the states of tasks that have not ended by then. */
const SETTLE_SECONDS = 1;

export type RunOutcome =
  | { state: "succeeded"; result: SongResult; progress: 1 }
  | { state: "failed"; error: string; progress: number }
  /** The run did not finish; the task goes back to the queue. */
  | { state: "queued"; why: "shutdown" | "disk-full"; cause: unknown };

export interface RunOptions {
  /** Maximum duration of the run; 0: no limit. */
  timeoutSeconds: number;
  onProgress(progress: TaskProgress): void;
  /** Called when the run frees its place. */
  onPlaceFreed(): void;
  waitingTasks: RunControl["waitingTasks"];
  log: Logger;
}

export const INITIAL_PROGRESS: TaskProgress = { value: 0.01, stage: "running", text: "", previewSeconds: 0 };

export class TaskRun {
  readonly controller = new AbortController();
  progress: TaskProgress = INITIAL_PROGRESS;
  /** Whether the run no longer takes a place, because it only encodes and stores its songs. */
  isFinishing = false;
  /** Duration of the run; null for an aborted run, which does not count in the average. */
  seconds: number | null = null;
  /** Outcome of the run; null while it runs. */
  outcome: RunOutcome | null = null;

  /** Runs the task. Returns null if the GPU was lost: the process must exit, and the run counts as interrupted. */
  async run(task: Task, runner: TaskRunner, options: RunOptions): Promise<RunOutcome | null> {
    const { timeoutSeconds } = options;
    const timeout = new TaskAborted("timeout", say("took_too_long", { seconds: timeoutSeconds }));
    const timer =
      timeoutSeconds > 0
        ? setTimeout(() => this.controller.abort(timeout), Math.min(timeoutSeconds * 1000, MAX_TIMER_MS))
        : undefined;
    const startedMs = performance.now();
    const outcome = await this.#outcome(task, runner, options);
    clearTimeout(timer);
    this.outcome = outcome;
    if (!this.controller.signal.aborted || outcome?.state === "succeeded") {
      this.seconds = (performance.now() - startedMs) / 1000;
    }
    return outcome;
  }

  async #outcome(
    task: Task,
    runner: TaskRunner,
    { onProgress, onPlaceFreed, waitingTasks, log }: RunOptions,
  ): Promise<RunOutcome | null> {
    const { signal } = this.controller;
    try {
      signal.throwIfAborted();
      const report = (progress: TaskProgress) => {
        this.progress = progress;
        onProgress(progress);
      };
      const freePlace = () => {
        this.isFinishing = true;
        onPlaceFreed();
      };
      const result = await runner.run(task, { signal, report, freePlace, waitingTasks });
      return { state: "succeeded", result, progress: 1 };
    } catch (error) {
      const cause: unknown = signal.aborted ? signal.reason : error;
      if (signal.aborted) log.info({ ...logFields(task), reason: oneLine(cause) }, "task stopped");
      else log.error({ ...logFields(task), err: cause }, "task failed");
      if (hasCode(cause, "DEVICE_LOST")) return null;
      if (hasCode(cause, "DISK_FULL")) return { state: "queued", why: "disk-full", cause };
      return this.aborted(cause);
    }
  }

  /** Outcome of a run that was aborted because of `cause`, whether or not the job reacted to the abort. */
  aborted(cause: unknown): RunOutcome {
    const isShutdown = cause instanceof TaskAborted && cause.why === "shutdown";
    if (isShutdown) return { state: "queued", why: "shutdown", cause };
    return this.failed(cause);
  }

  failed(cause: unknown): RunOutcome {
    return { state: "failed", error: oneLine(cause), progress: this.progress.value };
  }
}

export interface RunningTask {
  task: { id: string; requestId?: string | undefined };
  job: TaskRun;
  ended: Promise<void>;
  /** Whether the task was requeued without waiting for this run. If so, the result of this run is ignored. */
  isAbandoned: boolean;
}

/** Whether another task can start. Each place may have one more run that finishes its songs. */
export function hasFreePlace(runs: Iterable<{ job: TaskRun }>, places: number): boolean {
  const jobs = [...runs].map(({ job }) => job);
  return jobs.length < 2 * places && jobs.filter(({ isFinishing }) => !isFinishing).length < places;
}

/**
 * Waits up to `graceSeconds` for running jobs. Then aborts `stopping` and the jobs that are left. If a job ignores
 * the abort, requeues its task.
 */
export async function stopRuns<W extends RunningTask>(
  running: ReadonlyMap<string, W>,
  graceSeconds: number,
  stopping: AbortController,
  settle: (work: W, outcome: RunOutcome) => Promise<void>,
  log: Logger,
): Promise<void> {
  const untilEnded = () => Promise.all([...running.values()].map((work) => work.ended));
  await waitAtMost(graceSeconds, untilEnded());
  for (const { job } of running.values()) job.controller.abort(stopped());
  stopping.abort();
  await waitAtMost(ABORT_SECONDS, untilEnded());
  const settled = [...running.values()].map(async (work) => {
    work.isAbandoned = true;
    // A run that has ended, but is not recorded yet, keeps its outcome.
    const outcome = work.job.outcome ?? work.job.aborted(work.job.controller.signal.reason);
    await settle(work, outcome).catch((err: unknown) => {
      log.error({ ...logFields(work.task), err }, "could not record the state of a task");
    });
  });
  // Cleaning up after a task may hang.
  await waitAtMost(SETTLE_SECONDS, Promise.all(settled));
}

async function waitAtMost(seconds: number, promise: Promise<unknown>): Promise<void> {
  const over = new AbortController();
  const timeout = sleep(seconds * 1000, undefined, { signal: over.signal }).catch(() => {});
  await Promise.race([promise, timeout]);
  over.abort();
}

export function newTask(
  request: GenerationRequest,
  { submission, requestId, client, retakeOf }: TaskOrigin,
  place: { sequence: number; turn: number; position: number },
): Task {
  const { sequence, turn, position } = place;
  return {
    id: randomUUID(),
    sequence,
    state: "queued",
    createdAtMs: Date.now(),
    finishedAtMs: null,
    interruptions: 0,
    request,
    ...(submission && { submission: { ...submission, position } }),
    ...(requestId && { requestId }),
    ...(client && { share: client }),
    ...(retakeOf && { retakeOf }),
    turn,
    result: null,
    error: null,
    progress: 0,
  };
}

export function logFields({ id, requestId }: { id: string; requestId?: string | undefined }) {
  return { task: id, request: requestId };
}

/** Delay of the exponential backoff, for failed writes to the store and for an unreachable storage. */
export function retryDelayMs(attempt: number): number {
  return Math.min(FIRST_RETRY_MS * 2 ** attempt, MAX_RETRY_MS);
}

function hasCode(cause: unknown, code: string): boolean {
  return cause instanceof Error && "code" in cause && cause.code === code;
}

function oneLine(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  return message.split("\n", 1)[0] || "the job failed without a message";
}
