/**
 * Remote calls from a gateway to a worker: to write texts and to inspect adapters. A client waits for the
 * result, which is useless once the client has left, so calls are not queued as tasks. BullMQ gives each call
 * to one worker and returns the result. If the worker dies, another one gets the call.
 */
import { randomUUID } from "node:crypto";
import type { EventEmitter } from "node:events";
import { type Job, Queue, QueueEvents, Worker } from "bullmq";
import type { Redis } from "ioredis";
import { z } from "zod";
import { EngineError, type EngineErrorCode } from "../../engine/errors.js";
import { withTimeLimit } from "../../system/time-limit.js";
import { type Fleet, onceBroken } from "./fleet.js";
import { isDataFault } from "./redis.js";
import { noWorkerError } from "./workers.js";

/**
 * Time limit of a call. Writing a text takes a few seconds; the rest of the limit is for calls that are ahead
 * in the queue.
 */
const TIMEOUT_MS = 120_000;
/** Delay before a worker asks for a call again after an error. */
const RETRY_MS = 1_000;
/** Redis answers blocking commands of BullMQ after 10 seconds. A connection that is silent for longer is replaced. */
const SILENCE_MS = 30_000;

const resultSchema = z.union([
  z.object({ code: z.unknown().optional(), message: z.string() }),
  z.object({ value: z.unknown() }),
]);
type Result = { value: unknown } | { code: unknown; message: string };

/** Queue of calls that write text. Every worker with a language model serves it. */
export const TEXT_CALL_QUEUE = "words";

/** Queue of calls that inspect adapters for `model`. Workers that have this model in slot 1 serve it. */
export function adapterCallQueue(model: string): string {
  return `adapters~${encodeURIComponent(model)}`;
}

interface Client {
  queue: Queue;
  results: QueueEvents;
  /** Aborted when the client cannot receive results any more. */
  broken: AbortController;
}

export type CallHandler = (name: string, data: unknown, signal: AbortSignal) => Promise<unknown>;

export class RemoteCalls {
  readonly #clients = new Map<string, Client>();
  readonly #servers: Worker[] = [];
  readonly #closing = new AbortController();
  #blocking: Redis | undefined;

  constructor(private readonly fleet: Fleet) {}

  /**
   * Runs the call `name` on a worker and resolves with the result.
   * @throws HttpError 503 if there is no result, FleetUnreachableError, the signal's reason, or the worker's error as an
   * EngineError
   */
  async call<T>(target: string, name: string, data: object, signal?: AbortSignal): Promise<T> {
    const { queue, results, broken } = await this.#clientOf(target);
    const jobId = randomUUID();
    const completed = `completed:${jobId}`;
    const ends = AbortSignal.any([broken.signal, ...(signal ? [signal] : [])]);
    const limit = { ms: TIMEOUT_MS, signal: ends, error: () => noWorkerError("answer in time") };
    try {
      const { returnvalue } = await withTimeLimit(limit, async () => {
        // Not `once` of node:events: it would reject on every "error" event, even if BullMQ goes on listening.
        const completion = new Promise<{ returnvalue: unknown }>((resolve) => {
          (results as EventEmitter).once(completed, resolve);
        });
        const options = { jobId, removeOnComplete: true, removeOnFail: true };
        await this.fleet.redis.attempt(() => queue.add(name, data, options));
        return completion;
      });
      const read = resultSchema.safeParse(returnvalue).data;
      if (read === undefined) throw noWorkerError("return a readable result");
      if ("value" in read) return read.value as T;
      throw new EngineError(read.code as EngineErrorCode, read.message);
    } finally {
      (results as EventEmitter).removeAllListeners(completed);
      // Removes the call if no worker has started it.
      await queue.remove(jobId).catch(() => {});
    }
  }

  /** Serves calls one at a time until `close`. */
  serve(target: string, handler: CallHandler): void {
    const work = async ({ name, data }: Job): Promise<Result> => {
      try {
        return { value: await handler(name, data, this.#closing.signal) };
      } catch (error) {
        const { code, message } = error as Error & { code?: unknown };
        this.fleet.log.info({ call: name, reason: message }, "a call from a gateway failed");
        return { code, message };
      }
    };
    const lockDuration = this.fleet.leaseMs;
    const worker = new Worker(queueNameOf(target), work, {
      ...this.#options(),
      lockDuration,
      stalledInterval: lockDuration,
      runRetryDelay: RETRY_MS,
    });
    worker.on("error", (err) => this.fleet.noteQueueError(err));
    this.#servers.push(worker);
  }

  /** Aborts the current call; another worker then gets it. */
  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.all(this.#servers.map((worker) => worker.close(true).catch(() => {})));
    for (const { queue, results } of this.#clients.values()) {
      await queue.close().catch(() => {});
      await results.close().catch(() => {});
    }
    this.#blocking?.disconnect();
  }

  async #clientOf(target: string): Promise<Client> {
    // Events are numbered by Redis's clock. A result may arrive before this process listens.
    const lastEventId = String((await this.fleet.redis.timeMs()) - 1);
    const known = this.#clients.get(target);
    if (known !== undefined) return known;
    const client: Client = {
      queue: new Queue(queueNameOf(target), { ...this.fleet.bullOptions(), skipMetasUpdate: true }),
      results: new QueueEvents(queueNameOf(target), { ...this.#options(), lastEventId }),
      broken: new AbortController(),
    };
    const forget = () => {
      if (this.#clients.get(target) === client) this.#clients.delete(target);
      client.broken.abort(noWorkerError("return a readable result"));
      client.results.close().catch(() => {});
    };
    client.queue.on("error", (err) => this.fleet.noteQueueError(err));
    client.results.on("error", (err) => {
      this.fleet.noteQueueError(err);
      // BullMQ stops at an event that it cannot read. The next call listens to later events.
      if (isDataFault(err)) forget();
    });
    this.#clients.set(target, client);
    onceBroken(client.queue, forget);
    return client;
  }

  /**
   * Options for BullMQ. Commands on this connection wait while Redis is down, instead of failing. BullMQ uses
   * a duplicate of the connection for blocking commands.
   */
  #options() {
    if (this.#blocking === undefined) {
      this.#blocking = this.fleet.redis.duplicate({
        enableOfflineQueue: true,
        maxRetriesPerRequest: null,
        socketTimeout: SILENCE_MS,
      });
      delete this.#blocking.options.commandTimeout;
      this.#blocking.on("error", (err) => this.fleet.log.debug({ err }, "the connection for calls failed"));
    }
    return { ...this.fleet.bullOptions(), connection: this.#blocking };
  }
}

function queueNameOf(target: string): string {
  return `ask~${target}`;
}
