/** A process joins a fleet: as a gateway, as a worker, or as both. */
import { createRequire } from "node:module";
import { freemem, hostname } from "node:os";
import { v4 as uuid } from "uuid";
import type { Config } from "../../config.js";
import type { FormatRequest, MusicEngine, SampleRequest } from "../../engine/types.js";
import type { Logger } from "../../log.js";
import type { TaskAdapter } from "../queue/store.js";
import type { SongJobs } from "../song-jobs.js";
import type { AdapterShelf } from "../storage/adapter-shelf.js";
import { aboutAdaptersOf, Calls, WORDS } from "./calls.js";
import { Fleet } from "./fleet.js";
import { FleetAdapters } from "./fleet-adapters.js";
import { FleetEngine } from "./fleet-engine.js";
import { FleetQueue } from "./fleet-queue.js";
import { FleetWorker } from "./fleet-worker.js";
import { type Announcement, PAYLOAD_VERSION } from "./workers.js";

const { version } = createRequire(import.meta.url)("../../../package.json") as { version: string };

/** Memory of GPUs is asked for by a program of its own, which is no work for every heartbeat. */
const MEMORY_AGE_MS = 15_000;

export interface FleetParts {
  /** What a gateway knows of models. */
  engine: MusicEngine;
  queue: FleetQueue;
  close(): Promise<void>;
}

/**
 * @param engine null: a gateway, which runs no task
 * @throws ConfigError where Redis does not answer
 */
export async function joinFleet(
  config: Config,
  engine: MusicEngine | null,
  jobs: SongJobs,
  log: Logger,
): Promise<FleetParts> {
  const fleet = await Fleet.open(config.redisUrl as string, config.slot1Model, log);
  const calls = new Calls(fleet);
  const worker =
    engine === null
      ? null
      : new FleetWorker(
          fleet,
          jobs,
          {
            name: `${hostname()}-${process.pid}-${uuid().slice(0, 8)}`,
            places: config.queueWorkers,
            jobTimeoutSeconds: config.jobTimeoutSeconds,
            averageWindow: config.averageWindow,
            describe: describer(engine, config),
            answer: () => answerCalls(calls, engine, jobs.adapters),
          },
          log,
        );
  const options = {
    capacity: config.queueMaxSize,
    averageJobSeconds: config.averageJobSeconds,
    ended: jobs.ended.bind(jobs),
  };
  return {
    engine: new FleetEngine(fleet.workers, new FleetAdapters(fleet, calls, jobs.adapters), calls),
    queue: new FleetQueue(fleet, options, log, worker),
    close: async () => {
      await calls.close();
      await fleet.close();
    },
  };
}

/** What the engine can tell those who ask. */
function answerCalls(calls: Calls, engine: MusicEngine, shelf: AdapterShelf): void {
  if (engine.languageModels().length > 0) {
    calls.answer(WORDS, async (question, data, signal) => {
      await engine.prepareLanguageModel(null, { signal });
      if (question === "formatInput") return engine.formatInput(data as FormatRequest, { signal });
      return engine.createSample(data as SampleRequest, { signal });
    });
  }
  const model = engine.slots()[0]?.model;
  if (model == null) return;
  calls.answer(aboutAdaptersOf(model), (_question, data, signal) => {
    const adapter = data as TaskAdapter;
    return shelf.lend(adapter, (path) => engine.inspectAdapter({ ...adapter, path }, { signal }));
  });
}

/** What the engine has now, in the words of an announcement. */
function describer(engine: MusicEngine, { devices }: Config) {
  const fingerprints = new Map<string, string>();
  let freeBytes = 0;
  let askedMs = Number.NEGATIVE_INFINITY;
  return async (): Promise<Omit<Announcement, "name" | "places" | "running" | "is_draining">> => {
    if (performance.now() - askedMs > MEMORY_AGE_MS) {
      const [gpu] = await engine.gpus().catch(() => []);
      freeBytes = gpu?.freeBytes ?? freemem();
      askedMs = performance.now();
    }
    const installed = engine.models();
    const slots = engine
      .slots()
      .flatMap((slot) => (slot.model === null ? [] : { ...slot, model: slot.model }));
    for (const { model } of slots) {
      if (!fingerprints.has(model)) fingerprints.set(model, await engine.fingerprint(model));
    }
    const models = slots.map(({ slot, model, isTurbo }) => {
      const entry = installed.find(({ name }) => name === model);
      return {
        name: model,
        slot,
        is_loaded: entry?.isLoaded ?? true,
        is_turbo: isTurbo,
        tasks: entry?.supportedTasks ?? null,
        fingerprint: fingerprints.get(model) as string,
      };
    });
    return {
      version,
      device: devices[0],
      free_memory_bytes: freeBytes,
      models,
      lm_models: engine.languageModels().map(({ name }) => name),
      payload_versions: [PAYLOAD_VERSION],
    };
  };
}
