/** The queue of a fleet on the gateway side. Any gateway accepts, shows and cancels any task. */
import { EventEmitter } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { v4 as uuid } from "uuid";
import type { Logger } from "../../system/log.js";
import { HttpError } from "../errors.js";
import { CALLBACK_LEASE_MS, isCallbackPending } from "../queue/callback-schedule.js";
import { type CatalogFilter, hasEnded, type TaskSummary } from "../queue/catalog.js";
import { retryAfterSeconds } from "../queue/rules.js";
import type { Task } from "../queue/store.js";
import {
  type LiveState,
  type QueueEvents,
  QueueFullError,
  type QueueStatistics,
  type TaskOrigin,
  type TaskQueue,
} from "../queue/task-queue.js";
import { INITIAL_PROGRESS, logFields, newTask } from "../queue/task-run.js";
import type { GenerationRequest } from "../request/schema.js";
import type { Fleet } from "./fleet.js";
import { scheduleCallback, takeCallbacks } from "./fleet-callbacks.js";
import type { FleetWorker } from "./fleet-worker.js";
import { type FleetEvent, parseJson, progressSchema } from "./messages.js";
import { redisKey } from "./redis.js";
import { isTaskQueueName } from "./workers.js";

/**
 * Interval at which a gateway checks whether a cancelled task has ended, in case the message about the end is
 * lost.
 */
const CANCEL_POLL_MS = 1_000;
/** Minimum interval of "positionsChanged" events. */
const POSITIONS_INTERVAL_MS = 100;
/** A gateway that did the clean-up keeps the lease for this time. */
const CLEAN_UP_LEASE_MS = 4 * 60_000;
const CANCELLED = "Cancelled by user";

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
    const id = uuid();
    const place = await fleet.store.reserve(id, origin.client ?? "", this.options.capacity);
    if (place === null) throw await this.#full();
    const { position, createdAtMs } = place;
    const task = { ...newTask(request, origin, place), id, createdAtMs, route };
    if (isCallbackPending(task)) await this.scheduleCallback(id, CALLBACK_LEASE_MS);
    await fleet.store.add(task).catch(async (error: unknown) => {
      await fleet.store.release(id).catch(() => {});
      throw error;
    });
    await fleet.enqueue(task);
    this.log.info({ ...logFields(task), position }, "task accepted");
    await fleet.publish({ type: "queued", id, route, position });
    return { task, position };
  }

  async submittedAs(key: string): Promise<string | undefined> {
    return (await this.fleet.store.submittedAs(key)) ?? undefined;
  }

  async cancel(id: string): Promise<boolean> {
    const { fleet } = this;
    let wasWaiting = false;
    const task = await fleet.store.update(id, (current, finishedAtMs) => {
      wasWaiting = current.state === "queued";
      if (hasEnded(current.state)) return current;
      if (!wasWaiting) return { ...current, isCancelled: true };
      return { ...current, state: "failed", error: CANCELLED, finishedAtMs, endedAtMs: finishedAtMs };
    });
    if (task === undefined) return false;
    if (wasWaiting) {
      await this.#endWaiting(task);
      return true;
    }
    if (hasEnded(task.state)) return false;
    return (await this.#waitUntilEnded(id)).error === CANCELLED;
  }

  async #endWaiting(task: Task): Promise<void> {
    // A worker may take the job before it is removed, but then finds in the record that the task has ended.
    await this.fleet.redis.attempt(() => this.fleet.queueOf(task.route ?? "").remove(task.id));
    await this.options.cleanUp(task).catch((err: unknown) => {
      this.log.error({ task: task.id, err }, "could not clean up after a task");
    });
  }

  async #waitUntilEnded(id: string): Promise<Task> {
    for (;;) {
      const ended = new AbortController();
      const onEvent = (event: FleetEvent) => {
        if (event.type === "ended" && event.id === id) ended.abort();
      };
      this.fleet.events.on("event", onEvent);
      try {
        await this.fleet.publish({ type: "cancel", id });
        const task = await this.fleet.store.get(id);
        if (task === undefined || hasEnded(task.state)) return task as Task;
        await sleep(CANCEL_POLL_MS, undefined, { signal: ended.signal }).catch(() => {});
      } finally {
        this.fleet.events.off("event", onEvent);
      }
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
      const parsed = progressSchema.safeParse(progress === null ? null : parseJson(progress));
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

  update(id: string, change: (task: Task) => Task): Promise<Task | undefined> {
    return this.fleet.store.update(id, change);
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
    const { redis, quarantine } = this.fleet;
    const texts = await redis.attempt(() => redis.lrange(redisKey("seconds"), 0, -1));
    const isDuration = (text: string) =>
      text !== "" && Number(text) >= 0 && Number(text) < Number.POSITIVE_INFINITY;
    await quarantine.moveEntries(
      redisKey("seconds"),
      texts.filter((text) => !isDuration(text)).map((text) => [text]),
    );
    const seconds = texts.filter(isDuration).map(Number);
    if (seconds.length === 0) return this.options.averageJobSeconds;
    return seconds.reduce((sum, value) => sum + value, 0) / seconds.length;
  }

  finished(): Promise<TaskSummary[]> {
    return this.fleet.store.finished();
  }

  remove(id: string): Promise<TaskSummary | undefined> {
    return this.fleet.store.remove(id);
  }

  async runCleanUp(work: (nowMs: number) => Promise<void>): Promise<void> {
    if (!(await this.fleet.tryAcquireLease("clean-up", CLEAN_UP_LEASE_MS))) return;
    await this.fleet.store.dropForeignEntries();
    await work(await this.fleet.redis.timeMs());
  }

  async #onEvent(event: FleetEvent): Promise<void> {
    const { type, id } = event;
    if (type === "cancel") return;
    if (type === "ended") {
      const task = await this.fleet.store.get(id);
      this.#open.delete(id);
      return this.#emitEnd(task);
    }
    const isNew = !this.#open.has(id);
    this.#open.add(id);
    if (type === "progress") this.events.emit("progress", id, event.progress, event.request);
    else this.events.emit("queued", id, event.position ?? (await this.live(id)).position);
    if (type === "queued" || isNew || event.progress.stage === INITIAL_PROGRESS.stage)
      this.#emitPositionsChanged();
  }

  #emitEnd(task: Task | undefined): void {
    if (task !== undefined && hasEnded(task.state)) this.events.emit("ended", task);
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
      if (this.#open.delete(id)) this.#emitEnd(task);
    }
  }
}
