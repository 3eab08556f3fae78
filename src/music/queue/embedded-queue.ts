import { EventEmitter } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import { StoreError } from "../errors.js";
import type { GenerationRequest } from "../request/generation-request.js";
import { CallbackSchedule, isCallbackPending } from "./callback-schedule.js";
import { CatalogedStore, type CatalogFilter, hasEnded, type TaskSummary } from "./catalog.js";
import type { LmdbTaskStore } from "./lmdb-store.js";
import {
  crashMessage,
  FairTurns,
  JobStatistics,
  MAX_CRASHES,
  MAX_DISK_FAILURES,
  MAX_END_FAILURES,
  requeueDelayMs,
  retryAfterSeconds,
} from "./rules.js";
import type { StoredTask, Task, TaskState } from "./store.js";
import {
  cancelled,
  type LiveState,
  type QueueEvents,
  QueueFullError,
  type QueueStatistics,
  type TaskOrigin,
  type TaskQueue,
  type TaskRunner,
} from "./task-queue.js";
import {
  hasFreePlace,
  logFields,
  newTask,
  type RunningTask,
  type RunOutcome,
  retryDelayMs,
  stopRuns,
  TaskRun,
} from "./task-run.js";

export interface QueueOptions {
  /** Maximum number of waiting tasks; 0: no limit. */
  capacity: number;
  workers: number;
  /** Maximum duration of a job; 0: no limit. */
  jobTimeoutSeconds: number;
  /** Average job duration that is assumed until the first job ends. */
  averageJobSeconds: number;
  /** Number of latest jobs in the average. */
  averageWindow: number;
  /** Clock for the end times of tasks. */
  clock: QueueClock;
}

interface QueueClock {
  start(newestMs: number | null): Promise<void>;
  nowMs(): number;
  save(): Promise<void>;
}

interface WaitingTask {
  id: string;
  sequence: number;
  /** Tasks with a lower turn start earlier (see `FairTurns`). */
  turn: number;
  interruptions: number;
  requestId: string | undefined;
  /** Number of times that the task's song did not fit on the disk, since the process started. */
  diskFailures: number;
  /** Whether the task is delayed, because it may have crashed the process or its song did not fit on the disk. */
  isHeld: boolean;
}

type EndedRun = Exclude<RunOutcome, { state: "queued" }>;

interface QueueRun extends RunningTask {
  task: WaitingTask;
  /** Rejects if the end of the job cannot be recorded at once. The queue tries again. */
  unrecorded: Promise<never>;
  /** Rejects `unrecorded`. */
  fail: (error: StoreError) => void;
}

/**
 * Queue that runs tasks in this process: first in, first out, with fair turns between clients. A state change
 * is stored before it is published. While the store is not writable, the queue starts no task, and keeps
 * trying to record ended tasks.
 */
export class EmbeddedQueue implements TaskQueue {
  readonly events = new EventEmitter<QueueEvents>();
  readonly isShared = false;
  readonly #store: CatalogedStore;
  readonly #statistics: JobStatistics;
  readonly #turns = new FairTurns();
  readonly #callbacks = new CallbackSchedule();
  /** Waiting tasks, ordered by turn and sequence. */
  readonly #waiting: WaitingTask[] = [];
  /**
   * Tasks that were running when the previous process ended. They are also in `#waiting` until `recover`
   * runs.
   */
  readonly #interrupted: string[] = [];
  /** Number of accepted tasks that are being stored. */
  #admitting = 0;
  readonly #running = new Map<string, QueueRun>();
  #nextSequence = 1;
  #started = false;
  /** Aborted when the queue stops, to end the retries of store writes. */
  readonly #stopping = new AbortController();
  /** Number of consecutive failures to start a task. No task starts while `#pauseTimer` runs. */
  #beginFailures = 0;
  #pauseTimer: NodeJS.Timeout | undefined;

  constructor(
    store: LmdbTaskStore,
    private readonly runner: TaskRunner,
    private readonly options: QueueOptions,
    private readonly log: Logger,
  ) {
    this.#store = new CatalogedStore(store);
    this.#statistics = new JobStatistics(options.averageJobSeconds, options.averageWindow);
  }

  async open(visit: (stored: StoredTask) => void): Promise<void> {
    for await (const stored of this.#store.scan()) {
      visit(stored);
      if (stored.task !== null) this.#track(stored.task);
    }
    await this.options.clock.start(this.#store.finished().at(-1)?.finishedAtMs ?? null);
    await this.#recover();
  }

  #track(task: Task): void {
    const { id, sequence, interruptions, requestId, state, share: client = "", turn = 0 } = task;
    this.#nextSequence = Math.max(this.#nextSequence, sequence + 1);
    if (!hasEnded(state)) {
      this.#turns.record(client, turn);
      this.#enqueue({ id, sequence, turn, interruptions, requestId, diskFailures: 0, isHeld: false });
    }
    if (hasEnded(state) && isCallbackPending(task)) this.#callbacks.resume(task);
    if (state === "running") this.#interrupted.push(id);
    this.#statistics.stateChanged(null, state === "running" ? "queued" : state);
  }

  /** Requeues interrupted tasks. Delays those that were interrupted more than once. */
  async #recover(): Promise<void> {
    for (const id of this.#interrupted.splice(0)) {
      const task = this.#waiting.find((waiting) => waiting.id === id) as WaitingTask;
      task.interruptions++;
      this.log.warn({ ...logFields(task), interruptions: task.interruptions }, "task was interrupted");
      try {
        await this.#recordInterruption(task);
      } catch (err) {
        if (!(err instanceof StoreError)) throw err;
        this.log.warn({ task: id, err }, "could not record and count an interruption of a task");
      }
    }
    for (const task of this.#waiting) {
      if (task.interruptions > 1) this.#hold(task, task.interruptions - 2);
    }
  }

  async #recordInterruption({ id, interruptions }: WaitingTask): Promise<void> {
    if (interruptions < MAX_CRASHES.embedded) {
      await this.#change(id, (task) => ({ ...task, state: "queued", interruptions }));
      return;
    }
    await this.#finish(id, "queued", { state: "failed", interruptions, error: crashMessage(interruptions) });
    this.#dequeue(id);
  }

  /** Delays the task. @param times number of earlier delays of the task; each makes the next one longer */
  #hold(task: WaitingTask, times: number): void {
    task.isHeld = true;
    const release = () => {
      task.isHeld = false;
      this.#startNext();
    };
    setTimeout(release, requeueDelayMs(times)).unref();
  }

  start(): void {
    this.#started = true;
    this.#startNext();
  }

  get #waitingCount(): number {
    return this.#waiting.length + this.#admitting;
  }

  async assertRoom(): Promise<void> {
    this.#assertRoom();
  }

  #assertRoom(): void {
    const { capacity, workers } = this.options;
    if (capacity > 0 && this.#waitingCount >= capacity) {
      throw new QueueFullError(retryAfterSeconds(this.#statistics.averageJobSeconds, workers));
    }
  }

  async submit(
    request: GenerationRequest,
    origin: TaskOrigin = {},
  ): Promise<{ task: Task; position: number }> {
    this.#assertRoom();
    this.#admitting++;
    const sequence = this.#nextSequence++;
    const turn = this.#turns.next(origin.client ?? "");
    const position = this.#waiting.filter((task) => task.turn <= turn).length + this.#admitting;
    const task = newTask(request, origin, { sequence, turn, position });
    try {
      await this.#store.add(task);
    } finally {
      this.#admitting--;
    }
    this.#track(task);
    this.log.info({ ...logFields(task), position }, "task accepted");
    this.events.emit("queued", task.id, this.#positionOf(task.id));
    if (this.#waiting.at(-1)?.id !== task.id) this.events.emit("positionsChanged");
    this.#startNext();
    return { task, position };
  }

  async submittedAs(key: string): Promise<string | undefined> {
    return this.#store.submittedAs(key);
  }

  get(id: string): Promise<Task | undefined> {
    return this.#store.get(id);
  }

  async live(id: string): Promise<LiveState> {
    return { progress: this.#running.get(id)?.job.progress, position: this.#positionOf(id) };
  }

  #positionOf(id: string): number | undefined {
    const index = this.#waiting.findIndex((task) => task.id === id);
    return index < 0 ? undefined : index + 1;
  }

  async page(filter: CatalogFilter): Promise<{ total: number; ids: string[] }> {
    return this.#store.page(filter);
  }

  async update(id: string, change: (task: Task) => Task): Promise<Task | undefined> {
    const task = await this.#store.update(id, change);
    this.events.emit("updated", id);
    return task;
  }

  async finished(): Promise<TaskSummary[]> {
    return this.#store.finished();
  }

  async remove(id: string, prepare?: (task: TaskSummary) => Promise<void>): Promise<TaskSummary | undefined> {
    const summary = this.#store.summary(id);
    if (summary === undefined || !hasEnded(summary.state)) return undefined;
    await prepare?.(summary);
    // Another caller may have removed the task meanwhile.
    if (this.#store.summary(id) === undefined) return undefined;
    await this.#store.remove(id);
    this.#statistics.stateChanged(summary.state, null);
    this.events.emit("updated", id);
    return summary;
  }

  async runCleanUp(work: (nowMs: number) => Promise<void>): Promise<void> {
    await this.options.clock.save();
    await this.#storeKept();
    await work(this.options.clock.nowMs());
  }

  async statistics(): Promise<QueueStatistics> {
    const { counts, averageJobSeconds } = this.#statistics;
    return { counts, waiting: this.#waitingCount, averageJobSeconds };
  }

  async dueCallbacks(max: number): Promise<string[]> {
    return this.#callbacks.take(max);
  }

  async scheduleCallback(id: string, delayMs: number | null): Promise<void> {
    this.#callbacks.set(id, delayMs);
  }

  async cancel(id: string): Promise<boolean> {
    const reason = cancelled();
    const work = this.#running.get(id);
    if (work !== undefined) {
      work.job.controller.abort(reason);
      await Promise.race([work.ended, work.unrecorded]);
      // The task may have ended before the abort, so check its recorded outcome.
      return (await this.#store.get(id))?.error === reason.message;
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

  async stop(graceSeconds: number): Promise<void> {
    this.#started = false;
    clearTimeout(this.#pauseTimer);
    await stopRuns(this.#running, graceSeconds, this.#stopping, this.#settle.bind(this), this.log);
    await this.#storeKept();
    await this.options.clock.save();
  }

  #enqueue(task: WaitingTask): void {
    const index = this.#waiting.findLastIndex((other) => isBefore(other, task));
    this.#waiting.splice(index + 1, 0, task);
  }

  #dequeue(id: string): WaitingTask | undefined {
    const index = this.#waiting.findIndex((task) => task.id === id);
    if (index < 0) return undefined;
    const [task] = this.#waiting.splice(index, 1);
    this.events.emit("positionsChanged");
    return task;
  }

  #startNext(): void {
    const hasPlace = () => hasFreePlace(this.#running.values(), this.options.workers);
    while (this.#started && this.#pauseTimer === undefined && hasPlace()) {
      const task = this.#takeNext();
      if (task === undefined) return;
      let fail: QueueRun["fail"] = () => {};
      const unrecorded = new Promise<never>((_resolve, reject) => {
        fail = reject;
      });
      unrecorded.catch(() => {});
      const ended = Promise.resolve();
      const work: QueueRun = { task, job: new TaskRun(), ended, unrecorded, fail, isAbandoned: false };
      this.#running.set(task.id, work);
      this.#turns.started(task.turn);
      work.ended = this.#work(work).finally(() => {
        this.#running.delete(task.id);
        this.#startNext();
      });
    }
  }

  /**
   * Returns the next task to start, if any. A previously interrupted task runs alone, so that its crash interrupts
   * no other.
   */
  #takeNext(): WaitingTask | undefined {
    const next = this.#waiting.find(({ isHeld }) => !isHeld);
    if (next === undefined) return undefined;
    const runningTasks = [...this.#running.values()].map(({ task }) => task);
    const isSuspect = next.interruptions > 0 || runningTasks.some(({ interruptions }) => interruptions > 0);
    return isSuspect && runningTasks.length > 0 ? undefined : this.#dequeue(next.id);
  }

  /**
   * Returns the next `count` waiting tasks, to be planned together with a running task. Skips tasks that may have
   * crashed the process; returns none while such a task runs.
   */
  async #tasksToPlanAhead(count: number): Promise<Task[]> {
    const isSuspect = ({ interruptions }: WaitingTask) => interruptions > 0;
    if (!this.#started || [...this.#running.values()].some(({ task }) => isSuspect(task))) return [];
    const next = this.#waiting.filter((task) => !task.isHeld && !isSuspect(task)).slice(0, count);
    const tasks = await Promise.all(next.map(({ id }) => this.#store.get(id).catch(() => undefined)));
    return tasks.filter((task) => task?.state === "queued") as Task[];
  }

  /** Pauses the start of tasks, because the store is not writable. */
  #pause(err: StoreError): void {
    if (this.#beginFailures === 0)
      this.log.error({ err }, "the task store is not writable; no task starts until it is");
    const delayMs = retryDelayMs(this.#beginFailures++);
    this.#pauseTimer ??= setTimeout(() => {
      this.#pauseTimer = undefined;
      this.#startNext();
    }, delayMs).unref();
  }

  async #work(work: QueueRun): Promise<void> {
    const task = await this.#begin(work);
    if (task === null) return;
    const { job } = work;
    const outcome = await job.run(task, this.runner, {
      timeoutSeconds: this.options.jobTimeoutSeconds,
      onProgress: (progress) => this.events.emit("progress", task.id, progress, task.requestId),
      onPlaceFreed: () => this.#startNext(),
      waitingTasks: (count) => this.#tasksToPlanAhead(count),
      log: this.log,
    });
    // Null means that the GPU is lost. Start no more tasks: the process is about to exit.
    if (outcome === null) this.#started = false;
    if (work.isAbandoned || outcome === null) return;
    if (job.seconds !== null) this.#statistics.jobFinished(job.seconds);
    const isDiskFull = outcome.state === "queued" && outcome.why === "disk-full";
    if (isDiskFull && ++work.task.diskFailures >= MAX_DISK_FAILURES) {
      await this.#recordEnd(work, job.failed(outcome.cause));
    } else await this.#recordEnd(work, outcome);
  }

  /**
   * Records that the task is running, and returns the task. Returns null if the record cannot be written: the
   * task is then requeued or, if its record is unusable, skipped.
   */
  async #begin({ task: waiting, job }: QueueRun): Promise<Task | null> {
    this.#statistics.stateChanged("queued", "running");
    try {
      const startedAtMs = Date.now();
      const task = await this.#change(waiting.id, (current) => ({
        ...current,
        state: "running",
        startedAtMs,
      }));
      if (task.state !== "running") throw new Error(`task ${task.id} has ended`);
      this.log.info(logFields(waiting), "task started");
      this.events.emit("progress", task.id, job.progress, task.requestId);
      if (this.#beginFailures > 0) {
        this.log.info("the task store is writable again");
        await this.#storeKept();
      }
      this.#beginFailures = 0;
      return task;
    } catch (error) {
      this.#statistics.stateChanged("running", "queued");
      if (error instanceof StoreError) {
        this.#enqueue(waiting);
        this.#pause(error);
      } else {
        this.log.error({ ...logFields(waiting), err: error }, "could not start a task; it is skipped");
      }
      return null;
    }
  }

  /**
   * Records the end of a task. Retries while the store cannot be written; after MAX_END_FAILURES the task ends in
   * memory, and is stored later. A task that goes back to the queue is retried until the queue stops.
   */
  async #recordEnd(work: QueueRun, outcome: RunOutcome): Promise<void> {
    for (let attempt = 0; ; attempt++) {
      try {
        await this.#settle(work, outcome);
        return;
      } catch (error) {
        if (attempt === 0)
          this.log.error({ ...logFields(work.task), err: error }, "could not record the end of a task");
        if (!(error instanceof StoreError)) return;
        if (attempt + 1 >= MAX_END_FAILURES && outcome.state !== "queued") {
          return this.#endInMemory(work, outcome, error);
        }
        work.fail(error);
        const isOver = await sleep(retryDelayMs(attempt), false, { signal: this.#stopping.signal }).catch(
          () => true,
        );
        if (isOver || work.isAbandoned) return;
      }
    }
  }

  async #endInMemory({ task }: QueueRun, outcome: EndedRun, { message }: StoreError): Promise<void> {
    this.log.error(
      logFields(task),
      "a task ended only in memory; its end is recorded when the store is writable",
    );
    const warning = `The end of this task could not be recorded: ${message}. If the server stops before, it runs again.`;
    const change =
      outcome.state === "succeeded"
        ? { ...outcome, result: { ...outcome.result, warnings: [...outcome.result.warnings, warning] } }
        : outcome;
    await this.#finish(task.id, "running", change, this.#store.keep.bind(this.#store));
  }

  /** Stores the ends that are only in memory. Never rejects. */
  async #storeKept(): Promise<void> {
    await this.#store.storeKept().catch((err: unknown) => {
      this.log.warn({ err }, "could not record the ends of tasks that are only in memory");
    });
  }

  async #settle({ task }: QueueRun, outcome: RunOutcome): Promise<void> {
    if (outcome.state !== "queued") return this.#finish(task.id, "running", outcome);
    const stored = await this.#change(task.id, (current) => ({ ...current, state: "queued" }));
    if (stored.state !== "queued") return;
    this.#enqueue(task);
    if (task.diskFailures > 0) this.#hold(task, task.diskFailures - 1);
    this.#statistics.stateChanged("running", "queued");
    this.events.emit("queued", task.id, this.#positionOf(task.id));
  }

  /**
   * Changes the record of an unfinished task; a task that has ended stays as it is.
   * @throws Error if the record is missing, which would be a bug
   */
  async #change(
    id: string,
    change: (task: Task) => Task,
    update: CatalogedStore["update"] = this.#store.update.bind(this.#store),
  ): Promise<Task> {
    const task = await update(id, (current) => (hasEnded(current.state) ? current : change(current)));
    if (task === undefined) throw new Error(`task ${id} is missing from the store`);
    return task;
  }

  async #finish(
    id: string,
    from: TaskState,
    change: Partial<Task> & { state: TaskState },
    update?: CatalogedStore["update"],
  ): Promise<void> {
    const finishedAtMs = this.options.clock.nowMs();
    const endedAtMs = Date.now();
    let isEndedHere = false;
    const task = await this.#change(
      id,
      (current) => {
        isEndedHere = true;
        return { ...current, ...change, finishedAtMs, endedAtMs };
      },
      update,
    );
    if (!isEndedHere) return;
    this.#statistics.stateChanged(from, change.state);
    if (isCallbackPending(task)) this.#callbacks.set(id, 0);
    this.events.emit("ended", task);
    await this.runner.cleanUp(task).catch((err: unknown) => {
      this.log.error({ task: id, err }, "could not clean up after a task");
    });
  }
}

function isBefore(a: WaitingTask, b: WaitingTask): boolean {
  return a.turn === b.turn ? a.sequence < b.sequence : a.turn < b.turn;
}
