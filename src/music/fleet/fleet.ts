/** What the processes of a fleet share: Redis, the tasks in it, BullMQ's queues of them, and what they tell each other. */
import { EventEmitter } from "node:events";
import { type Job, Queue, type QueueOptions } from "bullmq";
import type { Redis } from "ioredis";
import { ConfigError } from "../../config.js";
import type { Logger } from "../../log.js";
import { hasEnded } from "../queue/catalog.js";
import type { QueueEvents } from "../queue/job-queue.js";
import type { Task, TaskState } from "../queue/store.js";
import { FleetStore } from "./fleet-store.js";
import { connectRedis, EVENTS_CHANNEL, keyOf, piped, reached } from "./redis.js";
import { PAYLOAD_VERSION, Workers } from "./workers.js";

/** How long a worker holds a task without a sign of life. */
const LEASE_MS = 10_000;
/** So often in this time somebody looks for tasks whose worker is gone. */
const LOOKS_PER_LEASE = 3;
/** How often somebody looks for accepted tasks that no queue holds, as their gateway died or Redis forgot. */
const RECONCILE_MS = 30_000;
/** BullMQ fails a job itself after so many; who claims it counts by the queue's own rules. */
const NEVER = 1_000_000;

/** What the processes tell each other of a task. */
export type FleetEvent =
  | { type: "queued"; id: string; route: string; position?: number }
  | { type: "progress"; id: string; progress: QueueEvents["progress"][1]; request: string | undefined }
  | { type: "ended"; id: string }
  /** To the worker that runs it. */
  | { type: "cancel"; id: string };

/** The payload of a job: the task itself is read by its id, so that nothing of it stands in two places. */
export interface FleetJobData {
  version: number;
}
export type FleetJob = Job<FleetJobData, null, string>;

interface Told {
  event: [FleetEvent];
  /** What was told meanwhile has not been heard. */
  back: [];
}

export class Fleet {
  readonly store: FleetStore;
  readonly workers: Workers;
  readonly told = new EventEmitter<Told>().setMaxListeners(0);
  readonly #queues = new Map<string, Queue<FleetJobData, null, string>>();
  readonly #listener: Redis;
  #readySinceMs = performance.now();
  #careTimer: NodeJS.Timeout | undefined;
  /** Unfinished tasks that no queue held when they were last looked at. */
  #stray = new Set<string>();

  private constructor(
    readonly redis: Redis,
    preferredModel: string,
    readonly log: Logger,
    readonly leaseMs: number,
  ) {
    this.store = new FleetStore(redis);
    this.workers = new Workers(redis, preferredModel, log);
    this.#listener = redis.duplicate();
    this.#listener.on("error", (err: Error) => log.debug({ err }, "Redis tells nothing"));
    redis.on("ready", () => {
      this.#readySinceMs = performance.now();
    });
  }

  /** @throws ConfigError where Redis does not answer */
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
    fleet.#careTimer = setInterval(() => void fleet.#care(), fleet.#careMs).unref();
    return fleet;
  }

  get #careMs(): number {
    return Math.floor(this.leaseMs / LOOKS_PER_LEASE);
  }

  async #listen(): Promise<void> {
    const listener = this.#listener;
    await listener.connect();
    await listener.subscribe(EVENTS_CHANNEL);
    listener.on("message", (_channel, text) => {
      const event = JSON.parse(text) as FleetEvent | { type: "workers" };
      if (event.type !== "workers") this.told.emit("event", event);
      else this.workers.refresh().catch((err: unknown) => this.log.debug({ err }, "workers are not known"));
    });
    listener.on("ready", () => this.told.emit("back"));
  }

  async tell(event: FleetEvent): Promise<void> {
    await reached(() => this.redis.publish(EVENTS_CHANNEL, JSON.stringify(event)));
  }

  queueOf(route: string): Queue<FleetJobData, null, string> {
    const known = this.#queues.get(route);
    if (known !== undefined) return known;
    // What the script for lost jobs reads of the options, though only a worker's type has it.
    const care = { maxStalledCount: NEVER, stalledInterval: this.#careMs };
    const options: QueueOptions = { ...this.bullOptions(), skipMetasUpdate: true, ...care };
    const queue = new Queue<FleetJobData, null, string>(route, options);
    queue.on("error", (err) => this.log.debug({ err }, "a queue cannot reach Redis"));
    this.#queues.set(route, queue);
    return queue;
  }

  bullOptions() {
    return { connection: this.redis, prefix: keyOf("queue") };
  }

  /** Lets the task wait for a worker. Once only, however often it is called. */
  async enqueue({ id, route = "", turn = 0 }: Task): Promise<void> {
    const options = { jobId: id, priority: turn, removeOnComplete: true, removeOnFail: true };
    await reached(() => this.queueOf(route).add("song", { version: PAYLOAD_VERSION }, options));
  }

  /** The key of the job of a task, with what BullMQ keeps beside it under `suffix`. */
  jobKey(route: string, id: string, suffix = ""): string {
    return this.queueOf(route).toKey(id) + suffix;
  }

  /** True for one process of the fleet, for as long; nobody else gets the office until then. */
  async takesOffice(office: string, holdMs: number): Promise<boolean> {
    const key = keyOf("office", office);
    return (await reached(() => this.redis.set(key, process.pid, "PX", holdMs, "NX"))) === "OK";
  }

  async close(): Promise<void> {
    clearInterval(this.#careTimer);
    this.workers.close();
    for (const queue of this.#queues.values()) await queue.close().catch(() => {});
    this.#listener.disconnect();
    this.redis.disconnect();
  }

  /** Gives the tasks of dead workers to others, and those that no queue holds to their queue. */
  async #care(): Promise<void> {
    // After a time without Redis all leases are over: those who still work are to renew them first.
    if (performance.now() - this.#readySinceMs < this.leaseMs) return;
    try {
      for (const route of await reached(() => this.redis.smembers(keyOf("queues")))) {
        for (const id of await this.queueOf(route).getBackend().moveStalledJobsToWait()) {
          this.log.warn({ task: id }, "the worker of a task is gone: another one takes it");
          await this.tell({ type: "queued", id, route });
        }
      }
      if (await this.takesOffice("reconcile", RECONCILE_MS)) await this.reconcile();
    } catch (err) {
      this.log.debug({ err }, "the fleet's queues could not be looked at");
    }
  }

  /** Puts accepted tasks into their queue that were in none the last time either. */
  async reconcile(): Promise<void> {
    const stray = new Set<string>();
    for (const state of ["queued", "running"] satisfies TaskState[]) {
      const ids = await this.store.inState(state);
      for (const [id, hasJob] of await this.#haveJobs(ids)) {
        if (hasJob) continue;
        stray.add(id);
        if (this.#stray.has(id)) await this.#adopt(id);
      }
    }
    this.#stray = stray;
  }

  async #haveJobs(ids: readonly string[]): Promise<[id: string, hasJob: boolean][]> {
    if (ids.length === 0) return [];
    const routes = await reached(() => this.redis.hmget(keyOf("routes"), ...ids));
    const pipeline = this.redis.pipeline();
    // One without a record has no route, and no job of that name.
    for (const [index, id] of ids.entries()) pipeline.exists(this.jobKey(routes[index] || "none", id));
    const found = await reached(() => piped(pipeline));
    return ids.map((id, index) => [id, found[index] === 1]);
  }

  async #adopt(id: string): Promise<void> {
    const task = await this.store.get(id);
    if (task === undefined) await this.store.release(id);
    else if (!hasEnded(task.state)) {
      this.log.warn({ task: id }, "an accepted task was in no queue, and is put into its own");
      await this.enqueue(task);
      await this.tell({ type: "queued", id, route: task.route ?? "" });
    }
  }
}
