/** The workers of a fleet: what each tells of itself, which of them can run a request, and the names of their queues. */
import type { Redis } from "ioredis";
import type { Logger } from "../../log.js";
import { HttpError, RequestError } from "../errors.js";
import { namedModel } from "../models.js";
import type { WorkerStatus } from "../queue/job-queue.js";
import type { GenerationRequest } from "../request/schema.js";
import { EVENTS_CHANNEL, keyOf, PREFIX, piped, reached } from "./redis.js";

/**
 * The version of what a task's record says. It is part of the names of queues: a worker takes from those of versions that it knows,
 * and leaves all others to workers that know them.
 */
export const PAYLOAD_VERSION = 1;
/** How often a worker tells of itself, and how long that holds. */
export const HEARTBEAT_MS = 2_000;
const EXPIRY_MS = 8_000;
/** How old the list may be that a submission is judged by. */
const MAX_AGE_MS = 1_000;
const NO_WORKER_RETRY_SECONDS = "10";

/** All announcements that hold; names without one are forgotten. */
const LIST = `
local texts = {}
for _, name in ipairs(redis.call('SMEMBERS', ARGV[1] .. ':workers')) do
  local text = redis.call('GET', ARGV[1] .. ':worker:' .. name)
  if text then table.insert(texts, text) else redis.call('SREM', ARGV[1] .. ':workers', name) end
end
return texts`;

/** What a worker tells of itself. */
export interface Announcement extends WorkerStatus {
  models: {
    name: string;
    slot: number;
    is_loaded: boolean;
    is_turbo: boolean;
    tasks: readonly string[] | null;
    /** See MusicEngine.fingerprint. */
    fingerprint: string;
  }[];
  payload_versions: number[];
}

/** The queue of tasks for a model, and of those among them that name a language model. */
function routeOf(model: string, languageModel: string | null, version = PAYLOAD_VERSION): string {
  // BullMQ allows no colon.
  return [`v${version}`, model, languageModel ?? ""].map(encodeURIComponent).join("~");
}

/** The queue of those tasks of another one that are rendered under an adapter: workers have these for slot 1 alone. */
export function underAdapters(route: string): string {
  return `${route}~adapter`;
}

/** The queues that a worker takes from, those of models that are in memory first. */
export function routesOf({ models, lm_models, payload_versions }: Announcement) {
  const warmFirst = [...models].sort((a, b) => Number(b.is_loaded) - Number(a.is_loaded));
  return warmFirst.flatMap(({ name, slot, is_loaded: isWarm }) =>
    payload_versions.flatMap((version) =>
      [null, ...lm_models].flatMap((lm) => {
        const route = routeOf(name, lm, version);
        const routes = slot === 1 ? [route, underAdapters(route)] : [route];
        return routes.map((route) => ({ route, isWarm }));
      }),
    ),
  );
}

export class Workers {
  #known: Announcement[] = [];
  #refreshedAtMs = Number.NEGATIVE_INFINITY;
  /** The models that this process last announced. */
  #offered = "";
  #timer: NodeJS.Timeout | undefined;

  /** @param preferred the model that a request without a name gets where a worker has it */
  constructor(
    private readonly redis: Redis,
    private readonly preferred: string,
    private readonly log: Logger,
  ) {}

  /** Keeps the list new. */
  async watch(): Promise<void> {
    await this.refresh();
    const refresh = () =>
      this.refresh().catch((err: unknown) => this.log.debug({ err }, "the workers cannot be listed"));
    this.#timer = setInterval(() => void refresh(), MAX_AGE_MS).unref();
  }

  close(): void {
    clearInterval(this.#timer);
  }

  async announce(announcement: Announcement): Promise<void> {
    const { name, models } = announcement;
    const told = this.redis
      .pipeline()
      .set(keyOf("worker", name), JSON.stringify(announcement), "PX", EXPIRY_MS)
      .sadd(keyOf("workers"), name);
    const offered = JSON.stringify(models);
    if (offered !== this.#offered) told.publish(EVENTS_CHANNEL, JSON.stringify({ type: "workers" }));
    await reached(() => piped(told));
    this.#offered = offered;
  }

  /**
   * Those of a worker's models that are what the fleet means by their names: the files of whoever had the name first, and
   * for as long as such workers are there.
   */
  async agreed(models: Announcement["models"]): Promise<Announcement["models"]> {
    const asked = this.redis.pipeline();
    for (const { name, fingerprint } of models) {
      const key = keyOf("checkpoint", name);
      asked.set(key, fingerprint, "PX", EXPIRY_MS, "NX").get(key);
    }
    const answers = await reached(() => piped(asked));
    const same = models.filter(({ fingerprint }, index) => answers[2 * index + 1] === fingerprint);
    const kept = this.redis.pipeline();
    for (const { name } of same) kept.pexpire(keyOf("checkpoint", name), EXPIRY_MS);
    await reached(() => piped(kept));
    return same;
  }

  async withdraw(name: string): Promise<void> {
    await reached(() => this.redis.del(keyOf("worker", name)));
  }

  async refresh(): Promise<readonly Announcement[]> {
    const texts = (await reached(() => this.redis.eval(LIST, 0, PREFIX))) as string[];
    this.#known = texts.map((text) => JSON.parse(text) as Announcement);
    this.#known.sort((a, b) => a.name.localeCompare(b.name));
    this.#refreshedAtMs = performance.now();
    return this.#known;
  }

  /** As they were a moment ago. */
  get known(): readonly Announcement[] {
    return this.#known;
  }

  /** Those that can read what this process writes. */
  get #able(): readonly Announcement[] {
    return this.#known.filter(({ payload_versions }) => payload_versions.includes(PAYLOAD_VERSION));
  }

  /** The models of all workers, the one that a request without a name gets first. */
  get models(): Announcement["models"] {
    const models = new Map<string, Announcement["models"][number]>();
    for (const model of this.#able.flatMap((worker) => worker.models)) {
      const known = models.get(model.name);
      models.set(model.name, { ...model, is_loaded: model.is_loaded || known?.is_loaded === true });
    }
    const names = [...models.keys()];
    const first = namedModel(names, this.preferred) ?? this.#able.at(0)?.models.at(0)?.name;
    return [...models.values()].sort((a, b) => Number(b.name === first) - Number(a.name === first));
  }

  /** The model that a request without a name gets. @throws HttpError 503 where there is no worker to do `what` */
  async preferredModel(what: string): Promise<string> {
    if (this.models.length === 0) await this.refresh();
    const [first] = this.models;
    if (first === undefined) throw noWorker(what);
    return first.name;
  }

  /**
   * The request with the model that it gets, and the queue of those who can run it.
   * @throws HttpError 503 where there is no worker, RequestError where none has the model that the request names
   */
  async route(
    request: GenerationRequest,
  ): Promise<{ request: GenerationRequest; model: string; route: string }> {
    if (performance.now() - this.#refreshedAtMs > MAX_AGE_MS) await this.refresh();
    const first = await this.preferredModel("make songs");
    const names = this.models.map(({ name }) => name);
    const model = request.model === null ? first : namedModel(names, request.model);
    if (model === undefined) throw unknown("model", request.model, names);
    const workers = this.#able.filter(({ models }) => models.some(({ name }) => name === model));
    const { lmModelPath } = request;
    if (lmModelPath === null) return { request: { ...request, model }, model, route: routeOf(model, null) };
    const installed = [...new Set(workers.flatMap(({ lm_models }) => lm_models))];
    const named = namedModel(installed, lmModelPath);
    if (named === undefined) throw unknown("lm_model_path", lmModelPath, installed);
    return { request: { ...request, model, lmModelPath: named }, model, route: routeOf(model, named) };
  }
}

export function noWorker(what: string): HttpError {
  const headers = { "Retry-After": NO_WORKER_RETRY_SECONDS };
  return new HttpError(503, `No worker of the fleet is there to ${what}`, headers);
}

function unknown(parameter: string, asked: string | null, names: readonly string[]): RequestError {
  const list = names.length === 0 ? "none" : names.join(", ");
  return new RequestError(
    `${parameter}: no worker of the fleet has ${JSON.stringify(asked)}; there is ${list}`,
  );
}
