/** The fleet's Redis: its connections, the names of its keys, and what its failures mean. */
import { Redis } from "ioredis";
import type { Logger } from "../../log.js";
import { StoreError } from "../errors.js";

/** The beginning of every key; fleets that share a server differ by the number of its database, the last part of the URL. */
export const PREFIX = "carillon";
/** What happens to tasks is told here, as JSON. */
export const EVENTS_CHANNEL = `${PREFIX}:events`;
const CONNECT_TIMEOUT_MS = 5_000;
/** Where Redis hangs, an answer that says so is better than none. */
const COMMAND_TIMEOUT_MS = 10_000;
const MAX_RETRY_MS = 1_000;

export function keyOf(...parts: string[]): string {
  return [PREFIX, ...parts].join(":");
}

/**
 * A connection that comes back by itself. While it is gone commands fail at once: whoever sent them knows better than
 * a queue of commands whether they still mean anything.
 */
export function connectRedis(url: string, log: Logger): Redis {
  const redis = new Redis(url, {
    lazyConnect: true,
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    connectTimeout: CONNECT_TIMEOUT_MS,
    commandTimeout: COMMAND_TIMEOUT_MS,
    retryStrategy: (attempt) => Math.min(50 * attempt, MAX_RETRY_MS),
  });
  let isGone = false;
  redis.on("error", (err: Error) => {
    if (!isGone) log.error({ reason: err.message }, "Redis cannot be reached");
    isGone = true;
  });
  redis.on("ready", () => {
    if (isGone) log.info("Redis is back");
    isGone = false;
  });
  return redis;
}

/** A server of the fleet cannot reach Redis, or Redis refuses to write. */
export class FleetUnreachableError extends StoreError {
  constructor(cause: unknown) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    super("UNREACHABLE", `the fleet's Redis cannot be reached or does not write: ${reason}`, { cause });
  }
}

/** What `command` resolves with. @throws FleetUnreachableError where Redis is at fault */
export async function reached<T>(command: () => Promise<T>): Promise<T> {
  try {
    return await command();
  } catch (error) {
    if (isRedisFault(error)) throw new FleetUnreachableError(error);
    throw error;
  }
}

const REDIS_FAULTS =
  /^(Stream isn't writeable|Connection is closed|Command timed out|Reached the max retries|connect E|read E|write E|getaddrinfo|NOAUTH|WRONGPASS|NOPERM|OOM|MISCONF|READONLY|LOADING|CLUSTERDOWN|MASTERDOWN)/;

function isRedisFault(error: unknown): boolean {
  return error instanceof Error && !(error instanceof StoreError) && REDIS_FAULTS.test(error.message);
}

/** Milliseconds of Redis' own clock, the only one that all processes see. */
export async function timeMs(redis: Redis): Promise<number> {
  const [seconds, microseconds] = await reached(() => redis.time());
  return Math.floor(Number(seconds) * 1000 + Number(microseconds) / 1000);
}

/** The results of a pipeline, in order. @throws the first error among them */
export async function piped(pipeline: ReturnType<Redis["pipeline"]>): Promise<unknown[]> {
  const results = (await pipeline.exec()) ?? [];
  return results.map(([error, value]) => {
    if (error !== null) throw error;
    return value;
  });
}
