/**
 * Loaded adapters of a fleet. SVC_STORAGE holds the files of each one, under the hash of their content. Redis holds
 * the list of each model, which every gateway shows and changes.
 */
import { z } from "zod";
import type { AdapterInfo } from "../../engine/addon.js";
import type { AdapterSource } from "../../engine/types.js";
import {
  type AdapterRecord,
  FULL_SCALE,
  type LoadedAdapter,
  type LoadedAdapters,
} from "../models/loaded-adapters.js";
import type { AdapterStorage, StoredAdapter } from "../storage/adapter-storage.js";
import { adapterCallQueue, type RemoteCalls } from "./calls.js";
import type { Fleet } from "./fleet.js";
import { parseJson } from "./messages.js";
import { KEY_PREFIX, redisKey } from "./redis.js";

const ADAPTERS_KEY = redisKey("adapters");

/** Lua script: replaces the list of a model, unless it has changed since it was read. */
const CHANGE = `
if (redis.call('HGET', ARGV[1] .. ':adapters', ARGV[2]) or '') ~= ARGV[3] then return 0 end
redis.call('HSET', ARGV[1] .. ':adapters', ARGV[2], ARGV[4])
return 1`;

export class FleetAdapters implements AdapterRecord {
  constructor(
    private readonly fleet: Fleet,
    private readonly calls: RemoteCalls,
    private readonly storage: AdapterStorage,
  ) {}

  model(): Promise<string> {
    return this.fleet.workers.preferredModel("take adapters");
  }

  async read(model: string): Promise<LoadedAdapters> {
    return this.#parse(await this.#text(model));
  }

  async change(model: string, change: (loaded: LoadedAdapters) => LoadedAdapters): Promise<LoadedAdapters> {
    for (;;) {
      const text = await this.#text(model);
      const next = change(this.#parse(text));
      const args = [KEY_PREFIX, model, text ?? "", JSON.stringify(next)];
      if ((await this.fleet.redis.attempt(() => this.fleet.redis.eval(CHANGE, 0, ...args))) === 1)
        return next;
    }
  }

  /** Stores the adapter and has a worker inspect it. */
  async inspect(model: string, source: AdapterSource): Promise<LoadedAdapter> {
    const adapter = {
      ...source,
      scale: FULL_SCALE,
      enabled: true,
      stored: await this.storage.publish(source.path),
    };
    const info = await this.calls.call<AdapterInfo>(adapterCallQueue(model), "inspect", adapter);
    return { ...adapter, ...info };
  }

  removeUnused(signal: AbortSignal): Promise<void> {
    return this.storage.removeUnused(() => this.#namesInUse(), signal);
  }

  async #namesInUse(): Promise<Set<string>> {
    const used: (StoredAdapter | undefined)[] = [];
    for (const model of await this.fleet.redis.attempt(() => this.fleet.redis.hkeys(ADAPTERS_KEY))) {
      used.push(...(await this.read(model)).map((adapter) => adapter.stored));
    }
    for (const id of await this.fleet.store.unfinished()) {
      const task = await this.fleet.store.get(id);
      used.push(...(task?.request.loras ?? []).map((adapter) => adapter.stored));
    }
    return new Set(used.flatMap((adapter) => Object.values(adapter?.files ?? {})));
  }

  #text(model: string): Promise<string | null> {
    return this.fleet.redis.attempt(() => this.fleet.redis.hget(ADAPTERS_KEY, model));
  }

  /** Loaded adapters of a model; none if the list in Redis cannot be read. */
  #parse(text: string | null): LoadedAdapters {
    if (text === null) return [];
    const { data } = listSchema.safeParse(parseJson(text));
    if (data === undefined) this.fleet.redis.logUnreadable(ADAPTERS_KEY, "it is not a list of adapters");
    return (data ?? []) as unknown as LoadedAdapters;
  }
}

const stored = z.object({
  digest: z.string(),
  files: z.record(z.string(), z.string()),
  entry: z.string(),
});

const adapter = z.looseObject({
  name: z.string(),
  path: z.string(),
  scale: z.number(),
  doraEpsilon: z.enum(["float32", "bfloat16"]),
  enabled: z.boolean(),
});

/** Older versions wrote an object with a list of adapters, whose `stored` fields were their own. */
const listSchema = z.union([
  z.array(adapter.extend({ stored })),
  z
    .object({ adapters: z.array(adapter.extend(stored.shape)) })
    .transform(({ adapters }) =>
      adapters.map(({ digest, files, entry, ...rest }) => ({ ...rest, stored: { digest, files, entry } })),
    ),
]);
