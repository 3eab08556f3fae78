import type { Logger } from "pino";
import { v4 as uuid } from "uuid";
import type { TaskProgress } from "./progress.js";
import type { GenerationRequest } from "./request/schema.js";
import type { JobStatistics } from "./statistics.js";
import type { SongResult, Task, TaskState, TaskStore } from "./store.js";

/** A task that was running when the process died this often is not tried again. */
const MAX_INTERRUPTIONS = 3;
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
}

interface RunningJob {
  controller: AbortController;
  progress: TaskProgress;
  ended: Promise<void>;
}

/** First in, first out. Every change of state is in the store before anyone is told of it. */
export class TaskQueue {
  #waiting: string[] = [];
  /** Accepted tasks on their way into the store. */
  #admitting = 0;
  readonly #running = new Map<string, RunningJob>();
  #nextSequence = 1;
  #started = false;

  constructor(
    private readonly store: TaskStore,
    private readonly jobs: Jobs,
    private readonly statistics: JobStatistics,
    private readonly options: QueueOptions,
    private readonly log: Logger,
  ) {}

  /** Takes up what the store holds; call once, before anything else. A task found running will start again. */
  async recover(): Promise<void> {
    const queued: Task[] = [];
    for await (const task of this.store.scan()) {
      this.#nextSequence = Math.max(this.#nextSequence, task.sequence + 1);
      const current = task.state === "running" ? await this.#takeUpInterrupted(task.id) : task;
      this.statistics.moved(null, current.state);
      if (current.state === "queued") queued.push(current);
    }
    this.#waiting = queued.sort((a, b) => a.sequence - b.sequence).map((task) => task.id);
  }

  /** Starts the workers. */
  start(): void {
    this.#started = true;
    this.#startNext();
  }

  async #takeUpInterrupted(id: string): Promise<Task> {
    const task = await this.#change(id, (current) => {
      const interruptions = current.interruptions + 1;
      if (interruptions < MAX_INTERRUPTIONS) return { ...current, state: "queued", interruptions };
      const error = `the server stopped ${interruptions} times while this task ran; it is not tried again`;
      return { ...current, state: "failed", interruptions, finishedAtMs: Date.now(), error };
    });
    this.log.warn({ task: id, interruptions: task.interruptions, state: task.state }, "task was interrupted");
    return task;
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
  async submit(request: GenerationRequest): Promise<{ task: Task; position: number }> {
    this.assertRoom();
    const task: Task = {
      id: uuid(),
      sequence: this.#nextSequence++,
      state: "queued",
      createdAtMs: Date.now(),
      finishedAtMs: null,
      interruptions: 0,
      request,
      result: null,
      error: null,
      progress: 0,
    };
    this.#admitting++;
    const position = this.waitingCount;
    try {
      await this.store.add(task);
    } finally {
      this.#admitting--;
    }
    this.#waiting.push(task.id);
    this.statistics.moved(null, "queued");
    this.#startNext();
    return { task, position };
  }

  /** Of a running task; undefined for any other. */
  progressOf(id: string): TaskProgress | undefined {
    return this.#running.get(id)?.progress;
  }

  /** 1 for the next to start; undefined for a task that does not wait. */
  positionOf(id: string): number | undefined {
    const index = this.#waiting.indexOf(id);
    return index < 0 ? undefined : index + 1;
  }

  /** Fails a waiting or running task with "Cancelled by user". False where there is nothing to cancel. */
  async cancel(id: string): Promise<boolean> {
    const reason = new JobAborted("cancelled", "Cancelled by user");
    const job = this.#running.get(id);
    if (job !== undefined) {
      job.controller.abort(reason);
      await job.ended;
      return true;
    }
    const index = this.#waiting.indexOf(id);
    if (index < 0) return false;
    this.#waiting.splice(index, 1);
    await this.#finish(id, "queued", { state: "failed", error: reason.message });
    return true;
  }

  /** Starts nothing more; waits `graceSeconds` for running jobs, then puts the rest back to the front of the queue. */
  async stop(graceSeconds: number): Promise<void> {
    this.#started = false;
    const jobs = [...this.#running.values()];
    const ended = Promise.all(jobs.map((job) => job.ended));
    const grace = setTimeout(() => {
      for (const job of jobs) job.controller.abort(new JobAborted("shutdown", "the server is stopping"));
    }, graceSeconds * 1000);
    await ended;
    clearTimeout(grace);
  }

  #startNext(): void {
    while (this.#started && this.#running.size < this.options.workers) {
      const id = this.#waiting.shift();
      if (id === undefined) return;
      const controller = new AbortController();
      const job: RunningJob = {
        controller,
        progress: { value: 0.01, stage: "running", text: "" },
        ended: Promise.resolve(),
      };
      this.#running.set(id, job);
      job.ended = this.#work(id, job).finally(() => {
        this.#running.delete(id);
        this.#startNext();
      });
    }
  }

  async #work(id: string, job: RunningJob): Promise<void> {
    const startedMs = performance.now();
    const timeoutSeconds = this.options.jobTimeoutSeconds;
    const timeout = new JobAborted("timeout", `the job ran longer than ${timeoutSeconds} seconds`);
    const timer =
      timeoutSeconds > 0
        ? setTimeout(() => job.controller.abort(timeout), Math.min(timeoutSeconds * 1000, MAX_TIMER_MS))
        : undefined;
    try {
      const task = await this.#begin(id);
      job.controller.signal.throwIfAborted();
      const result = await this.jobs.run(task, {
        signal: job.controller.signal,
        report: (progress) => {
          job.progress = progress;
        },
      });
      await this.#finish(id, "running", { state: "succeeded", result, progress: 1 });
      this.statistics.jobTook((performance.now() - startedMs) / 1000);
    } catch (error) {
      await this.#stopped(id, job, error, startedMs);
    } finally {
      clearTimeout(timer);
    }
  }

  async #begin(id: string): Promise<Task> {
    this.statistics.moved("queued", "running");
    return this.#change(id, (task) => ({ ...task, state: "running" }));
  }

  /** @throws where the task is gone, which no task that has not finished may be */
  async #change(id: string, change: (task: Task) => Task): Promise<Task> {
    const task = await this.store.update(id, change);
    if (task === undefined) throw new Error(`task ${id} is no longer in the store`);
    return task;
  }

  async #stopped(id: string, job: RunningJob, error: unknown, startedMs: number): Promise<void> {
    const { signal } = job.controller;
    const cause: unknown = signal.aborted ? signal.reason : error;
    try {
      if (cause instanceof JobAborted && cause.why === "shutdown") {
        await this.#change(id, (task) => ({ ...task, state: "queued" }));
        this.#waiting.unshift(id);
        this.statistics.moved("running", "queued");
        return;
      }
      if (signal.aborted) this.log.info({ task: id, reason: oneLine(cause) }, "task stopped");
      else this.log.error({ task: id, err: cause }, "task failed");
      if (!signal.aborted) this.statistics.jobTook((performance.now() - startedMs) / 1000);
      const progress = job.progress.value;
      await this.#finish(id, "running", { state: "failed", error: oneLine(cause), progress });
    } catch (storeError) {
      this.log.error({ task: id, err: storeError }, "the end of a task could not be recorded");
    }
  }

  async #finish(id: string, from: TaskState, change: Partial<Task> & { state: TaskState }): Promise<void> {
    const task = await this.#change(id, (current) => ({ ...current, ...change, finishedAtMs: Date.now() }));
    this.statistics.moved(from, change.state);
    await this.jobs.ended(task).catch((err: unknown) => {
      this.log.error({ task: id, err }, "what belonged to a task could not be removed");
    });
  }
}

/** The message of a failure without a stack trace or line breaks. */
function oneLine(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  return message.split("\n", 1)[0] || "the job failed without a message";
}
