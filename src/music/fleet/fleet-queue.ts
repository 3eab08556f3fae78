/** The queue of a fleet on the gateway side. Any gateway accepts, shows and cancels any task. */
import { randomUUID } from "node:crypto";
import { EventEmitter } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "../../system/log.js";
import { HttpError } from "../errors.js";
import { CALLBACK_LEASE_MS, isCallbackPending } from "../queue/callback-schedule.js";
import { type CatalogFilter, hasEnded, type TaskSummary } from "../queue/catalog.js";
import { retryAfterSeconds } from "../queue/rules.js";
import type { Task } from "../queue/store.js";
import {
  cancelled,
  type LiveState,
  type QueueEvents,
  QueueFullError,
  type QueueStatistics,
  type TaskOrigin,
  type TaskQueue,
  UncertainSubmissionError,
} from "../queue/task-queue.js";
import { INITIAL_PROGRESS, logFields, newTask } from "../queue/task-run.js";
import type { GenerationRequest } from "../request/generation-request.js";
import type { Fleet } from "./fleet.js";
import { scheduleCallback, takeCallbacks } from "./fleet-callbacks.js";
import type { FleetWorker } from "./fleet-worker.js";
import { type FleetEvent, parseJson, progressSchema } from "./messages.js";
import { FleetUnreachableError, redisKey } from "./redis.js";
import { isTaskQueueName } from "./workers.js";

/**
 * Interval at which a gateway checks whether a cancelled task has ended, in case the message about the end is
 * lost.
 */
const CANCEL_POLL_MS = 1_000;
/** Redis stores no new task later than this, so that a Redis that hung accepts no task that was already refused. */
const STORE_LIMIT_MS = 8_000;
/** How long a gateway asks whether a task was stored, after the answer of Redis was lost. */
const READ_BACK_MS = 10_000;
const READ_BACK_INTERVAL_MS = 100;
/** Minimum interval of "positionsChanged" events. */
const POSITIONS_INTERVAL_MS = 100;
/** A gateway that did the clean-up keeps the lease for this time. */
const CLEAN_UP_LEASE_MS = 4 * 60_000;

export interface FleetQueueOptions {
  /** Maximum number of waiting tasks in the fleet; 0: no limit. */
  capacity: number;
  /** Assumed average duration of jobs until the first one ends. */
  averageJobSeconds: number;
  /** Cleans up after a waiting task that was cancelled through this gateway. */
  cleanUp(task: Task): Promise<void>;
}

export class FleetQueue implements TaskQueue {
  readonly events = new EventEmitter<QueueEvents>();
  readonly isShared = true;
  /** Unfinished tasks, as far as this process knows. */
  readonly #open = new Set<string>();
  #positionsTimer: NodeJS.Timeout | undefined;

  /** @param worker the worker of this process, if it has one */
  constructor(
    private readonly fleet: Fleet,
    private readonly options: FleetQueueOptions,
    private readonly log: Logger,
    private readonly worker: FleetWorker | null = null,
  ) {
    fleet.events.on("event", (event) => {
      this.#onEvent(event).catch((err: unknown) => log.debug({ err }, "could not handle a task event"));
    });
    fleet.events.on("reconnected", () => {
      this.#catchUp().catch((err: unknown) =>
        log.debug({ err }, "could not check for tasks that ended while disconnected"),
      );
    });
  }

  /** Tasks are in Redis: nothing to load. */
  async open(): Promise<void> {}

  start(): void {
    this.worker?.start();
  }

  async stop(graceSeconds: number): Promise<void> {
    await this.worker?.stop(graceSeconds);
    clearTimeout(this.#positionsTimer);
    this.fleet.events.removeAllListeners();
  }

  async assertRoom(): Promise<void> {
    const { capacity } = this.options;
    if (capacity > 0 && (await this.fleet.store.counts()).queued >= capacity) throw await this.#full();
  }

  async #full(): Promise<QueueFullError> {
    const places = this.fleet.workers.known.reduce((sum, worker) => sum + worker.places, 0);
    return new QueueFullError(retryAfterSeconds(await this.#averageJobSeconds(), Math.max(places, 1)));
  }

  async submit(
    submitted: GenerationRequest,
    origin: TaskOrigin = {},
  ): Promise<{ task: Task; position: number }> {
    const { fleet } = this;
    if (fleet.sharedStore?.fault) throw new HttpError(503, `SVC_STORAGE: ${fleet.sharedStore.fault}`);
    const { request, route } = await fleet.workers.route(submitted);
    const id = randomUUID();
    const place = await fleet.store.reserve(id, origin.client ?? "", this.options.capacity);
    if (place === null) throw await this.#full();
    const { position, createdAtMs } = place;
    try {
      const task = { ...newTask(request, origin, place), id, createdAtMs, route };
      if (isCallbackPending(task)) await this.scheduleCallback(id, CALLBACK_LEASE_MS);
      await this.#store(task);
      this.log.info({ ...logFields(task), position }, "task accepted");
      await this.#enqueue(task, position);
      return { task, position };
    } catch (error) {
      await fleet.store.release(id).catch(() => {});
      throw error;
    }
  }

  /** Stores a new task, which is then accepted. @throws UncertainSubmissionError if Redis does not say whether it did */
  async #store(task: Task): Promise<void> {
    const { store } = this.fleet;
    try {
      await store.add(task, task.createdAtMs + STORE_LIMIT_MS);
    } catch (error) {
      if (!(error instanceof FleetUnreachableError)) throw error;
      // Redis may have stored the task although its answer was lost.
      const isStored = await this.#untilAnswered(async () => (await store.get(task.id)) !== undefined);
      if (isStored === undefined) throw new UncertainSubmissionError(error);
      if (!isStored) throw error;
    }
    this.#open.add(task.id);
  }

  /** Repeats `read` until Redis answers; undefined if it does not answer in time. */
  async #untilAnswered<T>(read: () => Promise<T>): Promise<T | undefined> {
    const sinceMs = performance.now();
    while (performance.now() - sinceMs < READ_BACK_MS) {
      try {
        return await read();
      } catch {
        await sleep(READ_BACK_INTERVAL_MS);
      }
    }
    return undefined;
  }

  /** Hands an accepted task to the workers. If that fails, a server of the fleet does it later (`Fleet.reconcile`). */
  async #enqueue(task: Task & { route: string }, position: number): Promise<void> {
    try {
      await this.fleet.enqueue(task);
      await this.fleet.publish({ type: "queued", id: task.id, route: task.route, position });
    } catch (err) {
      this.log.warn({ ...logFields(task), err }, "could not queue an accepted task yet; it is queued later");
    }
  }

  async submittedAs(key: string): Promise<string | undefined> {
    return (await this.fleet.store.submittedAs(key)) ?? undefined;
  }

  async cancel(id: string): Promise<boolean> {
    for (let wasRunning = false; ; wasRunning = true) {
      const { task, isEndedHere } = await this.#endUnlessHeld(id);
      if (task === undefined) return false;
      if (isEndedHere) {
        await this.#endWaiting(task);
        return true;
      }
      if (hasEnded(task.state)) return wasRunning && task.error === cancelled().message;
      await this.#askToCancel(id);
    }
  }

  /** Ends a task that no worker holds. A task that a worker holds is marked, for this worker and the next one. */
  async #endUnlessHeld(id: string): Promise<{ task: Task | undefined; isEndedHere: boolean }> {
    const { store } = this.fleet;
    const found = await store.get(id);
    const isHeld = found?.state === "running" && (await this.fleet.isLeased(found));
    let isEndedHere = false;
    const task = await store.update(id, (current, finishedAtMs) => {
      isEndedHere = current.state === "queued" || (!isHeld && current.claim === found?.claim);
      if (hasEnded(current.state)) isEndedHere = false;
      if (hasEnded(current.state) || (!isEndedHere && current.isCancelled)) return current;
      if (!isEndedHere) return { ...current, isCancelled: true };
      const ended = { state: "failed", finishedAtMs, endedAtMs: finishedAtMs, claim: undefined } as const;
      return { ...current, ...ended, error: cancelled().message };
    });
    return { task, isEndedHere };
  }

  /** Removes the job and the uploads of a cancelled task. A worker that takes the job finds that the task has ended. */
  async #endWaiting(task: Task): Promise<void> {
    const works = [
      () => this.fleet.redis.attempt(() => this.fleet.queueOf(task.route ?? "").remove(task.id)),
      () => this.options.cleanUp(task),
    ];
    for (const work of works) {
      await work().catch((err: unknown) => {
        this.log.error({ task: task.id, err }, "could not clean up after a task");
      });
    }
  }

  /** Tells the worker of a task to abort it, and waits a moment for the end. */
  async #askToCancel(id: string): Promise<void> {
    const ended = new AbortController();
    const onEvent = (event: FleetEvent) => {
      if (event.type === "ended" && event.id === id) ended.abort();
    };
    this.fleet.events.on("event", onEvent);
    try {
      await this.fleet.publish({ type: "cancel", id });
      await sleep(CANCEL_POLL_MS, undefined, { signal: ended.signal }).catch(() => {});
    } finally {
      this.fleet.events.off("event", onEvent);
    }
  }

  get(id: string): Promise<Task | undefined> {
    return this.fleet.store.get(id);
  }

  async live(id: string): Promise<LiveState> {
    const [route, progress, running, queued, waiting] = (await this.fleet.redis.batch((pipeline) =>
      pipeline
        .hget(redisKey("routes"), id)
        .get(redisKey("progress", id))
        .zscore(redisKey("state", "running"), id)
        .zscore(redisKey("state", "queued"), id)
        .zcard(redisKey("state", "queued")),
    )) as [string | null, string | null, string | null, string | null, number];
    if (route === null || (running === null && queued === null))
      return { progress: undefined, position: undefined };
    this.#open.add(id);
    const position = isTaskQueueName(route) ? await this.#positionOf(route, id) : undefined;
    if (position !== undefined) return { progress: undefined, position };
    if (running !== null) {
      const parsed = progressSchema.safeParse(parseJson(progress ?? ""));
      return { progress: parsed.data ?? INITIAL_PROGRESS, position };
    }
    // The job of the task is not in the queue yet, or it is delayed.
    return { progress: undefined, position: waiting };
  }

  /** Returns the position of a task in its queue. Requeued tasks come first, in the order of their return. */
  async #positionOf(route: string, id: string): Promise<number | undefined> {
    const queue = this.fleet.queueOf(route);
    const [rank, returned, place] = (await this.fleet.redis.batch((pipeline) =>
      pipeline.zrank(queue.toKey("prioritized"), id).llen(queue.toKey("wait")).lpos(queue.toKey("wait"), id),
    )) as [number | null, number, number | null];
    if (rank !== null) return returned + rank + 1;
    return place === null ? undefined : returned - place;
  }

  page(filter: CatalogFilter): Promise<{ total: number; ids: string[] }> {
    return this.fleet.store.page(filter);
  }

  async update(id: string, change: (task: Task) => Task): Promise<Task | undefined> {
    const task = await this.fleet.store.update(id, change);
    await this.#publishUpdate(id);
    return task;
  }

  /** Other gateways then show the change at once; without the message they show it with the next read. */
  async #publishUpdate(id: string): Promise<void> {
    await this.fleet
      .publish({ type: "updated", id })
      .catch((err: unknown) => this.log.debug({ task: id, err }, "could not publish a change of a task"));
  }

  dueCallbacks(max: number): Promise<string[]> {
    return takeCallbacks(this.fleet.redis, max);
  }

  scheduleCallback(id: string, delayMs: number | null): Promise<void> {
    return scheduleCallback(this.fleet.redis, id, delayMs);
  }

  async statistics(): Promise<QueueStatistics> {
    const counts = await this.fleet.store.counts();
    const averageJobSeconds = await this.#averageJobSeconds();
    const workers = (await this.fleet.workers.refresh()).map(
      ({ payload_versions: _, models, ...status }) => ({
        ...status,
        models: models.map(({ name, slot, is_loaded }) => ({ name, slot, is_loaded })),
      }),
    );
    return { counts, waiting: counts.queued, averageJobSeconds, workers };
  }

  async #averageJobSeconds(): Promise<number> {
    const { redis } = this.fleet;
    const texts = await redis.attempt(() => redis.lrange(redisKey("seconds"), 0, -1));
    const seconds = texts.map(Number).filter(Number.isFinite);
    if (seconds.length === 0) return this.options.averageJobSeconds;
    return seconds.reduce((sum, value) => sum + value, 0) / seconds.length;
  }

  finished(): Promise<TaskSummary[]> {
    return this.fleet.store.finished();
  }

  async remove(id: string, prepare?: (task: TaskSummary) => Promise<void>): Promise<TaskSummary | undefined> {
    const summary = await this.fleet.store.remove(id, prepare);
    if (summary !== undefined) await this.#publishUpdate(id);
    return summary;
  }

  async runCleanUp(work: (nowMs: number) => Promise<void>): Promise<void> {
    if (!(await this.fleet.tryAcquireLease("clean-up", CLEAN_UP_LEASE_MS))) return;
    await work(await this.fleet.redis.timeMs());
  }

  async #onEvent(event: FleetEvent): Promise<void> {
    const { type, id } = event;
    if (type === "cancel") return;
    if (type === "updated") {
      this.events.emit("updated", id);
      return;
    }
    if (type === "ended") {
      const task = await this.fleet.store.get(id);
      this.#open.delete(id);
      return this.#emitEnd(id, task);
    }
    const isNew = !this.#open.has(id);
    this.#open.add(id);
    if (type === "progress") this.events.emit("progress", id, event.progress, event.request);
    else this.events.emit("queued", id, event.position ?? (await this.live(id)).position);
    if (type === "queued" || isNew || event.progress.stage === INITIAL_PROGRESS.stage)
      this.#emitPositionsChanged();
  }

  #emitEnd(id: string, task: Task | undefined): void {
    if (task === undefined) this.events.emit("removed", id);
    else if (hasEnded(task.state)) this.events.emit("ended", task);
    this.#emitPositionsChanged();
  }

  #emitPositionsChanged(): void {
    this.#positionsTimer ??= setTimeout(() => {
      this.#positionsTimer = undefined;
      this.events.emit("positionsChanged");
    }, POSITIONS_INTERVAL_MS).unref();
  }

  async #catchUp(): Promise<void> {
    for (const id of await this.fleet.store.endedAmong([...this.#open])) {
      const task = await this.fleet.store.get(id);
      if (this.#open.delete(id)) this.#emitEnd(id, task);
    }
  }
}
