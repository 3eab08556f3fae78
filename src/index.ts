/**
 * Carillon for embedding in another Node application.
 *
 * ```ts
 * import { createEngine, createMusicServer, loadConfig } from "carillon";
 *
 * const config = loadConfig({ SVC_API_PORT: "9000" });
 * const engine = createEngine(config);
 * const server = await createMusicServer({ config, engine });
 * console.log(`listening on ${server.url}`);
 * // later
 * await server.close();
 * await engine.close();
 * ```
 *
 * Without a server, `makeSongs` writes the audio of one request to files:
 *
 * ```ts
 * const request = parseGenerationRequest({ prompt: "slow bossa nova", batch_size: 1, audio_duration: 20 }, engine);
 * const song = await makeSongs(engine, request, {
 *   destination: () => ({ name: "song.mp3", path: "/tmp/song.mp3" }),
 *   maxSourceSeconds: config.sourceMaxSeconds,
 *   signal: AbortSignal.timeout(60_000),
 *   report: ({ value, stage }) => console.log(value, stage),
 * });
 * ```
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { join } from "node:path";
import type { Config } from "./config.js";
import { lockDirectory } from "./directory-lock.js";
import { Engine } from "./engine/engine.js";
import type { MusicEngine } from "./engine/types.js";
import { createLogger, type Logger } from "./log.js";
import { NO_UPLOADS } from "./music/audio/uploads.js";
import { selectSlot } from "./music/models.js";
import { type QueueOptions, TaskQueue } from "./music/queue/queue.js";
import { ServiceClock } from "./music/queue/retention.js";
import type { TaskStore } from "./music/queue/store.js";
import { openTaskStore } from "./music/queue/store-recovery.js";
import { parseGenerationRequest as parseFields } from "./music/request/parse.js";
import type { GenerationRequest } from "./music/request/schema.js";
import {
  type MusicServer,
  type MusicServerOptions,
  startMusicApplication,
  startMusicServer,
  startWorkerServer,
} from "./music/server.js";
import { drawSeed } from "./music/song/seeds.js";
import { SongJobs } from "./music/song-jobs.js";
import type { ObjectStore } from "./music/storage/object-store.js";

export { type Config, ConfigError, loadConfig } from "./config.js";
export { DirectoryInUseError } from "./directory-lock.js";
export type {
  CallOptions,
  Progress,
  RenderResult,
  TrainingCall,
  TrainingEvent,
  TrainingResult,
} from "./engine/addon.js";
export { EngineError } from "./engine/errors.js";
export type {
  ActingAdapter,
  AdapterState,
  FormatRequest,
  LoadedAdapter,
  Metadata,
  ModelEntry,
  MusicEngine,
  Plan,
  PlanRequest,
  Rendering,
  RenderRequest,
  SampleRequest,
  SlotState,
  SongSheet,
  TrainingRequest,
} from "./engine/types.js";
export { type JobOptions, makeSongs } from "./music/job.js";
export type { SongResult, Task, TaskStore } from "./music/queue/store.js";
export type { GenerationRequest } from "./music/request/schema.js";
export type { MusicServer } from "./music/server.js";
export type { TaskProgress } from "./music/song/progress.js";

/**
 * The inference engine of a configuration. Models load when first used, or by `loadSlot`.
 * @param log is told of what a person should know
 * @param onDeviceLost is told where a GPU failed for good. Only a new process computes again: end this one, and tasks
 * that ran are made in the next
 * @throws EngineError ADDON_MISSING where the native addon is not built
 */
export function createEngine(
  config: Config,
  log: (message: string) => void = () => {},
  onDeviceLost?: (error: Error) => void,
): MusicEngine {
  return new Engine(
    {
      checkpointsDirectory: config.checkpointsDirectory,
      slotModels: [config.slot1Model, config.slot2Model, config.slot3Model],
      languageModel: config.languageModel,
      devices: config.devices,
      languageModelDevice: config.languageModelDevice,
      dtype: "auto",
      quantization: config.quantization,
      flashAttention: config.useFlashAttention,
      offload: config.offloadToCpu,
      offloadModel: config.offloadDitToCpu,
      offloadLanguageModel: config.offloadLanguageModelToCpu,
      idleSeconds: config.modelIdleSeconds,
      onDeviceLost,
    },
    log,
  );
}

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

/**
 * Starts the music service; resolves once the models are loaded and jobs run.
 * @throws DirectoryInUseError where another server works on the temporary directory
 */
export function createMusicServer(parts: MusicServerParts): Promise<MusicServer> {
  return startOnStore(parts, startMusicServer);
}

/**
 * Starts a worker of a fleet, which serves `/health` and `/metrics` alone; resolves once it takes tasks.
 * @throws ConfigError where Redis does not answer, DirectoryInUseError as createMusicServer
 */
export function createWorker(parts: MusicServerParts): Promise<Pick<MusicServer, "url" | "close">> {
  return startOnStore(parts, startWorkerServer);
}

/** The service as a part of another server: `app.use("/music", router({ config, engine }))`. */
export interface MusicRouter {
  (request: IncomingMessage, response: ServerResponse, next: (error?: unknown) => void): void;
  /** Resolves once the models are loaded, which songs wait for and /health does not; rejects as createMusicServer does. */
  ready: Promise<void>;
  close(graceSeconds?: number): Promise<void>;
}

/**
 * The music service under a path of an Express application, or of any server with handlers like Express's. It reads the
 * bodies of its requests, and stands before whatever else reads them. The key, the origins and the names of hosts are
 * checked as `config` says; limits on connections are the host's.
 */
export function router(parts: MusicServerParts): MusicRouter {
  const opened = startOnStore(parts, startMusicApplication);
  const started = opened.then(async (application) => {
    await application.started.catch(async (error) => {
      await application.close(0);
      throw error;
    });
    return application;
  });
  let failure: { error: unknown } | undefined;
  started.catch((error: unknown) => {
    failure = { error };
  });
  const handle = (request: IncomingMessage, response: ServerResponse, next: (error?: unknown) => void) => {
    if (request.readableDidRead) {
      next(
        new Error("the body has been read already: use carillon's router before express.json() and its like"),
      );
      return;
    }
    if (failure !== undefined) next(failure.error);
    else opened.then(({ handle }) => handle(request, response), next);
  };
  return Object.assign(handle, {
    ready: started.then(() => {}),
    close: (graceSeconds?: number) =>
      started.then(
        ({ close }) => close(graceSeconds),
        () => {}, // told by `ready`
      ),
  });
}

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
    const { joinFleet } = await import("./music/fleet/join.js");
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
  const { ObjectStore } = await import("./music/storage/object-store.js");
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

/**
 * A generation request from parameters as POST /release_task takes them.
 * @throws RequestError naming the parameter at fault
 */
export function parseGenerationRequest(
  parameters: Readonly<Record<string, unknown>>,
  engine: MusicEngine,
): GenerationRequest {
  return parseFields(parameters, {
    rangePolicy: "refuse",
    isTurbo: (model) => selectSlot(engine.slots(), model).isTurbo,
    uploads: NO_UPLOADS,
    drawSeed,
  });
}
