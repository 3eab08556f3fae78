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
 * Without a server, `makeSongs` writes the audio of one request to files (see the README), and `analyze` runs an
 * analysis.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Config } from "./config.js";
import { Engine } from "./engine/engine.js";
import type { MusicEngine } from "./engine/types.js";
import { HttpError } from "./http/http-error.js";
import { NO_UPLOADS } from "./music/audio/uploads.js";
import { selectSlot } from "./music/models/models.js";
import type { GenerationRequest } from "./music/request/generation-request.js";
import { parseGenerationRequest as parseFields } from "./music/request/parse.js";
import type { MusicServer } from "./music/server.js";
import { drawSeed } from "./music/song/seeds.js";
import type { MusicServerParts } from "./music/start.js";

export { type Config, loadConfig } from "./config.js";
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
  FormatRequest,
  Metadata,
  ModelEntry,
  MusicEngine,
  Plan,
  PlanRequest,
  Rendering,
  RenderRequest,
  RenderSong,
  SampleRequest,
  ScaledAdapter,
  SlotState,
  SongSheet,
  TrainingRequest,
} from "./engine/types.js";
export type { SongResult, Task } from "./music/queue/store.js";
export type { GenerationRequest } from "./music/request/generation-request.js";
export type { MusicServer } from "./music/server.js";
export { analyze } from "./music/song/analysis.js";
export { makeSongs, type SongOptions } from "./music/song/make-songs.js";
export type { TaskProgress } from "./music/song/progress.js";
export type { MusicServerParts } from "./music/start.js";
export { ConfigError } from "./system/config-error.js";
export { DirectoryInUseError } from "./system/directory-lock.js";

/**
 * Creates the inference engine of a configuration. Models load on first use, or with `engine.loader.loadSlot`.
 * @param log receives messages for the operator
 * @param onDeviceLost called when a GPU has failed permanently: restart the process, which then repeats interrupted tasks
 * @throws EngineError ADDON_MISSING if the native addon is missing
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
      batchMax: config.batchMax,
      deterministic: config.deterministic,
      sharesPlanning: config.redisUrl === null || config.queueWorkers > 1,
      idleSeconds: config.modelIdleSeconds,
      onDeviceLost,
    },
    log,
  );
}

/**
 * Starts the music service; resolves when the models are loaded and tasks can start.
 * @throws DirectoryInUseError if another server uses the temporary directory
 */
export async function createMusicServer(parts: MusicServerParts): Promise<MusicServer> {
  return (await serving()).startService(parts);
}

/**
 * Starts a fleet worker. Its HTTP server has only `/health` and `/metrics`. Resolves when the worker accepts tasks.
 * @throws ConfigError if Redis does not answer, DirectoryInUseError as in createMusicServer
 */
export async function createWorker(parts: MusicServerParts): Promise<Pick<MusicServer, "url" | "close">> {
  return (await serving()).startWorker(parts);
}

/** Imports the server only when it is used, so that programs without a server start fast. */
const serving = () => import("./music/start.js");

/** Music service for another server: `app.use("/music", router({ config, engine }))`. */
export interface MusicRouter {
  (request: IncomingMessage, response: ServerResponse, next: (error?: unknown) => void): void;
  /**
   * Resolves when the models are loaded; rejects with the errors of createMusicServer, which requests then get, too.
   * Until then songs wait in the queue; /health already answers.
   */
  ready: Promise<void>;
  /** Refuses further requests with an error of status 503. Otherwise like `close` of the server. */
  close(graceSeconds?: number): Promise<void>;
}

/**
 * Mounts the music service under a path of an Express application, or any server with compatible handlers. Place it
 * before body parsers, since it reads request bodies itself. Key, origins and host names are checked according to
 * `config`; limiting connections is up to the host server.
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
  /** Why requests are refused. */
  let failure: { error: unknown } | undefined;
  const ready = started.then(() => {});
  // Also handles the rejection for hosts that do not await `ready`: requests get the error.
  ready.catch((error: unknown) => {
    failure ??= { error };
  });
  const handle = (request: IncomingMessage, response: ServerResponse, next: (error?: unknown) => void) => {
    if (request.readableDidRead) {
      next(
        new Error(
          "the request body was already read: mount carillon's router before express.json() and other body parsers",
        ),
      );
      return;
    }
    if (failure !== undefined) next(failure.error);
    else opened.then(({ handle }) => handle(request, response), next);
  };
  return Object.assign(handle, {
    ready,
    close: (graceSeconds?: number) => {
      failure ??= { error: new HttpError(503, "The music service was closed") };
      return started.then(
        ({ close }) => close(graceSeconds),
        () => {}, // `ready` rejects with the error of the start
      );
    },
  });
}

/**
 * Parses a generation request with the parameters of POST /release_task.
 * @throws RequestError naming the invalid parameter
 */
export function parseGenerationRequest(
  parameters: Readonly<Record<string, unknown>>,
  engine: MusicEngine,
): GenerationRequest {
  return parseFields(parameters, {
    rangePolicy: "refuse",
    slotOf: (model) => selectSlot(engine.catalog.slots(), model),
    uploads: NO_UPLOADS,
    drawSeed,
  });
}
