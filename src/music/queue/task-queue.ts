/**
 * Interface of the queue, which accepts tasks and runs them. `embedded-queue.ts` keeps its tasks in a folder of
 * this process. `../fleet/fleet-queue.ts` shares its tasks with other processes through Redis.
 */
import type { EventEmitter } from "node:events";
import { z } from "zod";
import { say } from "../../notes.js";
import { StoreError } from "../errors.js";
import type { GenerationRequest } from "../request/generation-request.js";
import type { SubmissionKey } from "../request/idempotency.js";
import type { TaskProgress } from "../song/progress.js";
import type { CatalogFilter, TaskSummary } from "./catalog.js";
import type { SongResult, StoredTask, Task, TaskState } from "./store.js";

export class QueueFullError extends Error {
  constructor(readonly retryAfterSeconds: number) {
    super(say("queue_full", {}));
  }
}

/** Another process has already accepted a submission with the same idempotency key. */
export class DuplicateSubmissionError extends Error {}

/** The store stopped answering while the task was being stored: the task may run, so its uploads must stay. */
export class UncertainSubmissionError extends StoreError {
  constructor(cause: unknown) {
    const advice = "look for it in GET /v1/tasks before you send it again, or send an Idempotency-Key";
    super("UNREACHABLE", `the task store stopped answering and may have accepted the task: ${advice}`, {
      cause,
    });
  }
}

/** Why a job was aborted: the reason of its abort signal. */
export class TaskAborted extends Error {
  constructor(
    readonly why: "cancelled" | "timeout" | "shutdown" | "superseded",
    message: string,
  ) {
    super(message);
  }
}

/** Error of a cancelled task. */
export const CANCELLED = "Cancelled by user";

export function cancelled(): TaskAborted {
  return new TaskAborted("cancelled", CANCELLED);
}

export function stopped(): TaskAborted {
  return new TaskAborted("shutdown", "the server is stopping");
}

export interface RunControl {
  signal: AbortSignal;
  report(progress: TaskProgress): void;
  /** Frees the place of the task: its songs are rendered, so the next task can use the models. */
  freePlace(): void;
  /** The next `count` tasks that this process will start, in order. Empty if other processes may run them. */
  waitingTasks(count: number): Promise<readonly Task[]>;
}

export interface TaskRunner {
  /** Runs a task. Rejects with an error for the client, or with the signal's reason. */
  run(task: Task, context: RunControl): Promise<SongResult>;
  /** Cleans up after a task that has succeeded or failed. Called once, by the process that recorded the end. */
  cleanUp(task: Task): Promise<void>;
}

export interface QueueEvents {
  /** A task was accepted or requeued. */
  queued: [id: string, position: number | undefined];
  positionsChanged: [];
  /** A task has started or made progress. */
  progress: [id: string, progress: TaskProgress, requestId: string | undefined];
  /** A task has ended, whether it succeeded or failed. */
  ended: [task: Task];
  /** The record of a task was removed before this process read its end. */
  removed: [id: string];
  /** A record was changed other than by the run of its task, or an ended task was removed. */
  updated: [id: string];
}

/** Data about the client's request that submitted a task. */
export interface TaskOrigin {
  submission?: SubmissionKey | null;
  requestId?: string | undefined;
  /** Client that submitted the task; clients take turns, see `FairTurns`. */
  client?: string;
  retakeOf?: string | undefined;
}

/** Live state of an unfinished task, kept outside its record. */
export interface LiveState {
  /** Progress of a running task; undefined for others. */
  progress: TaskProgress | undefined;
  /** Position in the queue: 1 for the next to start; undefined if the task is not waiting. */
  position: number | undefined;
}

const count = z.int().min(0);

/** Last status that a worker process has announced. */
export const workerStatus = z.object({
  /** Name of the worker, unique in the fleet. */
  name: z.string(),
  version: z.string(),
  device: z.string(),
  /** Free memory of the GPU, or of the machine if it has no GPU. */
  free_memory_bytes: count,
  places: count.meta({ description: "concurrent tasks" }),
  running: z.array(z.string()).meta({ description: "task ids" }),
  models: z.array(z.object({ name: z.string(), slot: count, is_loaded: z.boolean() })),
  lm_models: z.array(z.string()),
  /** Whether the worker is stopping and starts no more tasks. */
  is_draining: z.boolean(),
});

export interface QueueStatistics {
  counts: Record<TaskState | "total", number>;
  waiting: number;
  averageJobSeconds: number;
  /** Workers of the fleet; undefined for the embedded queue. */
  workers?: z.output<typeof workerStatus>[];
}

export interface TaskQueue {
  readonly events: EventEmitter<QueueEvents>;
  /**
   * Whether other processes share the queue. If so, files in the folder of this process may belong to their tasks.
   */
  readonly isShared: boolean;

  /** Loads the stored tasks. An embedded queue calls `visit` for each of them. @throws StoreError */
  open(visit: (stored: StoredTask) => void): Promise<void>;
  /** From now on this process runs tasks, unless it only accepts them. */
  start(): void;
  /**
   * Starts no more tasks, and gives running jobs `graceSeconds` to finish. Then aborts them and puts their tasks
   * back at the front of the queue. If a job ignores the abort, its result is dropped.
   */
  stop(graceSeconds: number): Promise<void>;

  /** @throws QueueFullError when the queue is full, StoreError when the store is not writable */
  assertRoom(): Promise<void>;
  /**
   * Accepts a task. Returns the task and its position among the waiting tasks, 1 for the first. Never throws once the
   * task is stored.
   * @throws QueueFullError and StoreError as `assertRoom` does, UncertainSubmissionError, DuplicateSubmissionError,
   * HttpError if no worker can run the task
   */
  submit(request: GenerationRequest, origin?: TaskOrigin): Promise<{ task: Task; position: number }>;
  /** Returns the id of the task that was submitted with this idempotency key. */
  submittedAs(key: string): Promise<string | undefined>;
  /**
   * Cancels a waiting or running task: it fails with "Cancelled by user". Returns false for a task in another
   * state or without a record.
   * @throws StoreError when the store is not writable. A waiting task then stays queued. A running one is aborted,
   * and its end is recorded later.
   */
  cancel(id: string): Promise<boolean>;

  /** @throws DamagedRecordError */
  get(id: string): Promise<Task | undefined>;
  live(id: string): Promise<LiveState>;
  /** Returns one page of the matching task ids, in the order of the filter, and the total number of matches. */
  page(filter: CatalogFilter): Promise<{ total: number; ids: string[] }>;
  /** Replaces a task with the result of `change`; undefined if there is none with this id. */
  update(id: string, change: (task: Task) => Task): Promise<Task | undefined>;
  statistics(): Promise<QueueStatistics>;

  /**
   * Claims tasks with a due callback, and returns their ids. Each id goes to one process. Its callback is due again
   * after a minute, unless it is rescheduled. A fleet also returns unfinished tasks once a minute, in case their
   * end was missed.
   */
  dueCallbacks(max: number): Promise<string[]>;
  /** @param delayMs time until the next attempt; null: no further attempt */
  scheduleCallback(id: string, delayMs: number | null): Promise<void>;

  /** Ended tasks, oldest first. */
  finished(): Promise<TaskSummary[]>;
  /**
   * Removes an ended task; undefined if there is none with this id.
   * @param prepare called before the task's record is removed; if it rejects, the record stays
   */
  remove(id: string, prepare?: (task: TaskSummary) => Promise<void>): Promise<TaskSummary | undefined>;
  /**
   * Calls `work` in only one of the processes that share the queue. `nowMs` is the current time, for computing
   * ages.
   */
  runCleanUp(work: (nowMs: number) => Promise<void>): Promise<void>;
}
