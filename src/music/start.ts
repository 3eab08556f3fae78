/** Opens the task store (LMDB in SVC_TMPDIR, or the fleet's Redis) and starts a server that uses it. */
import { join } from "node:path";
import type { Config } from "../config.js";
import type { MusicEngine } from "../engine/types.js";
import { lockDirectory } from "../system/directory-lock.js";
import { createLogger, type Logger } from "../system/log.js";
import { OwnAdapterRecord } from "./models/loaded-adapters.js";
import { EmbeddedQueue, type QueueOptions } from "./queue/embedded-queue.js";
import { RetentionClock } from "./queue/retention.js";
import { openTaskStore } from "./queue/store-recovery.js";
import { type MusicServer, startMusicApplication, startMusicServer, startWorkerServer } from "./server.js";
import type { ServiceParts } from "./service.js";
import { SongRunner } from "./song/song-runner.js";
import type { ObjectStore } from "./storage/object-store.js";
import { TaskFiles } from "./task-files.js";

/** The last backup of the tasks must end within this time after `close` was called. */
const CLOSING_MS = 5_500;

/** Maximum downtime that adds to the age of songs. A longer downtime may result from a changed system clock. */
const MAX_CLOCK_GAP_SECONDS = 24 * 60 * 60;

export interface MusicServerParts {
  config: Config;
  /** The engine; a fleet gateway needs none. */
  engine?: MusicEngine;
  /** Logger; default: warnings and errors on stderr. */
  log?: Logger;
}

export const startService = (parts: MusicServerParts) => startOnStore(parts, startMusicServer);
export const startWorker = (parts: MusicServerParts) => startOnStore(parts, startWorkerServer);
export const startApplication = (parts: MusicServerParts) => startOnStore(parts, startMusicApplication);

/**
 * Locks SVC_TMPDIR, opens the queue and starts a server. `close` of the result also closes the store, or leaves the
 * fleet.
 */
async function startOnStore<T extends Pick<MusicServer, "close">>(
  parts: MusicServerParts,
  start: (options: ServiceParts) => Promise<T>,
): Promise<T> {
  const { config, log = createLogger("warn") } = parts;
  const lock = await lockDirectory(config.temporaryDirectory, "SVC_TMPDIR");
  let opened: OpenedQueue | undefined;
  const release = async (closingSinceMs: number) => {
    await opened?.close(closingSinceMs);
    opened?.runner?.close();
    opened?.files.close();
    await lock.release();
  };
  try {
    opened = await openQueue(parts, log);
    const service = await start({ config, log, ...opened });
    let closing: Promise<void> | undefined;
    const close = (graceSeconds?: number) => {
      const closingSinceMs = performance.now();
      closing ??= service.close(graceSeconds).finally(() => release(closingSinceMs));
      return closing;
    };
    return { ...service, close };
  } catch (error) {
    await release(performance.now());
    throw error;
  }
}

interface OpenedQueue
  extends Pick<ServiceParts, "catalog" | "writer" | "engine" | "queue" | "files" | "runner" | "adapters"> {
  close(closingSinceMs: number): Promise<void>;
}

async function openQueue({ config, engine }: MusicServerParts, log: Logger): Promise<OpenedQueue> {
  const bucket = config.storage?.bucket;
  const storage = bucket ? await openObjectStore(bucket) : null;
  const files = new TaskFiles(config, storage, log);
  const runner =
    engine === undefined || config.role === "gateway" ? null : new SongRunner(config, engine, files, log);
  if (config.redisUrl !== null) {
    // Imported lazily: only fleets need Redis.
    const { joinFleet } = await import("./fleet/join.js");
    return { files, runner, ...(await joinFleet(config, files, runner, storage, log)) };
  }
  if (engine === undefined || runner === null) throw new Error("A standalone server needs an engine");
  const { store, backup } = await openTaskStore(config.temporaryDirectory, log);
  const queue = new EmbeddedQueue(store, runner, embeddedOptions(config, log), log);
  const close = async (closingSinceMs: number) => {
    await backup.close(Math.max(CLOSING_MS - (performance.now() - closingSinceMs), 0));
    await store.close();
  };
  const { catalog, planner: writer } = engine;
  return { catalog, writer, engine, queue, files, runner, adapters: new OwnAdapterRecord(engine), close };
}

/** Imported lazily: only S3 storage needs the SDK. */
async function openObjectStore(location: string): Promise<ObjectStore> {
  const { ObjectStore } = await import("./storage/object-store.js");
  return ObjectStore.open(location);
}

function embeddedOptions(config: Config, log: Logger): QueueOptions {
  // Count at most half the maximum age as downtime, or a restart could expire all songs.
  const maxGapSeconds = Math.min(MAX_CLOCK_GAP_SECONDS, config.audioMaxAgeSeconds / 2);
  return {
    capacity: config.queueMaxSize,
    workers: config.queueWorkers,
    jobTimeoutSeconds: config.jobTimeoutSeconds,
    averageJobSeconds: config.averageJobSeconds,
    averageWindow: config.averageWindow,
    clock: new RetentionClock(join(config.temporaryDirectory, "clock.json"), maxGapSeconds * 1000, log),
  };
}
