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
import type { Config } from "./config.js";
import { Engine } from "./engine/engine.js";
import type { MusicEngine } from "./engine/types.js";
import { NO_UPLOADS } from "./music/audio/uploads.js";
import { selectSlot } from "./music/models.js";
import { parseGenerationRequest as parseFields } from "./music/request/parse.js";
import type { GenerationRequest } from "./music/request/schema.js";
import type { MusicServer } from "./music/server.js";
import { drawSeed } from "./music/song/seeds.js";
import type { MusicServerParts } from "./music/start.js";

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
export type { MusicServerParts } from "./music/start.js";

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

/**
 * Starts the music service; resolves once the models are loaded and jobs run.
 * @throws DirectoryInUseError where another server works on the temporary directory
 */
export async function createMusicServer(parts: MusicServerParts): Promise<MusicServer> {
  return (await serving()).startService(parts);
}

/**
 * Starts a worker of a fleet, which serves `/health` and `/metrics` alone; resolves once it takes tasks.
 * @throws ConfigError where Redis does not answer, DirectoryInUseError as createMusicServer
 */
export async function createWorker(parts: MusicServerParts): Promise<Pick<MusicServer, "url" | "close">> {
  return (await serving()).startWorker(parts);
}

/** Loaded here, for who makes songs without a server waits for none of it. */
const serving = () => import("./music/start.js");

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
  const opened = serving().then(({ startApplication }) => startApplication(parts));
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
