import { EventEmitter } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import { v4 as uuid } from "uuid";
import { StoreError } from "../errors.js";
import type { SubmissionKey } from "../request/idempotency.js";
import type { GenerationRequest } from "../request/schema.js";
import type { TaskProgress } from "../song/progress.js";
import type { JobStatistics } from "./statistics.js";
import type { SongResult, Task, TaskState, TaskStore } from "./store.js";

/**
 * A task that was running when the process died this often is not tried again. Many, and with waits between them that
 * add up to 20 minutes: a few kills from outside say nothing of the task that they met.
 */
const MAX_INTERRUPTIONS = 10;
/** How often a task is tried whose song the disk has no room for. */
const MAX_DISK_FAILURES = 10;
/** What a task waits at start-up after its second interruption, or after a full disk; twice as long each further time. */
const FIRST_HOLD_MS = 5_000;
const MAX_HOLD_MS = 10 * 60_000;
/** Between attempts to write to a store that refuses: the first one, doubled up to the last one. */
const FIRST_RETRY_MS = 500;
const MAX_RETRY_MS = 30_000;
/** What aborted jobs get to clean up after themselves. One in a native call needs longer, and is left to itself. */
const ABORT_SECONDS = 1;
/** What setTimeout can count. */
const MAX_TIMER_MS = 2 ** 31 - 1;

export class QueueFullError extends Error {
  constructor(readonly retryAfterSeconds: number) {
    super("Server busy: queue is full");
  }
}

/** Why a job was told to stop; the `reason` of its signal. */
export class JobAborted extends Error {
  constructor(
    readonly why: "cancelled" | "timeout" | "shutdown",
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
  /** Told of every task that has ended, however: done, failed or cancelled. */
  ended(task: Task): Promise<void>;
}

export interface QueueOptions {
  /** Tasks that may wait, running ones not counted; 0: no limit. */
  capacity: number;
  workers: number;
  /** 0: no limit. */
  jobTimeoutSeconds: number;
  /** Stamps what has finished. */
  clock: { nowMs(): number };
}

/** What the queue tells as it happens. */
interface QueueEvents {
  /** A task waits: it was accepted, or went back. */
  queued: [id: string];
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
  /** Of the HTTP request, as log lines name it. */
  requestId?: string | undefined;
}

interface WaitingTask {
  id: string;
  sequence: number;
  interruptions: number;
  requestId: string | undefined;
  /** How often a full disk took its song in this life of the process. */
  diskFailures: number;
  /** Lets others go first for a while, as it may be what ended the process or what does not fit on the disk. */
  isHeld: boolean;
}

interface RunningJob {
  task: WaitingTask;
  controller: AbortController;
  progress: TaskProgress;
  ended: Promise<void>;
  /** Set once the end of the job could not be recorded; it is tried again until it can. */
  failure: StoreError | null;
  /** Called then. */
  onFailure: (() => void)[];
  /** Its task went back into the store without it: whatever it still does is no longer heard. */
  isAbandoned: boolean;
}

/**
 * First in, first out. Every change of state is in the store before anyone is told of it; while the store takes no
 * changes, nothing starts, and what has ended is tried to be recorded until that succeeds.
 */
export class TaskQueue {
  readonly events = new EventEmitter<QueueEvents>();
  /** By sequence. */
  readonly #waiting: WaitingTask[] = [];
  /** The tasks that were running when the process ended; in `#waiting` too until `recover`. */
  readonly #interrupted: string[] = [];
  /** Accepted tasks on their way into the store. */
  #admitting = 0;
  readonly #running = new Map<string, RunningJob>();
  #nextSequence = 1;
  #started = false;
  /** Ends the attempts to write to a store that refuses. */
  readonly #stopping = new AbortController();
  /** Failed attempts in a row to begin a task; nothing begins while `#pauseTimer` runs. */
  #beginFailures = 0;
  #pauseTimer: NodeJS.Timeout | undefined;

  constructor(
    private readonly store: TaskStore,
    private readonly jobs: Jobs,
    private readonly statistics: JobStatistics,
    private readonly options: QueueOptions,
    private readonly log: Logger,
  ) {}

  /** Takes up a task that the store holds; for the start, before `recover`. */
  takeUp({ id, sequence, interruptions, requestId, state }: Task): void {
    this.#nextSequence = Math.max(this.#nextSequence, sequence + 1);
    if (state === "queued" || state === "running") {
      this.#enqueue({ id, sequence, interruptions, requestId, diskFailures: 0, isHeld: false });
    }
    if (state === "running") this.#interrupted.push(id);
    this.statistics.moved(null, state === "running" ? "queued" : state);
  }

  /** After the last `takeUp`: tasks found running will start again, later and alone if that happened before. */
  async recover(): Promise<void> {
    for (const id of this.#interrupted.splice(0)) {
      const task = this.#waiting.find((waiting) => waiting.id === id) as WaitingTask;
      task.interruptions++;
      this.log.warn({ ...named(task), interruptions: task.interruptions }, "task was interrupted");
      try {
        await this.#recordInterruption(task);
      } catch (err) {
        if (!(err instanceof StoreError)) throw err;
        this.log.warn(
          { task: id, err },
          "the interruption of a task could not be recorded and is not counted",
        );
      }
    }
    for (const task of this.#waiting) {
      if (task.interruptions > 1) this.#hold(task, task.interruptions - 2);
    }
  }

  async #recordInterruption({ id, interruptions }: WaitingTask): Promise<void> {
    if (interruptions < MAX_INTERRUPTIONS) {
      await this.#change(id, (task) => ({ ...task, state: "queued", interruptions }));
      return;
    }
    const error = `the server stopped ${interruptions} times while this task ran; it is not tried again`;
    await this.#finish(id, "queued", { state: "failed", interruptions, error });
    this.#dequeue(id);
  }

  /** `times`: how often it was held before. */
  #hold(task: WaitingTask, times: number): void {
    task.isHeld = true;
    const release = () => {
      task.isHeld = false;
      this.#startNext();
    };
    setTimeout(release, Math.min(FIRST_HOLD_MS * 2 ** times, MAX_HOLD_MS)).unref();
  }

  /** Starts the workers. */
  start(): void {
    this.#started = true;
    this.#startNext();
  }

  get waitingCount(): number {
    return this.#waiting.length + this.#admitting;
  }

  /** Throws QueueFullError where `submit` would. */
  assertRoom(): void {
    if (this.options.capacity > 0 && this.waitingCount >= this.options.capacity) {
      const seconds = this.statistics.averageJobSeconds / this.options.workers;
      throw new QueueFullError(Math.min(Math.max(Math.ceil(seconds), 1), 3600));
    }
  }

  /** Accepts a task. `position` counts the waiting tasks, this one included. */
  async submit(
    request: GenerationRequest,
    { submission = null, requestId }: Origin = {},
  ): Promise<{ task: Task; position: number }> {
    this.assertRoom();
    this.#admitting++;
    const position = this.waitingCount;
    const task: Task = {
      id: uuid(),
      sequence: this.#nextSequence++,
      state: "queued",
      createdAtMs: Date.now(),
      finishedAtMs: null,
      interruptions: 0,
      request,
      ...(submission && { submission: { ...submission, position } }),
      ...(requestId && { requestId }),
      result: null,
      error: null,
      progress: 0,
    };
    try {
      await this.store.add(task);
    } finally {
      this.#admitting--;
    }
    this.takeUp(task);
    this.log.info({ task: task.id, request: requestId, position }, "task accepted");
    this.events.emit("queued", task.id);
    this.#startNext();
    return { task, position };
  }

  /** The progress of a running task; undefined for any other. */
  progressOf(id: string): TaskProgress | undefined {
    return this.#running.get(id)?.progress;
  }

  /** 1 for the next to start; undefined for a task that does not wait. */
  positionOf(id: string): number | undefined {
    const index = this.#waiting.findIndex((task) => task.id === id);
    return index < 0 ? undefined : index + 1;
  }

  /**
   * Fails a waiting or running task with "Cancelled by user". False where there is nothing to cancel.
   * @throws StoreError where that cannot be recorded now. A waiting task then still waits; a running one has been
   * stopped, and its end is recorded as soon as it can be.
   */
  async cancel(id: string): Promise<boolean> {
    const reason = new JobAborted("cancelled", "Cancelled by user");
    const job = this.#running.get(id);
    if (job !== undefined) {
      job.controller.abort(reason);
      await endOrFailure(job);
      // It may have ended otherwise before it heard of this.
      return (await this.store.get(id))?.error === reason.message;
    }
    const task = this.#dequeue(id);
    if (task === undefined) return false;
    try {
      await this.#finish(id, "queued", { state: "failed", error: reason.message });
    } catch (error) {
      this.#enqueue(task);
      throw error;
    }
    return true;
  }

  /**
   * Starts nothing more; waits `graceSeconds` for running jobs, then puts the rest back to the front of the queue. A
   * job that does not end when it is told to is left to itself: all that it still does is ignored.
   */
  async stop(graceSeconds: number): Promise<void> {
    this.#started = false;
    clearTimeout(this.#pauseTimer);
    const jobs = [...this.#running.values()];
    const ended = Promise.all(jobs.map((job) => job.ended));
    await within(graceSeconds, ended);
    for (const job of jobs) job.controller.abort(new JobAborted("shutdown", "the server is stopping"));
    this.#stopping.abort();
    await within(ABORT_SECONDS, ended);
    for (const job of this.#running.values()) {
      job.isAbandoned = true;
      await this.#recordAborted(job, job.controller.signal.reason).catch((err: unknown) => {
        this.log.error({ ...named(job.task), err }, "the end of a task could not be recorded");
      });
    }
  }

  #enqueue(task: WaitingTask): void {
    const index = this.#waiting.findLastIndex(({ sequence }) => sequence < task.sequence);
    this.#waiting.splice(index + 1, 0, task);
  }

  #dequeue(id: string): WaitingTask | undefined {
    const index = this.#waiting.findIndex((task) => task.id === id);
    if (index < 0) return undefined;
    const [task] = this.#waiting.splice(index, 1);
    this.events.emit("moved");
    return task;
  }

  #startNext(): void {
    while (this.#started && this.#pauseTimer === undefined && this.#running.size < this.options.workers) {
      const task = this.#takeNext();
      if (task === undefined) return;
      const job: RunningJob = {
        task,
        controller: new AbortController(),
        progress: { value: 0.01, stage: "running", text: "" },
        ended: Promise.resolve(),
        failure: null,
        onFailure: [],
        isAbandoned: false,
      };
      this.#running.set(task.id, job);
      job.ended = this.#work(job).finally(() => {
        this.#running.delete(task.id);
        this.#startNext();
      });
    }
  }

  /** A task that was interrupted before runs alone: the next interruption is then not another's doing. */
  #takeNext(): WaitingTask | undefined {
    const next = this.#waiting.find(({ isHeld }) => !isHeld);
    if (next === undefined) return undefined;
    const company = [...this.#running.values()].map(({ task }) => task);
    const isSuspect = next.interruptions > 0 || company.some(({ interruptions }) => interruptions > 0);
    return isSuspect && company.length > 0 ? undefined : this.#dequeue(next.id);
  }

  /** For the store takes no changes: begins nothing for a while. */
  #pause(err: StoreError): void {
    if (this.#beginFailures === 0) this.log.error({ err }, "tasks wait until the store can be written again");
    const delayMs = retryDelayMs(this.#beginFailures++);
    this.#pauseTimer ??= setTimeout(() => {
      this.#pauseTimer = undefined;
      this.#startNext();
    }, delayMs).unref();
  }

  async #work(job: RunningJob): Promise<void> {
    const task = await this.#begin(job);
    if (task === null) return;
    const startedMs = performance.now();
    const timeoutSeconds = this.options.jobTimeoutSeconds;
    const timeout = new JobAborted("timeout", `the job ran longer than ${timeoutSeconds} seconds`);
    const timer =
      timeoutSeconds > 0
        ? setTimeout(() => job.controller.abort(timeout), Math.min(timeoutSeconds * 1000, MAX_TIMER_MS))
        : undefined;
    const outcome = await this.#outcome(task, job);
    clearTimeout(timer);
    if (job.isAbandoned || outcome === null) return;
    if (!job.controller.signal.aborted || outcome.state === "succeeded") {
      this.statistics.jobTook((performance.now() - startedMs) / 1000);
    }
    await this.#recordEnd(job, outcome);
  }

  /** Null where the task could not begin; it then waits again, or has failed for good. */
  async #begin(job: RunningJob): Promise<Task | null> {
    this.statistics.moved("queued", "running");
    try {
      const startedAtMs = Date.now();
      const task = await this.#change(job.task.id, (current) => ({
        ...current,
        state: "running",
        startedAtMs,
      }));
      this.log.info(named(job.task), "task begins");
      this.events.emit("progress", task.id, job.progress, task.requestId);
      if (this.#beginFailures > 0) this.log.info("the store can be written again");
      this.#beginFailures = 0;
      return task;
    } catch (error) {
      this.statistics.moved("running", "queued");
      if (error instanceof StoreError) {
        this.#enqueue(job.task);
        this.#pause(error);
      } else {
        this.log.error({ ...named(job.task), err: error }, "a task could not begin and is left out");
      }
      return null;
    }
  }

  /**
   * How the job ended, in terms of its task; null where it found the device lost. The process is then to end, and its next
   * start finds the task interrupted.
   */
  async #outcome(task: Task, job: RunningJob): Promise<(Partial<Task> & { state: TaskState }) | null> {
    const { signal } = job.controller;
    try {
      signal.throwIfAborted();
      const report = (progress: TaskProgress) => {
        job.progress = progress;
        this.events.emit("progress", task.id, progress, task.requestId);
      };
      const result = await this.jobs.run(task, { signal, report });
      return { state: "succeeded", result, progress: 1 };
    } catch (error) {
      const cause: unknown = signal.aborted ? signal.reason : error;
      if (signal.aborted) this.log.info({ ...named(job.task), reason: oneLine(cause) }, "task stopped");
      else this.log.error({ ...named(job.task), err: cause }, "task failed");
      if (isShutdown(cause)) return { state: "queued" };
      if (hasCode(cause, "DEVICE_LOST")) {
        this.#started = false;
        return null;
      }
      if (hasCode(cause, "DISK_FULL") && ++job.task.diskFailures < MAX_DISK_FAILURES)
        return { state: "queued" };
      return { state: "failed", error: oneLine(cause), progress: job.progress.value };
    }
  }

  /** Tries until the store takes it, or the queue stops. */
  async #recordEnd(job: RunningJob, outcome: Partial<Task> & { state: TaskState }): Promise<void> {
    for (let attempt = 0; ; attempt++) {
      try {
        await this.#settle(job, outcome);
        return;
      } catch (error) {
        if (attempt === 0)
          this.log.error({ ...named(job.task), err: error }, "the end of a task cannot be recorded");
        if (!(error instanceof StoreError)) return;
        job.failure = error;
        for (const tell of job.onFailure.splice(0)) tell();
        const isOver = await sleep(retryDelayMs(attempt), false, { signal: this.#stopping.signal }).catch(
          () => true,
        );
        if (isOver || job.isAbandoned) return;
      }
    }
  }

  #recordAborted(job: RunningJob, cause: unknown): Promise<void> {
    if (isShutdown(cause)) return this.#settle(job, { state: "queued" });
    return this.#settle(job, { state: "failed", error: oneLine(cause), progress: job.progress.value });
  }

  async #settle(job: RunningJob, outcome: Partial<Task> & { state: TaskState }): Promise<void> {
    if (outcome.state !== "queued") return this.#finish(job.task.id, "running", outcome);
    await this.#change(job.task.id, (task) => ({ ...task, ...outcome }));
    this.#enqueue(job.task);
    if (job.task.diskFailures > 0) this.#hold(job.task, job.task.diskFailures - 1);
    this.statistics.moved("running", "queued");
    this.events.emit("queued", job.task.id);
  }

  /** @throws where the task is gone, which no task that has not finished may be */
  async #change(id: string, change: (task: Task) => Task): Promise<Task> {
    const task = await this.store.update(id, change);
    if (task === undefined) throw new Error(`task ${id} is no longer in the store`);
    return task;
  }

  async #finish(id: string, from: TaskState, change: Partial<Task> & { state: TaskState }): Promise<void> {
    const finishedAtMs = this.options.clock.nowMs();
    const endedAtMs = Date.now();
    const task = await this.#change(id, (current) => ({ ...current, ...change, finishedAtMs, endedAtMs }));
    this.statistics.moved(from, change.state);
    this.events.emit("ended", task);
    await this.jobs.ended(task).catch((err: unknown) => {
      this.log.error({ task: id, err }, "what belonged to a task could not be removed");
    });
  }
}

/** A task as log lines name it. */
function named({ id, requestId }: WaitingTask): { task: string; request: string | undefined } {
  return { task: id, request: requestId };
}

function isShutdown(cause: unknown): boolean {
  return cause instanceof JobAborted && cause.why === "shutdown";
}

function hasCode(cause: unknown, code: string): boolean {
  return cause instanceof Error && "code" in cause && cause.code === code;
}

/** Resolves once the job has ended. @throws StoreError where its end cannot be recorded yet */
async function endOrFailure(job: RunningJob): Promise<void> {
  const failed = new Promise<void>((resolve) => {
    if (job.failure === null) job.onFailure.push(resolve);
    else resolve();
  });
  let hasEnded = false;
  const ended = job.ended.then(() => {
    hasEnded = true;
  });
  await Promise.race([ended, failed]);
  if (!hasEnded && job.failure !== null) throw job.failure;
}

/** Waits for the promise, but no longer than this. */
async function within(seconds: number, promise: Promise<unknown>): Promise<void> {
  const over = new AbortController();
  const timeout = sleep(seconds * 1000, undefined, { signal: over.signal }).catch(() => {});
  await Promise.race([promise, timeout]);
  over.abort();
}

function retryDelayMs(attempt: number): number {
  return Math.min(FIRST_RETRY_MS * 2 ** attempt, MAX_RETRY_MS);
}

/** The message of a failure without a stack trace or line breaks. */
function oneLine(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  return message.split("\n", 1)[0] || "the job failed without a message";
}
