/** What the processes of a fleet share through Redis: tasks, BullMQ queues and messages. */
import { EventEmitter } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { type Job, type JobType, Queue, type QueueOptions } from "bullmq";
import type { Redis } from "ioredis";
import { ConfigError } from "../../system/config-error.js";
import type { Logger } from "../../system/log.js";
import { StoreError } from "../errors.js";
import { hasEnded } from "../queue/catalog.js";
import type { Task } from "../queue/store.js";
import { FleetStore } from "./fleet-store.js";
import { type FleetEvent, MessageReader } from "./messages.js";
import { Quarantine } from "./quarantine.js";
import { connectRedis, type FleetRedis, isDataFault, redisKey } from "./redis.js";
import type { SharedStore } from "./shared-store.js";
import { isTaskQueueName, RECORD_VERSION, Workers } from "./workers.js";

/**
 * A worker that does not renew its lease for this time loses its task. The task goes to the front of its queue, and
 * its next worker counts an interruption (`MAX_CRASHES`). The old worker aborts the task when it notices the loss.
 */
const LEASE_MS = 10_000;
/** Number of checks for expired leases per lease time. */
const CHECKS_PER_LEASE = 3;
/** Interval of checks for accepted tasks that are in no queue, because their gateway died or Redis lost data. */
const RECONCILE_MS = 30_000;
/** A task that has been in no queue for less than this time may still be on its way into one. */
const SUBMISSION_MS = 5_000;
/** After an inspection of all keys finds no damage, the next inspection starts no sooner than this. */
const INSPECT_INTERVAL_MS = 100;
/** Interval at which the connection for messages asks for an answer, so that a dead one is noticed and replaced. */
const PING_MS = 10_000;
/** Disables BullMQ's own limit of attempts; `queue/rules.ts` has the limits. */
const UNLIMITED = 1_000_000;

/** Payload of a job. Workers read the task itself from Redis, by the job's id. */
export interface FleetJobData {
  version: number;
}
export type FleetJob = Job<FleetJobData, null, string>;

/**
 * Closes an object of BullMQ and calls `forget` if its first command fails, for example because Redis hangs. BullMQ would
 * reject all later commands of the object, too.
 */
export function onceBroken(
  object: { waitUntilReady(): Promise<unknown>; close(): Promise<void> },
  forget: () => void,
): void {
  object.waitUntilReady().catch(() => {
    forget();
    object.close().catch(() => {});
  });
}

interface FleetEvents {
  event: [FleetEvent];
  /** Emitted when the command or message connection is restored. Messages during the outage were missed. */
  reconnected: [];
}

export class Fleet {
  readonly quarantine: Quarantine;
  readonly store: FleetStore;
  readonly workers: Workers;
  /** Check of the shared storage; set when the process has joined the fleet. */
  sharedStore: SharedStore | null = null;
  readonly events = new EventEmitter<FleetEvents>().setMaxListeners(0);
  readonly #queues = new Map<string, Queue<FleetJobData, null, string>>();
  readonly #listener: Redis;
  #readySinceMs = performance.now();
  #recoveryTimer: NodeJS.Timeout | undefined;
  #pingTimer: NodeJS.Timeout | undefined;
  /** Resolves after the last requested inspection of all Redis keys. At most one runs and one waits. */
  #inspections: Promise<void> = Promise.resolve();
  #nextInspection: Promise<void> | undefined;
  #foundNothingAtMs = Number.NEGATIVE_INFINITY;
  #restoring: Promise<void> = Promise.resolve();
  readonly #closing = new AbortController();

  private constructor(
    readonly redis: FleetRedis,
    preferredModel: string,
    readonly log: Logger,
    readonly leaseMs: number,
  ) {
    this.quarantine = new Quarantine(redis, log);
    this.store = new FleetStore(redis, this.quarantine);
    this.workers = new Workers(redis, this.quarantine, preferredModel, log);
    redis.repair = () => this.#repair();
    this.#listener = redis.duplicate();
    this.#listener.on("error", (err: Error) => log.debug({ err }, "the connection for messages failed"));
    redis.on("ready", () => {
      this.#readySinceMs = performance.now();
      this.events.emit("reconnected");
    });
  }

  /** @throws ConfigError if Redis does not answer */
  static async open(url: string, preferredModel: string, log: Logger, leaseMs = LEASE_MS): Promise<Fleet> {
    const redis = connectRedis(url, log);
    const fleet = new Fleet(redis, preferredModel, log, leaseMs);
    let reason = "";
    redis.once("error", ({ message }: Error) => {
      reason = message;
    });
    try {
      await redis.connect();
      await fleet.#listen();
      await fleet.workers.watch();
    } catch (error) {
      await fleet.close();
      const { host } = new URL(url);
      const why = reason || (error as Error).message;
      throw new ConfigError("SVC_REDIS_URL", `SVC_REDIS_URL: Redis at ${host} cannot be used: ${why}`);
    }
    fleet.#recoveryTimer = setInterval(() => void fleet.#recoverTasks(), fleet.#recoveryIntervalMs).unref();
    return fleet;
  }

  get #recoveryIntervalMs(): number {
    return Math.floor(this.leaseMs / CHECKS_PER_LEASE);
  }

  async #listen(): Promise<void> {
    const listener = this.#listener;
    await listener.connect();
    const subscribe = () => listener.subscribe(this.redis.eventsChannel);
    await subscribe();
    const reader = new MessageReader(this.log);
    listener.on("message", (channel, text) => {
      const event = reader.read(channel, text);
      if (event === null) return;
      if (event.type !== "workers") this.events.emit("event", event);
      else
        this.workers.refresh().catch((err: unknown) => this.log.debug({ err }, "could not list the workers"));
    });
    // Wait until Redis has confirmed the subscription, so that no message after "reconnected" is missed.
    listener.on("ready", () => {
      subscribe().then(
        () => this.events.emit("reconnected"),
        (err: unknown) => this.log.debug({ err }, "could not subscribe to messages again"),
      );
    });
    this.#pingTimer = setInterval(() => void listener.ping().catch(() => {}), PING_MS).unref();
  }

  async publish(event: FleetEvent): Promise<void> {
    await this.redis.attempt(() => this.redis.publish(this.redis.eventsChannel, JSON.stringify(event)));
  }

  queueOf(route: string): Queue<FleetJobData, null, string> {
    const known = this.#queues.get(route);
    if (known !== undefined) return known;
    // BullMQ's script for stalled jobs reads these options of the queue, although only WorkerOptions declares them.
    const stalledOptions = { maxStalledCount: UNLIMITED, stalledInterval: this.#recoveryIntervalMs };
    const options: QueueOptions = { ...this.bullOptions(), skipMetasUpdate: true, ...stalledOptions };
    const queue = new Queue<FleetJobData, null, string>(route, options);
    queue.on("error", (err) => this.noteQueueError(err));
    this.#queues.set(route, queue);
    onceBroken(queue, () => this.#queues.delete(route));
    return queue;
  }

  bullOptions() {
    return { connection: this.redis, prefix: redisKey("queue") };
  }

  /** Logs an error that BullMQ emitted as an event, and repairs foreign data. */
  noteQueueError(err: Error): void {
    this.log.debug({ err }, "a BullMQ command failed");
    if (isDataFault(err))
      this.#repair().catch((err: unknown) =>
        this.log.debug({ err }, "could not repair the fleet's Redis keys"),
      );
  }

  /**
   * Moves foreign data to quarantine and rebuilds the indices. Calls that arrive before the next inspection
   * starts share it.
   */
  #repair(): Promise<void> {
    this.#nextInspection ??= this.#inspections.then(() => {
      this.#nextInspection = undefined;
      return this.#inspect();
    });
    this.#inspections = this.#nextInspection.catch(() => {});
    return this.#nextInspection;
  }

  async #inspect(): Promise<void> {
    const waitMs = this.#foundNothingAtMs + INSPECT_INTERVAL_MS - performance.now();
    if (waitMs > 0) await sleep(waitMs);
    const moved = await this.quarantine.inspectAll();
    if (moved.length === 0) this.#foundNothingAtMs = performance.now();
    else this.#restore(moved);
  }

  #restore(moved: readonly string[]): void {
    this.#restoring = this.#restoring
      .then(() => this.store.restoreAll(moved))
      .catch((err: unknown) => this.log.error({ err }, "could not rebuild the indices of tasks"));
  }

  /** Puts the task into its queue. Idempotent. */
  async enqueue({ id, route = "", turn = 0 }: Task): Promise<void> {
    const options = { jobId: id, priority: turn, removeOnComplete: true, removeOnFail: true };
    const queue = this.queueOf(route);
    await this.redis.attempt(
      () => queue.add("song", { version: RECORD_VERSION }, options),
      () => queue.remove(id),
    );
  }

  /** BullMQ's key of a task's job, or with `suffix` another key of the job, such as ":lock". */
  jobKey(route: string, id: string, suffix = ""): string {
    return this.queueOf(route).toKey(id) + suffix;
  }

  /** Whether a worker holds the task. */
  async isLeased({ id, route = "" }: Task): Promise<boolean> {
    return (await this.redis.attempt(() => this.redis.exists(this.#lockKey(route, id)))) === 1;
  }

  /** Acquires a lease that one process of the fleet can hold for `ttlMs`. False if another holds it. */
  async tryAcquireLease(name: string, ttlMs: number): Promise<boolean> {
    const key = redisKey("lease", name);
    return (await this.redis.attempt(() => this.redis.set(key, process.pid, "PX", ttlMs, "NX"))) === "OK";
  }

  async close(): Promise<void> {
    this.#closing.abort();
    clearInterval(this.#recoveryTimer);
    clearInterval(this.#pingTimer);
    this.workers.close();
    this.sharedStore?.close();
    for (const queue of this.#queues.values()) await queue.close().catch(() => {});
    this.#listener.disconnect();
    this.redis.disconnect();
  }

  /** Requeues tasks of dead workers and tasks that are in no queue. */
  async #recoverTasks(): Promise<void> {
    // After a Redis outage all leases have expired: give live workers time to renew them.
    if (performance.now() - this.#readySinceMs < this.leaseMs) return;
    try {
      const routes = await this.#routes();
      await this.#inspectExpiring(routes);
      for (const route of routes) {
        const stalled = await this.redis.attempt(() =>
          this.queueOf(route).getBackend().moveStalledJobsToWait(),
        );
        for (const id of stalled) {
          this.log.warn({ task: id }, "the worker of a task died; the task is requeued");
          await this.publish({ type: "queued", id, route });
        }
      }
      if (await this.tryAcquireLease("reconcile", RECONCILE_MS)) await this.reconcile();
    } catch (err) {
      this.log.debug({ err }, "could not check the fleet's queues");
    }
  }

  async #routes(): Promise<string[]> {
    const key = redisKey("queues");
    const routes = await this.redis.attempt(() => this.redis.smembers(key));
    await this.quarantine.moveEntries(
      key,
      routes.filter((route) => !isTaskQueueName(route)).map((route) => [route]),
    );
    return routes.filter(isTaskQueueName);
  }

  /** Quarantines locks and leases without an expiry, which would never be released. */
  async #inspectExpiring(routes: readonly string[]): Promise<void> {
    const models = this.workers.known.flatMap((worker) => worker.models.map(({ name }) => name));
    await this.quarantine.inspect([
      redisKey("lease", "clean-up"),
      redisKey("lease", "reconcile"),
      ...[...new Set(models)].map((name) => redisKey("checkpoint", name)),
      ...routes.map((route) => this.jobKey(route, "stalled-check")),
    ]);
  }

  /** Requeues accepted tasks that are in no queue, now and after `waitMs`. */
  async reconcile(waitMs = SUBMISSION_MS): Promise<void> {
    const unqueued = await this.#unqueued(await this.store.unfinished());
    if (unqueued.length === 0) return;
    await sleep(waitMs, undefined, { signal: this.#closing.signal });
    for (const id of await this.#unqueued(unqueued)) await this.#requeue(id);
  }

  /** Returns the tasks that are in no list of their queue and have no worker. */
  async #unqueued(ids: readonly string[]): Promise<string[]> {
    if (ids.length === 0) return [];
    const routes = await this.redis.attempt(() => this.redis.hmget(redisKey("routes"), ...ids));
    const routeOf = new Map(ids.map((id, index) => [id, routes[index] ?? ""]));
    const held = new Set<string>();
    for (const route of new Set(routeOf.values())) {
      if (isTaskQueueName(route)) for (const id of await this.#heldIn(route)) held.add(id);
    }
    const missing = ids.filter((id) => !held.has(id));
    const locks = await this.redis.batch((pipeline) => {
      for (const id of missing) pipeline.exists(this.#lockKey(routeOf.get(id) as string, id));
    });
    return missing.filter((_, index) => locks[index] !== 1);
  }

  /** Key of a task's lock. A task without a queue has no lock. */
  #lockKey(route: string, id: string): string {
    return isTaskQueueName(route) ? this.jobKey(route, id, ":lock") : redisKey("none");
  }

  /** Ids of a queue's jobs. Also quarantines foreign locks, which would hold jobs forever. */
  async #heldIn(route: string): Promise<string[]> {
    const idsOf = (...lists: JobType[]) =>
      this.redis.attempt(() => this.queueOf(route).getRanges(lists, 0, -1));
    const active = await idsOf("active");
    await this.quarantine.inspect(active.map((id) => this.jobKey(route, id, ":lock")));
    return [...active, ...(await idsOf("waiting", "prioritized", "delayed"))];
  }

  /** Quarantines the data of active jobs if BullMQ cannot read it. The jobs stay in their lists. */
  async removeUnreadableJobs(route: string): Promise<void> {
    const queue = this.queueOf(route);
    for (const id of await this.redis.attempt(() => queue.getRanges(["active"], 0, -1))) {
      try {
        await this.redis.attempt(() => queue.getJob(id));
      } catch (error) {
        if (error instanceof StoreError) throw error;
        await this.quarantine.moveKey(
          this.jobKey(route, id),
          `BullMQ cannot read it: ${(error as Error).message}`,
        );
        await this.redis.attempt(() => this.redis.del(this.jobKey(route, id, ":lock")));
      }
    }
  }

  async #requeue(id: string): Promise<void> {
    const task = await this.store.restore(id);
    if (task === undefined || hasEnded(task.state)) return;
    this.log.warn({ task: id }, "an accepted task was in no queue; it is requeued");
    // A leftover job would keep BullMQ from adding the task.
    await this.redis.attempt(() => this.queueOf(task.route ?? "").remove(id));
    await this.enqueue(task);
    await this.publish({ type: "queued", id, route: task.route ?? "" });
  }
}
