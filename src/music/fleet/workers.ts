/** The workers of a fleet: their announcements, the choice of a queue for a request, and the names of the queues. */
import { z } from "zod";
import type { Logger } from "../../system/log.js";
import { HttpError, RequestError } from "../errors.js";
import { findModelByName } from "../models/models.js";
import { workerStatus } from "../queue/task-queue.js";
import type { GenerationRequest } from "../request/generation-request.js";
import { parseJson } from "./messages.js";
import { type FleetRedis, KEY_PREFIX, redisKey } from "./redis.js";

/**
 * Version of task records. It is part of queue names: a worker takes only tasks of versions that it can read, so an
 * older worker leaves newer tasks to others. Update workers before gateways.
 */
export const RECORD_VERSION = 3;
/** Versions of task records that this process can run. In version 1 a task has at most one adapter; up to 2 its request is flat. */
export const READABLE_VERSIONS: readonly number[] = [1, 2, RECORD_VERSION];
/** Interval and expiry of announcements. */
export const HEARTBEAT_MS = 2_000;
const EXPIRY_MS = 8_000;
/** Maximum age of the worker list when a task is submitted. */
const MAX_AGE_MS = 1_000;
const NO_WORKER_RETRY_SECONDS = "10";

/** Lua script: returns all current announcements and removes names whose announcement has expired. */
const LIST = `
local texts = {}
for _, name in ipairs(redis.call('SMEMBERS', ARGV[1] .. ':workers')) do
  local text = redis.call('GET', ARGV[1] .. ':worker:' .. name)
  if text then table.insert(texts, name) table.insert(texts, text) else redis.call('SREM', ARGV[1] .. ':workers', name) end
end
return texts`;

const announcementSchema = workerStatus.extend({
  models: z.array(
    workerStatus.shape.models.element.extend({
      is_turbo: z.boolean(),
      /** Codebook size of the model; absent in announcements of older versions. */
      codebook_size: z.number().nullable().optional(),
      latent_channels: z.number().nullable().optional(),
      tasks: z.array(z.string()).readonly().nullable(),
      /** Fingerprint of the model's files; see `MusicEngine.fingerprint`. */
      fingerprint: z.string(),
    }),
  ),
  payload_versions: z.array(z.number()),
});
export type Announcement = z.output<typeof announcementSchema>;

/** Whether the text is the name of a task queue. */
export function isTaskQueueName(text: string): boolean {
  return /^v\d+~[^:~]+~[^:~]*(~adapter)?$/.test(text);
}

/** Name of the queue of a model: `v3~MODEL~`, or `v3~MODEL~LM` if the request names a language model. */
function routeOf(model: string, languageModel: string | null, version = RECORD_VERSION): string {
  // BullMQ allows no colons in queue names.
  return [`v${version}`, model, languageModel ?? ""].map(encodeURIComponent).join("~");
}

/** Returns the queues from which a worker takes tasks. Queues of models that are in memory come first. */
export function queuesOfWorker({ models, lm_models, payload_versions }: Announcement) {
  const warmFirst = [...models].sort((a, b) => Number(b.is_loaded) - Number(a.is_loaded));
  return warmFirst.flatMap(({ name, is_loaded: isWarm }) =>
    payload_versions.flatMap((version) =>
      [null, ...lm_models].flatMap((lm) => {
        const route = routeOf(name, lm, version);
        // Gateways of older versions put tasks with adapters into a queue of their own.
        return [route, `${route}~adapter`].map((route) => ({ route, isWarm }));
      }),
    ),
  );
}

export class Workers {
  #known: Announcement[] = [];
  #refreshedAtMs = Number.NEGATIVE_INFINITY;
  /** Models that this process last announced. */
  #offered = "";
  #timer: NodeJS.Timeout | undefined;

  /** @param preferred name of the default model; ignored while no worker has this model */
  constructor(
    private readonly redis: FleetRedis,
    private readonly preferred: string,
    private readonly log: Logger,
  ) {}

  async watch(): Promise<void> {
    await this.refresh();
    const refresh = () =>
      this.refresh().catch((err: unknown) => this.log.debug({ err }, "could not list the workers"));
    this.#timer = setInterval(() => void refresh(), MAX_AGE_MS).unref();
  }

  close(): void {
    clearInterval(this.#timer);
  }

  async announce(announcement: Announcement): Promise<void> {
    const { name, models } = announcement;
    const offered = JSON.stringify(models);
    await this.redis.batch((pipeline) => {
      pipeline.set(redisKey("worker", name), JSON.stringify(announcement), "PX", EXPIRY_MS);
      pipeline.sadd(redisKey("workers"), name);
      if (offered !== this.#offered) {
        pipeline.publish(this.redis.eventsChannel, JSON.stringify({ type: "workers" }));
      }
    });
    this.#offered = offered;
  }

  /**
   * Returns those models of a worker whose files are the same on all workers: no song may be made from two
   * checkpoints. The first worker that announces a model defines the model's files, as long as a worker with
   * these files runs. To replace a checkpoint, stop all workers with the old files.
   */
  async matchingModels(models: Announcement["models"]): Promise<Announcement["models"]> {
    const answers = await this.redis.batch((pipeline) => {
      for (const { name, fingerprint } of models) {
        const key = redisKey("checkpoint", name);
        pipeline.set(key, fingerprint, "PX", EXPIRY_MS, "NX").get(key);
      }
    });
    const same = models.filter(({ fingerprint }, index) => answers[2 * index + 1] === fingerprint);
    await this.redis.batch((pipeline) => {
      for (const { name } of same) pipeline.pexpire(redisKey("checkpoint", name), EXPIRY_MS);
    });
    return same;
  }

  async withdraw(name: string): Promise<void> {
    await this.redis.attempt(() => this.redis.del(redisKey("worker", name)));
  }

  async refresh(): Promise<readonly Announcement[]> {
    const texts = (await this.redis.attempt(() => this.redis.eval(LIST, 0, KEY_PREFIX))) as string[];
    const known: Announcement[] = [];
    for (let index = 0; index < texts.length; index += 2) {
      const [name, text] = texts.slice(index, index + 2) as [string, string];
      const { data } = announcementSchema.safeParse(parseJson(text));
      if (data?.name === name) known.push(data);
      else this.redis.logUnreadable(redisKey("worker"), "it is not a worker's announcement");
    }
    this.#known = known;
    this.#known.sort((a, b) => a.name.localeCompare(b.name));
    this.#refreshedAtMs = performance.now();
    return this.#known;
  }

  /** Workers at the time of the last refresh. */
  get known(): readonly Announcement[] {
    return this.#known;
  }

  /** Workers that can read this process's records. */
  get #compatible(): readonly Announcement[] {
    return this.#known.filter(({ payload_versions }) => payload_versions.includes(RECORD_VERSION));
  }

  /** Models of all workers, the default model first. */
  get models(): Announcement["models"] {
    const models = new Map<string, Announcement["models"][number]>();
    for (const model of this.#compatible.flatMap((worker) => worker.models)) {
      const known = models.get(model.name);
      models.set(model.name, { ...model, is_loaded: model.is_loaded || known?.is_loaded === true });
    }
    const names = [...models.keys()];
    const first = findModelByName(names, this.preferred) ?? this.#compatible.at(0)?.models.at(0)?.name;
    return [...models.values()].sort((a, b) => Number(b.name === first) - Number(a.name === first));
  }

  /** Names of the language models of all workers. */
  get languageModels(): readonly string[] {
    return [...new Set(this.#known.flatMap(({ lm_models }) => lm_models))];
  }

  /**
   * Returns the default model.
   * @param what action that the error names, such as "make songs"
   * @throws HttpError 503 without workers
   */
  async preferredModel(what: string): Promise<string> {
    if (this.models.length === 0) await this.refresh();
    const [first] = this.models;
    if (first === undefined) throw noWorkerError(what);
    return first.name;
  }

  /**
   * Chooses the model of a request and the queue for its task.
   * @throws HttpError 503 without workers; RequestError for an unknown model
   */
  async route(request: GenerationRequest): Promise<{ request: GenerationRequest; route: string }> {
    if (performance.now() - this.#refreshedAtMs > MAX_AGE_MS) await this.refresh();
    const first = await this.preferredModel("make songs");
    const names = this.models.map(({ name }) => name);
    const model = request.model === null ? first : findModelByName(names, request.model);
    if (model === undefined) throw unknown("model", request.model, names);
    const workers = this.#compatible.filter(({ models }) => models.some(({ name }) => name === model));
    const { languageModel } = request.planning;
    if (languageModel === null) return { request: { ...request, model }, route: routeOf(model, null) };
    const installed = [...new Set(workers.flatMap(({ lm_models }) => lm_models))];
    const named = findModelByName(installed, languageModel);
    if (named === undefined) throw unknown("lm_model_path", languageModel, installed);
    const planning = { ...request.planning, languageModel: named };
    return { request: { ...request, model, planning }, route: routeOf(model, named) };
  }
}

export function noWorkerError(action: string): HttpError {
  const headers = { "Retry-After": NO_WORKER_RETRY_SECONDS };
  return new HttpError(503, `No worker of the fleet can ${action}; start one or retry later`, headers);
}

function unknown(parameter: string, requested: string | null, names: readonly string[]): RequestError {
  const list = names.length === 0 ? "none" : names.join(", ");
  return new RequestError(
    `${parameter}: no worker of the fleet has ${JSON.stringify(requested)}; available: ${list}`,
  );
}
