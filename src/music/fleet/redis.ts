/** The fleet's Redis: connections, key names, and classification of errors. */
import { Redis, type RedisOptions } from "ioredis";
import type { Logger } from "../../system/log.js";
import { StoreError } from "../errors.js";

/** Prefix of every key. Fleets on one server differ by the database number at the end of the URL. */
export const KEY_PREFIX = "carillon";
const CONNECT_TIMEOUT_MS = 5_000;
/** Commands fail after this time if Redis hangs. */
const COMMAND_TIMEOUT_MS = 10_000;
/** A connection that owes an answer for this time is replaced: a router may have dropped it without a word. */
const SILENCE_MS = 15_000;
const MAX_RETRY_MS = 1_000;
/** Minimum interval between two log lines about unreadable data at the same place. */
const UNREADABLE_LOG_MS = 60_000;

const OPTIONS = {
  lazyConnect: true,
  enableOfflineQueue: false,
  autoResendUnfulfilledCommands: false,
  maxRetriesPerRequest: 0,
  connectTimeout: CONNECT_TIMEOUT_MS,
  commandTimeout: COMMAND_TIMEOUT_MS,
  socketTimeout: SILENCE_MS,
  retryStrategy: (attempt) => Math.min(50 * attempt, MAX_RETRY_MS),
} satisfies RedisOptions;

export function redisKey(...parts: string[]): string {
  return [KEY_PREFIX, ...parts].join(":");
}

/** Without a connection, commands fail at once, because the caller knows best whether to retry. */
export class FleetRedis extends Redis {
  readonly #loggedAtMs = new Map<string, number>();

  constructor(
    url: string,
    private readonly log: Logger,
  ) {
    super(url, OPTIONS);
  }

  /** Runs a command. @throws FleetUnreachableError if Redis is at fault, or if a key holds data of another type */
  async attempt<T>(command: () => Promise<T>): Promise<T> {
    try {
      return await command();
    } catch (error) {
      if (!(error instanceof Error) || error instanceof StoreError) throw error;
      if (isDataFault(error)) this.logUnreadable("a key of another type", error.message);
      else if (!REDIS_FAULTS.test(error.message)) throw error;
      throw new FleetUnreachableError(error);
    }
  }

  /**
   * Logs data that is skipped because it cannot be read. The same data is read again and again, so each place is logged
   * once a minute.
   */
  logUnreadable(place: string, reason: string): void {
    const nowMs = performance.now();
    if (nowMs - (this.#loggedAtMs.get(place) ?? Number.NEGATIVE_INFINITY) < UNREADABLE_LOG_MS) return;
    this.#loggedAtMs.set(place, nowMs);
    this.log.error({ place, reason }, "skipped unreadable data in the fleet's Redis");
  }

  /** Sends several commands at once. Resolves with their results in order. @throws the first error, as `attempt` does */
  batch(build: (pipeline: Pipeline) => unknown): Promise<unknown[]> {
    return this.attempt(async () => {
      const pipeline = this.pipeline();
      build(pipeline);
      const results = (await pipeline.exec()) ?? [];
      return results.map(([error, value]) => {
        if (error !== null) throw error;
        return value;
      });
    });
  }

  /** Redis's clock in milliseconds, the only clock that all processes share. */
  async timeMs(): Promise<number> {
    const [seconds, microseconds] = await this.attempt(() => this.time());
    return Math.floor(Number(seconds) * 1000 + Number(microseconds) / 1000);
  }

  /** The channel of this fleet. Channels are shared between databases, so the name contains the database number. */
  get eventsChannel(): string {
    return redisKey(String(this.options.db ?? 0), "events");
  }
}

type Pipeline = ReturnType<Redis["pipeline"]>;

export function connectRedis(url: string, log: Logger): FleetRedis {
  const redis = new FleetRedis(url, log);
  let isGone = false;
  redis.on("error", (err: Error) => {
    if (!isGone) log.error({ reason: err.message }, "Redis is unreachable");
    isGone = true;
  });
  redis.on("ready", () => {
    if (isGone) log.info("Redis is reachable again");
    isGone = false;
  });
  return redis;
}

/** Redis is unreachable, refuses to write, or holds data that the fleet did not write. */
export class FleetUnreachableError extends StoreError {
  constructor(cause: unknown) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    super("UNREACHABLE", `the fleet's Redis is unreachable or not usable: ${reason}`, { cause });
  }
}

const REDIS_FAULTS =
  /^(Stream isn't writeable|Connection is closed|Command timed out|Reached the max retries|connect E|read E|write E|getaddrinfo|NOAUTH|WRONGPASS|NOPERM|OOM|MISCONF|READONLY|LOADING|CLUSTERDOWN|MASTERDOWN)/;

/** True if a key's type or content is not what the command, the script or BullMQ expects. */
export function isDataFault(error: unknown): boolean {
  if (error instanceof SyntaxError) return true;
  return error instanceof Error && error.name === "ReplyError" && DATA_FAULTS.test(error.message);
}

const DATA_FAULTS = /^(WRONGTYPE|ERR value is not|ERR hash value is not|ERR .*script)/;
