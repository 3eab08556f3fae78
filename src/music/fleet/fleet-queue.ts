/** The queue of a fleet as a gateway sees it: any gateway accepts, shows and cancels what any worker runs. */
import { EventEmitter } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { v4 as uuid } from "uuid";
import type { Logger } from "../../log.js";
import { type CatalogFilter, hasEnded, type TaskSummary } from "../queue/catalog.js";
import {
  type JobQueue,
  type LiveState,
  type Origin,
  type QueueEvents,
  QueueFullError,
  type QueueStatistics,
} from "../queue/job-queue.js";
import { retryAfterSeconds } from "../queue/rules.js";
import { acceptedTask, BEGUN, named } from "../queue/running-job.js";
import type { Task } from "../queue/store.js";
import type { GenerationRequest } from "../request/schema.js";
import type { Fleet, FleetEvent } from "./fleet.js";
import { taskAdapterIn } from "./fleet-adapters.js";
import type { FleetWorker } from "./fleet-worker.js";
import { keyOf, piped, reached, timeMs } from "./redis.js";
import { underAdapters } from "./workers.js";

/** How often the end of a task is looked up that was told to stop: what is told may be lost. */
const CANCEL_POLL_MS = 1_000;
/** Positions are told at most so often, however many tasks come and go. */
const MOVED_MS = 100;
/** Who swept is the janitor for so long. */
const JANITOR_MS = 4 * 60_000;
const CANCELLED = "Cancelled by user";

export interface FleetQueueOptions {
  /** Tasks that may wait in the whole fleet; 0: no limit. */
  capacity: number;
  /** The average until the first job ends. */
  averageJobSeconds: number;
  /** Told of tasks that this gateway ended. */
  ended(task: Task): Promise<void>;
}

export class FleetQueue implements JobQueue {
  readonly events = new EventEmitter<QueueEvents>();
  readonly isShared = true;
  /** Tasks that this process knows not to have ended. */
  readonly #open = new Set<string>();
  #movedTimer: NodeJS.Timeout | undefined;

  /** @param worker of this process, where it has one */
  constructor(
    private readonly fleet: Fleet,
    private readonly options: FleetQueueOptions,
    private readonly log: Logger,
    private readonly worker: FleetWorker | null = null,
  ) {
    fleet.told.on("event", (event) => {
      this.#hear(event).catch((err: unknown) => log.debug({ err }, "what happened to a task was not read"));
    });
    fleet.told.on("back", () => {
      this.#catchUp().catch((err: unknown) => log.debug({ err }, "what happened meanwhile was not read"));
    });
  }

  /** Nothing is this process' own. */
  async open(): Promise<void> {}

  start(): void {
    this.worker?.start();
  }

  async stop(graceSeconds: number): Promise<void> {
    await this.worker?.stop(graceSeconds);
    clearTimeout(this.#movedTimer);
    this.fleet.told.removeAllListeners();
  }

  async assertRoom(): Promise<void> {
    const { capacity } = this.options;
    if (capacity > 0 && (await this.fleet.store.counts()).queued >= capacity) throw await this.#full();
  }

  async #full(): Promise<QueueFullError> {
    const places = this.fleet.workers.known.reduce((sum, worker) => sum + worker.places, 0);
    return new QueueFullError(retryAfterSeconds(await this.#averageJobSeconds(), Math.max(places, 1)));
  }

  async submit(asked: GenerationRequest, origin: Origin = {}): Promise<{ task: Task; position: number }> {
    const { fleet } = this;
    const { request, model, route: plainRoute } = await fleet.workers.route(asked);
    const id = uuid();
    const place = await fleet.store.reserve(id, origin.share ?? "", this.options.capacity, model);
    if (place === null) throw await this.#full();
    const { position } = place;
    const adapter = taskAdapterIn(place.adapters);
    const route = adapter === null ? plainRoute : underAdapters(plainRoute);
    const task = { ...acceptedTask(request, origin, place), id, route, ...(adapter && { adapter }) };
    const added = fleet.store.add(task).catch(async (error: unknown) => {
      await fleet.store.release(id).catch(() => {});
      throw error;
    });
    // Redis does one after the other; a job without a record is nothing to who takes it.
    await Promise.all([added, fleet.enqueue(task)]);
    this.log.info({ ...named(task), position }, "task accepted");
    await fleet.tell({ type: "queued", id, route, position });
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
      return { ...current, state: "failed", error: CANCELLED, finishedAtMs, endedAtMs: Date.now() };
    });
    if (task === undefined) return false;
    if (wasWaiting) {
      await this.#endWaiting(task);
      return true;
    }
    if (hasEnded(task.state)) return false;
    return (await this.#untilEnded(id)).error === CANCELLED;
  }

  async #endWaiting(task: Task): Promise<void> {
    // A worker that has just taken it finds it ended.
    await reached(() => this.fleet.queueOf(task.route ?? "").remove(task.id));
    await this.options.ended(task).catch((err: unknown) => {
      this.log.error({ task: task.id, err }, "what belonged to a task could not be removed");
    });
  }

  async #untilEnded(id: string): Promise<Task> {
    for (;;) {
      const heard = new AbortController();
      const hear = (event: FleetEvent) => {
        if (event.type === "ended" && event.id === id) heard.abort();
      };
      this.fleet.told.on("event", hear);
      try {
        await this.fleet.tell({ type: "cancel", id });
        const task = await this.fleet.store.get(id);
        if (task === undefined || hasEnded(task.state)) return task as Task;
        await sleep(CANCEL_POLL_MS, undefined, { signal: heard.signal }).catch(() => {});
      } finally {
        this.fleet.told.off("event", hear);
      }
    }
  }

  get(id: string): Promise<Task | undefined> {
    return this.fleet.store.get(id);
  }

  async live(id: string): Promise<LiveState> {
    const { redis } = this.fleet;
    const asked = redis
      .pipeline()
      .hget(keyOf("routes"), id)
      .get(keyOf("progress", id))
      .zscore(keyOf("state", "running"), id)
      .zscore(keyOf("state", "queued"), id)
      .zcard(keyOf("state", "queued"));
    const [route, progress, running, queued, waiting] = (await reached(() => piped(asked))) as [
      string | null,
      string | null,
      string | null,
      string | null,
      number,
    ];
    if (route === null || (running === null && queued === null))
      return { progress: undefined, position: undefined };
    this.#open.add(id);
    const position = await this.#positionOf(route, id);
    if (position !== undefined) return { progress: undefined, position };
    if (running !== null) return { progress: progress === null ? BEGUN : JSON.parse(progress), position };
    // Between its record and its queue, or held back for a while.
    return { progress: undefined, position: waiting };
  }

  /** Among the tasks that the same workers can run. Those that went back come first, the latest of them last. */
  async #positionOf(route: string, id: string): Promise<number | undefined> {
    const queue = this.fleet.queueOf(route);
    const asked = this.fleet.redis
      .pipeline()
      .zrank(queue.toKey("prioritized"), id)
      .llen(queue.toKey("wait"))
      .lpos(queue.toKey("wait"), id);
    const [rank, returned, place] = (await reached(() => piped(asked))) as [
      number | null,
      number,
      number | null,
    ];
    if (rank !== null) return returned + rank + 1;
    return place === null ? undefined : returned - place;
  }

  page(filter: CatalogFilter): Promise<{ total: number; ids: string[] }> {
    return this.fleet.store.page(filter);
  }

  update(id: string, change: (task: Task) => Task): Promise<Task | undefined> {
    return this.fleet.store.update(id, change);
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
    const seconds = await reached(() => this.fleet.redis.lrange(keyOf("seconds"), 0, -1));
    if (seconds.length === 0) return this.options.averageJobSeconds;
    return seconds.reduce((sum, text) => sum + Number(text), 0) / seconds.length;
  }

  finished(): Promise<TaskSummary[]> {
    return this.fleet.store.finished();
  }

  remove(id: string): Promise<TaskSummary | undefined> {
    return this.fleet.store.remove(id);
  }

  async asJanitor(work: (nowMs: number) => Promise<void>): Promise<void> {
    if (await this.fleet.takesOffice("janitor", JANITOR_MS)) await work(await timeMs(this.fleet.redis));
  }

  async #hear(event: FleetEvent): Promise<void> {
    const { type, id } = event;
    if (type === "cancel") return;
    if (type === "ended") return this.#tellEnd(id);
    const isNew = !this.#open.has(id);
    this.#open.add(id);
    if (type === "progress") this.events.emit("progress", id, event.progress, event.request);
    else this.events.emit("queued", id, event.position ?? (await this.live(id)).position);
    if (type === "queued" || isNew || event.progress.stage === BEGUN.stage) this.#tellMoved();
  }

  async #tellEnd(id: string): Promise<void> {
    this.#open.delete(id);
    const task = await this.fleet.store.get(id);
    if (task !== undefined && hasEnded(task.state)) this.events.emit("ended", task);
    this.#tellMoved();
  }

  #tellMoved(): void {
    this.#movedTimer ??= setTimeout(() => {
      this.#movedTimer = undefined;
      this.events.emit("moved");
    }, MOVED_MS).unref();
  }

  async #catchUp(): Promise<void> {
    for (const id of await this.fleet.store.endedAmong([...this.#open])) await this.#tellEnd(id);
  }
}
