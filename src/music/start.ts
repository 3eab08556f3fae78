/** What a server of music starts with: the tasks of its temporary directory, or those of the fleet. */
import { join } from "node:path";
import type { Config } from "../config.js";
import { lockDirectory } from "../directory-lock.js";
import type { MusicEngine } from "../engine/types.js";
import { createLogger, type Logger } from "../log.js";
import { type QueueOptions, TaskQueue } from "./queue/queue.js";
import { ServiceClock } from "./queue/retention.js";
import type { TaskStore } from "./queue/store.js";
import { openTaskStore } from "./queue/store-recovery.js";
import {
  type MusicServer,
  type MusicServerOptions,
  startMusicApplication,
  startMusicServer,
  startWorkerServer,
} from "./server.js";
import { SongJobs } from "./song-jobs.js";
import type { ObjectStore } from "./storage/object-store.js";

/** What `close` may take before it does without a last backup of the tasks. */
const CLOSING_MS = 5_500;

/** The most that time without the service adds to the age of songs: the clock may have been set. */
const MAX_CLOCK_GAP_SECONDS = 24 * 60 * 60;

export interface MusicServerParts {
  config: Config;
  /** A gateway of a fleet needs none. */
  engine?: MusicEngine;
  /** Default: an LMDB file beside the generated audio, with a backup; `close` then closes it too. */
  store?: TaskStore;
  /** Default: warnings and errors on stderr. */
  log?: Logger;
}

export const startService = (parts: MusicServerParts) => startOnStore(parts, startMusicServer);
export const startWorker = (parts: MusicServerParts) => startOnStore(parts, startWorkerServer);
export const startApplication = (parts: MusicServerParts) => startOnStore(parts, startMusicApplication);

/** Starts what works in the temporary directory; to close it closes the tasks there, or leaves the fleet, as well. */
async function startOnStore<T extends Pick<MusicServer, "close">>(
  parts: MusicServerParts,
  start: (options: MusicServerOptions) => Promise<T>,
): Promise<T> {
  const { config, log = createLogger("warn") } = parts;
  const lock = await lockDirectory(config.temporaryDirectory, "SVC_TMPDIR");
  let opened: OpenedQueue | undefined;
  const release = async (closingSinceMs: number) => {
    await opened?.close(closingSinceMs);
    opened?.jobs.close();
    await lock.release();
  };
  try {
    opened = await openQueue(parts, log);
    const service = await start({ config, log, ...opened });
    const close = async (graceSeconds?: number) => {
      const closingSinceMs = performance.now();
      await service.close(graceSeconds).finally(() => release(closingSinceMs));
    };
    return { ...service, close };
  } catch (error) {
    await release(performance.now());
    throw error;
  }
}

interface OpenedQueue extends Pick<MusicServerOptions, "engine" | "queue" | "jobs"> {
  close(closingSinceMs: number): Promise<void>;
}

/** The tasks of the temporary directory, or those of the fleet. */
async function openQueue({ config, engine, store }: MusicServerParts, log: Logger): Promise<OpenedQueue> {
  const bucket = config.storage?.bucket;
  const storage = bucket ? await openObjectStore(bucket) : null;
  const jobs = new SongJobs(config, config.role === "gateway" ? null : (engine ?? null), log, storage);
  if (config.redisUrl !== null) {
    // Loaded here, for nobody else needs Redis.
    const { joinFleet } = await import("./fleet/join.js");
    return { jobs, ...(await joinFleet(config, jobs.engine, jobs, log)) };
  }
  if (engine === undefined) throw new Error("a server that works alone needs an engine");
  const own = store === undefined ? await openTaskStore(config.temporaryDirectory, log) : undefined;
  const queue = new TaskQueue(own?.store ?? (store as TaskStore), jobs, embeddedOptions(config, log), log);
  const close = async (closingSinceMs: number) => {
    await own?.backup.close(Math.max(CLOSING_MS - (performance.now() - closingSinceMs), 0));
    await own?.store.close();
  };
  return { engine, queue, jobs, close };
}

/** Loaded here, for nobody else needs the SDK. */
async function openObjectStore(location: string): Promise<ObjectStore> {
  const { ObjectStore } = await import("./storage/object-store.js");
  return ObjectStore.open(location);
}

function embeddedOptions(config: Config, log: Logger): QueueOptions {
  // A short age must not pass whole between two starts.
  const maxGapSeconds = Math.min(MAX_CLOCK_GAP_SECONDS, config.audioMaxAgeSeconds / 2);
  return {
    capacity: config.queueMaxSize,
    workers: config.queueWorkers,
    jobTimeoutSeconds: config.jobTimeoutSeconds,
    averageJobSeconds: config.averageJobSeconds,
    averageWindow: config.averageWindow,
    clock: new ServiceClock(join(config.temporaryDirectory, "clock.json"), maxGapSeconds * 1000, log),
  };
}
