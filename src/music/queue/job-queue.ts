/**
 * Accepted tasks and the work on them, wherever they are kept: what the service asks of a queue. `queue.ts` is the
 * embedded one, whose tasks lie in this process' own folder; `../fleet/fleet-queue.ts` shares them by Redis.
 */
import type { EventEmitter } from "node:events";
import type { SubmissionKey } from "../request/idempotency.js";
import type { GenerationRequest } from "../request/schema.js";
import type { TaskProgress } from "../song/progress.js";
import type { CatalogFilter, TaskSummary } from "./catalog.js";
import type { SongResult, StoredTask, Task, TaskState } from "./store.js";

export class QueueFullError extends Error {
  constructor(readonly retryAfterSeconds: number) {
    super("Server busy: queue is full");
  }
}

/** Another process was faster with a submission under the same key: its task is there now. */
export class SubmissionTakenError extends Error {}

/** Why a job was told to stop; the `reason` of its signal. */
export class JobAborted extends Error {
  constructor(
    readonly why: "cancelled" | "timeout" | "shutdown" | "superseded",
    message: string,
  ) {
    super(message);
  }
}

export interface JobControl {
  signal: AbortSignal;
  report(progress: TaskProgress): void;
}

export interface Jobs {
  /** Makes the songs of a task; rejects with what a client should read, or with the signal's reason. */
  run(task: Task, context: JobControl): Promise<SongResult>;
  /** Told of every task that has ended, however: done, failed or cancelled; once, by whoever recorded it. */
  ended(task: Task): Promise<void>;
}

/** What a queue tells as it happens. */
export interface QueueEvents {
  /** A task waits: it was accepted, or went back. */
  queued: [id: string, position: number | undefined];
  /** Positions of waiting tasks have changed. */
  moved: [];
  /** A running task has begun or has come further. */
  progress: [id: string, progress: TaskProgress, requestId: string | undefined];
  /** A task has ended, however. */
  ended: [task: Task];
}

/** What brought a task, beside its request. */
export interface Origin {
  submission?: SubmissionKey | null;
  /** The id of the HTTP request, as log lines name it. */
  requestId?: string | undefined;
  /** Whose turn it uses: the shares of a queue take turns. */
  share?: string;
}

/** What the queue knows of a task that has not ended. */
export interface LiveState {
  /** Only a running task has it. */
  progress: TaskProgress | undefined;
  /** 1 for the next to start; undefined for a task that does not wait. */
  position: number | undefined;
}

/** A process that makes songs, as it last told of itself. */
export interface WorkerStatus {
  /** Unique. */
  name: string;
  version: string;
  device: string;
  /** The free memory of the device, or of the machine where that is no GPU. */
  free_memory_bytes: number;
  /** Tasks that it runs at a time. */
  places: number;
  running: string[];
  models: { name: string; slot: number; is_loaded: boolean }[];
  lm_models: string[];
  /** It was told to stop, and begins nothing more. */
  is_draining: boolean;
}

export interface QueueStatistics {
  counts: Record<TaskState | "total", number>;
  waiting: number;
  averageJobSeconds: number;
  /** The fleet's workers; undefined where this process alone does the work. */
  workers?: WorkerStatus[];
}

export interface JobQueue {
  readonly events: EventEmitter<QueueEvents>;
  /** Others work on the same tasks: what lies in this process' folder may be theirs. */
  readonly isShared: boolean;

  /** Takes up what is stored; `visit` is told of every task, unless they are shared. @throws StoreError */
  open(visit: (stored: StoredTask) => void): Promise<void>;
  /** Begins to run tasks, where this process runs any. */
  start(): void;
  /**
   * Starts nothing more; waits `graceSeconds` for running jobs, then puts the rest back to the front of the queue. A
   * job that does not end when it is told to is left to itself: all that it still does is ignored.
   */
  stop(graceSeconds: number): Promise<void>;

  /** @throws QueueFullError where `submit` would, StoreError where nothing can be recorded now */
  assertRoom(): Promise<void>;
  /**
   * Accepts a task. `position` counts the waiting tasks, this one included.
   * @throws as assertRoom; SubmissionTakenError; HttpError where nobody can run it
   */
  submit(request: GenerationRequest, origin?: Origin): Promise<{ task: Task; position: number }>;
  /** The id of the task that was submitted under this key. */
  submittedAs(key: string): Promise<string | undefined>;
  /**
   * Fails a waiting or running task with "Cancelled by user". False where there is nothing to cancel.
   * @throws StoreError where that cannot be recorded now. A waiting task then still waits; a running one has been
   * stopped, and its end is recorded as soon as it can be.
   */
  cancel(id: string): Promise<boolean>;

  /** @throws DamagedRecordError */
  get(id: string): Promise<Task | undefined>;
  live(id: string): Promise<LiveState>;
  /** The ids of the tasks that the filter fits, newest first, and how many fit in all. */
  page(filter: CatalogFilter): Promise<{ total: number; ids: string[] }>;
  /** Replaces a task by what `change` makes of it; undefined where there is none. */
  update(id: string, change: (task: Task) => Task): Promise<Task | undefined>;
  statistics(): Promise<QueueStatistics>;

  /** All tasks that have ended, the oldest first. */
  finished(): Promise<TaskSummary[]>;
  /** Forgets a task that has ended; undefined where none of this id has. */
  remove(id: string): Promise<TaskSummary | undefined>;
  /**
   * Calls `work` where it is this process' office to let old songs go. `nowMs` is the time to judge ages by.
   * One of the processes that share a queue has the office.
   */
  asJanitor(work: (nowMs: number) => Promise<void>): Promise<void>;
}
