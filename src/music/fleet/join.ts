/** Joins a process to a fleet: as a gateway, a worker, or both. */
import { randomUUID } from "node:crypto";
import { createRequire } from "node:module";
import { freemem, hostname } from "node:os";
import { pathToFileURL } from "node:url";
import type { Config } from "../../config.js";
import type { FormatRequest, MusicEngine, SampleRequest } from "../../engine/types.js";
import type { Logger } from "../../system/log.js";
import type { LoadedAdapter } from "../models/loaded-adapters.js";
import type { Task } from "../queue/store.js";
import type { SongRunner } from "../song/song-runner.js";
import type { AdapterStorage, StoredAdapter } from "../storage/adapter-storage.js";
import type { ObjectStore } from "../storage/object-store.js";
import { directoryTokens, objectTokens } from "../storage/store-token.js";
import type { TaskFiles } from "../task-files.js";
import { adapterCallQueue, RemoteCalls, TEXT_CALL_QUEUE } from "./calls.js";
import { Fleet } from "./fleet.js";
import { FleetAdapters } from "./fleet-adapters.js";
import { FleetDeletionRecord } from "./fleet-deletions.js";
import { fleetCatalog, fleetSheetWriter } from "./fleet-models.js";
import { FleetQueue } from "./fleet-queue.js";
import { FleetWorker } from "./fleet-worker.js";
import { SharedStore } from "./shared-store.js";
import { type Announcement, READABLE_VERSIONS } from "./workers.js";

const { version } = createRequire(import.meta.url)("../../../package.json") as { version: string };

/**
 * Maximum age of the reported GPU memory. A separate program reads it, which is too slow for every heartbeat.
 */
const MEMORY_AGE_MS = 15_000;

/**
 * @param runner null for a gateway, which runs no tasks
 * @param storage null if the store is a directory
 * @throws ConfigError if Redis does not answer, or if the other servers use another store
 */
export async function joinFleet(
  config: Config,
  files: TaskFiles,
  runner: SongRunner | null,
  storage: ObjectStore | null,
  log: Logger,
) {
  const fleet = await Fleet.open(config.redisUrl as string, config.slot1Model, log);
  const store = sharedStore(fleet, config, storage, log);
  fleet.sharedStore = store;
  await store.join().catch(async (error: unknown) => {
    await fleet.close();
    throw error;
  });
  files.deletions.record = new FleetDeletionRecord(fleet.redis);
  const calls = new RemoteCalls(fleet);
  const worker =
    runner === null
      ? null
      : new FleetWorker(
          fleet,
          runner,
          {
            name: `${hostname()}-${process.pid}-${randomUUID().slice(0, 8)}`,
            places: config.queueWorkers,
            jobTimeoutSeconds: config.jobTimeoutSeconds,
            averageWindow: config.averageWindow,
            describe: describer(runner.engine, config),
            serveCalls: () => serveCalls(calls, runner.engine, files.adapters),
          },
          log,
        );
  const options = {
    capacity: config.queueMaxSize,
    averageJobSeconds: config.averageJobSeconds,
    cleanUp: (task: Task) => (runner ?? files).cleanUp(task),
  };
  return {
    catalog: fleetCatalog(fleet.workers),
    writer: fleetSheetWriter(fleet.workers, calls),
    engine: null,
    adapters: new FleetAdapters(fleet, calls, files.adapters),
    queue: new FleetQueue(fleet, options, log, worker),
    close: async () => {
      await calls.close();
      await fleet.close();
    },
  };
}

function sharedStore(fleet: Fleet, { storage: setting }: Config, objects: ObjectStore | null, log: Logger) {
  const directory = setting?.directory ?? "";
  const tokens = objects === null ? directoryTokens(directory) : objectTokens(objects);
  const location = objects?.location ?? pathToFileURL(directory).href;
  return new SharedStore(fleet.redis, tokens, location, log);
}

function serveCalls(calls: RemoteCalls, engine: MusicEngine, storage: AdapterStorage): void {
  if (engine.catalog.languageModels().length > 0) {
    calls.serve(TEXT_CALL_QUEUE, async (name, data, signal) => {
      await engine.planner.prepareLanguageModel(null, { signal });
      if (name === "formatInput") return engine.planner.formatInput(data as FormatRequest, { signal });
      return engine.planner.createSample(data as SampleRequest, { signal });
    });
  }
  const model = engine.catalog.slots()[0]?.model;
  if (model == null) return;
  calls.serve(adapterCallQueue(model), (_name, data, signal) => {
    const { stored, ...adapter } = data as LoadedAdapter & { stored: StoredAdapter };
    const { digest } = stored;
    return storage.withAdapter(
      stored,
      (path) => engine.renderer.inspectAdapter({ ...adapter, path, digest }, { signal }),
      signal,
    );
  });
}

function describer(engine: MusicEngine, { devices }: Config) {
  const fingerprints = new Map<string, string>();
  let freeBytes = 0;
  let askedMs = Number.NEGATIVE_INFINITY;
  return async (): Promise<Omit<Announcement, "name" | "places" | "running" | "is_draining">> => {
    if (performance.now() - askedMs > MEMORY_AGE_MS) {
      const [gpu] = await engine.catalog.gpus().catch(() => []);
      freeBytes = gpu?.freeBytes ?? freemem();
      askedMs = performance.now();
    }
    const installed = engine.catalog.models();
    const slots = engine.catalog
      .slots()
      .flatMap((slot) => (slot.model === null ? [] : { ...slot, model: slot.model }));
    for (const { model } of slots) {
      if (!fingerprints.has(model)) fingerprints.set(model, await engine.catalog.fingerprint(model));
    }
    const models = slots.map(({ slot, model, isTurbo, codebookSize, latentChannels }) => {
      const entry = installed.find(({ name }) => name === model);
      return {
        name: model,
        slot,
        is_loaded: entry?.isLoaded ?? true,
        is_turbo: isTurbo,
        codebook_size: codebookSize,
        latent_channels: latentChannels,
        tasks: entry?.supportedTasks ?? null,
        fingerprint: fingerprints.get(model) as string,
      };
    });
    return {
      version,
      device: devices[0],
      free_memory_bytes: freeBytes,
      models,
      lm_models: engine.catalog.languageModels().map(({ name }) => name),
      payload_versions: [...READABLE_VERSIONS],
    };
  };
}
