/** The fleet's Redis: connections, key names, and classification of errors. */
import { Redis } from "ioredis";
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

export function redisKey(...parts: string[]): string {
  return [KEY_PREFIX, ...parts].join(":");
}

/** Without a connection, commands fail at once, because the caller knows best whether to retry. */
export class FleetRedis extends Redis {
  /** Callback that moves foreign data to quarantine; set by `Fleet`. */
  repair: () => Promise<void> = async () => {};

  /**
   * Runs a command. If a key holds data of the wrong type or format, moves foreign data to quarantine and retries once.
   * @param undo removes partial results of a failed command
   * @throws FleetUnreachableError if Redis is at fault
   */
  async attempt<T>(command: () => Promise<T>, undo: () => Promise<unknown> = async () => {}): Promise<T> {
    try {
      return await command().catch(async (error: unknown) => {
        if (!isDataFault(error)) throw error;
        await this.repair();
        await undo();
        return command();
      });
    } catch (error) {
      if (error instanceof Error && !(error instanceof StoreError) && REDIS_FAULTS.test(error.message))
        throw new FleetUnreachableError(error);
      throw error;
    }
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
  const redis = new FleetRedis(url, {
    lazyConnect: true,
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    connectTimeout: CONNECT_TIMEOUT_MS,
    commandTimeout: COMMAND_TIMEOUT_MS,
    socketTimeout: SILENCE_MS,
    retryStrategy: (attempt) => Math.min(50 * attempt, MAX_RETRY_MS),
  });
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

/** Redis is unreachable, or refuses to write. */
export class FleetUnreachableError extends StoreError {
  constructor(cause: unknown) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    super("UNREACHABLE", `the fleet's Redis is unreachable or not writable: ${reason}`, { cause });
  }
}

const REDIS_FAULTS =
  /^(Stream isn't writeable|Connection is closed|Command timed out|Reached the max retries|connect E|read E|write E|getaddrinfo|NOAUTH|WRONGPASS|NOPERM|OOM|MISCONF|READONLY|LOADING|CLUSTERDOWN|MASTERDOWN)/;

/** True if a key's type or content is not what the command or script expects. */
export function isDataFault(error: unknown): boolean {
  return error instanceof Error && error.name === "ReplyError" && DATA_FAULTS.test(error.message);
}

const DATA_FAULTS = /^(WRONGTYPE|ERR value is not|ERR hash value is not|ERR .*script)/;
