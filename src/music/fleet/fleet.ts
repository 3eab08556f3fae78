/** What the processes of a fleet share through Redis: tasks, BullMQ queues and messages. */
import { EventEmitter } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { type Job, type JobType, Queue, type QueueOptions } from "bullmq";
import type { Redis } from "ioredis";
import { ConfigError } from "../../system/config-error.js";
import type { Logger } from "../../system/log.js";
import { hasEnded } from "../queue/catalog.js";
import type { Task } from "../queue/store.js";
import { FleetStore } from "./fleet-store.js";
import { type FleetEvent, readMessage } from "./messages.js";
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
/** Interval at which the connection for messages asks for an answer, so that a dead one is noticed and replaced. */
const PING_MS = 10_000;
/** Disables BullMQ's own limit of attempts; `queue/rules.ts` has the limits. */
const UNLIMITED = 1_000_000;
const FAILED_CHECK = "could not check the fleet's queues";
/** BullMQ's lists of jobs that have not ended. */
const JOB_LISTS: JobType[] = ["active", "waiting", "prioritized", "delayed"];

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
  readonly #closing = new AbortController();

  private constructor(
    readonly redis: FleetRedis,
    preferredModel: string,
    readonly log: Logger,
    readonly leaseMs: number,
  ) {
    this.store = new FleetStore(redis);
    this.workers = new Workers(redis, preferredModel, log);
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
    listener.on("message", (channel, text) => {
      const event = readMessage(text);
      if (event === undefined) this.redis.logUnreadable(channel, "a message that the fleet did not write");
      else if (event.type !== "workers") this.events.emit("event", event);
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

  /** Logs an error that BullMQ emitted as an event. */
  noteQueueError(err: Error): void {
    if (isDataFault(err)) this.redis.logUnreadable("a queue", err.message);
    else this.log.debug({ err }, "a BullMQ command failed");
  }

  /** Puts the task into its queue. Idempotent. */
  async enqueue({ id, route = "", turn = 0 }: Task): Promise<void> {
    const options = { jobId: id, priority: turn, removeOnComplete: true, removeOnFail: true };
    await this.redis.attempt(() => this.queueOf(route).add("song", { version: RECORD_VERSION }, options));
  }

  /** BullMQ's key of a task's job, or with `suffix` another key of the job, such as ":lock". */
  jobKey(route: string, id: string, suffix = ""): string {
    return this.queueOf(route).toKey(id) + suffix;
  }

  /** Whether a worker holds the task. */
  async isLeased({ id, route = "" }: Task): Promise<boolean> {
    return (await this.redis.attempt(() => this.redis.exists(this.jobKey(route, id, ":lock")))) === 1;
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
      for (const route of await this.#routes()) {
        await this.#recoverStalled(route).catch((err: unknown) =>
          this.log.debug({ err, route }, FAILED_CHECK),
        );
      }
      if (await this.tryAcquireLease("reconcile", RECONCILE_MS)) await this.reconcile();
    } catch (err) {
      this.log.debug({ err }, FAILED_CHECK);
    }
  }

  async #recoverStalled(route: string): Promise<void> {
    const stalled = await this.redis.attempt(() => this.queueOf(route).getBackend().moveStalledJobsToWait());
    for (const id of stalled) {
      this.log.warn({ task: id }, "the worker of a task died; the task is requeued");
      await this.publish({ type: "queued", id, route });
    }
  }

  async #routes(): Promise<string[]> {
    const routes = await this.redis.attempt(() => this.redis.smembers(redisKey("queues")));
    return routes.filter(isTaskQueueName);
  }

  /** Requeues accepted tasks that are in no queue, now and after `waitMs`. */
  async reconcile(waitMs = SUBMISSION_MS): Promise<void> {
    const unqueued = await this.#unqueued(await this.store.unfinished());
    if (unqueued.length === 0) return;
    await sleep(waitMs, undefined, { signal: this.#closing.signal });
    for (const id of await this.#unqueued(unqueued)) {
      await this.#requeue(id).catch((err: unknown) =>
        this.log.debug({ task: id, err }, "could not requeue a task"),
      );
    }
  }

  /** Returns the tasks that are in no list of a queue. */
  async #unqueued(ids: readonly string[]): Promise<string[]> {
    if (ids.length === 0) return [];
    const queues = (await this.#routes()).map((route) => this.queueOf(route));
    const queued = await this.redis.attempt(() =>
      Promise.all(queues.map((queue) => queue.getRanges(JOB_LISTS, 0, -1))),
    );
    const held = new Set(queued.flat());
    return ids.filter((id) => !held.has(id));
  }

  /** Removes active jobs that BullMQ cannot read. `reconcile` queues their tasks again. */
  async removeUnreadableJobs(route: string): Promise<void> {
    const queue = this.queueOf(route);
    for (const id of await queue.getRanges(["active"], 0, -1)) {
      const isReadable = await queue.getJob(id).then(
        () => true,
        (error: Error) => !(error instanceof SyntaxError || error instanceof TypeError),
      );
      if (isReadable) continue;
      await this.redis.del(this.jobKey(route, id, ":lock"));
      await queue.remove(id);
    }
  }

  async #requeue(id: string): Promise<void> {
    const task = await this.store.get(id);
    // The gateway died before it stored the task: gives back the place.
    if (task === undefined) return this.store.release(id);
    if (hasEnded(task.state) || (await this.isLeased(task))) return;
    this.log.warn({ task: id }, "an accepted task was in no queue; it is requeued");
    // A leftover job would keep BullMQ from adding the task.
    await this.redis.attempt(() => this.queueOf(task.route ?? "").remove(id));
    await this.enqueue(task);
    await this.publish({ type: "queued", id, route: task.route ?? "" });
  }
}
