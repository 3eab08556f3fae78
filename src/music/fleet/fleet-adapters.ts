/**
 * Adapters of a fleet. SVC_STORAGE holds the files of each loaded adapter, under the hash of their content.
 * Redis holds one state per model, which every gateway shows and changes. A new task records hash, name and
 * scale of the active adapters. Any worker can therefore make the song, even after the adapters were
 * unloaded.
 */
import { z } from "zod";
import {
  activeAdapters,
  assertAdapterNameIsFree,
  NO_ADAPTERS,
  withAdapterAdded,
  withAdapterRemoved,
  withAdaptersEnabled,
  withScale,
} from "../../engine/adapters.js";
import type { AdapterInfo } from "../../engine/addon.js";
import type { AdapterSource, AdapterState, LoadedAdapter } from "../../engine/types.js";
import type { TaskAdapter } from "../queue/store.js";
import type { AdapterStorage } from "../storage/adapter-storage.js";
import { adapterCallQueue, type RemoteCalls } from "./calls.js";
import type { Fleet } from "./fleet.js";
import { parseJson } from "./messages.js";
import type { Quarantine } from "./quarantine.js";
import { KEY_PREFIX, redisKey } from "./redis.js";

type FleetAdapter = LoadedAdapter & TaskAdapter;
type FleetAdapterState = AdapterState<FleetAdapter>;

const ADAPTERS_KEY = redisKey("adapters");

/** Lua script: replaces a model's adapter state, unless it has changed since it was read. */
const CHANGE = `
if (redis.call('HGET', ARGV[1] .. ':adapters', ARGV[2]) or '') ~= ARGV[3] then return 0 end
redis.call('HSET', ARGV[1] .. ':adapters', ARGV[2], ARGV[4])
return 1`;

export class FleetAdapters {
  constructor(
    private readonly fleet: Fleet,
    private readonly calls: RemoteCalls,
    private readonly storage: AdapterStorage,
  ) {}

  async state(model: string): Promise<AdapterState> {
    return readAdapters(this.fleet.quarantine, model, await this.#text(model));
  }

  /** Stores the adapter and has a worker inspect it. @throws the errors of MusicEngine.loadAdapter */
  async load(model: string, { path, name, doraEpsilon }: AdapterSource): Promise<AdapterState> {
    assertAdapterNameIsFree(await this.state(model), name);
    const adapter = {
      ...(await this.storage.publish(path)),
      name,
      path,
      doraEpsilon,
      scale: 1,
      enabled: true,
    };
    const info = await this.calls.call<AdapterInfo>(adapterCallQueue(model), "inspect", adapter);
    return this.#change(model, (state) => withAdapterAdded(state, { ...adapter, ...info }));
  }

  unload(model: string, name: string | null): Promise<AdapterState> {
    return this.#change(model, (state) => withAdapterRemoved(state, name));
  }

  enable(model: string, name: string | null, enabled: boolean): Promise<AdapterState> {
    return this.#change(model, (state) => withAdaptersEnabled(state, name, enabled));
  }

  scale(model: string, name: string | null, scale: number): Promise<AdapterState> {
    return this.#change(model, (state) => withScale(state, name, scale));
  }

  async #change(
    model: string,
    change: (state: FleetAdapterState) => FleetAdapterState,
  ): Promise<AdapterState> {
    for (;;) {
      const text = await this.#text(model);
      const next = change(await readAdapters(this.fleet.quarantine, model, text));
      const args = [KEY_PREFIX, model, text ?? "", JSON.stringify(next)];
      if ((await this.fleet.redis.attempt(() => this.fleet.redis.eval(CHANGE, 0, ...args))) === 1)
        return next;
    }
  }

  #text(model: string): Promise<string | null> {
    return this.fleet.redis.attempt(() => this.fleet.redis.hget(ADAPTERS_KEY, model));
  }
}

/** Active adapters of the state, in the form that a new task records. */
export function taskAdaptersIn(state: FleetAdapterState): TaskAdapter[] {
  return activeAdapters(state).map(({ name, scale, doraEpsilon, digest, files, entry }) => ({
    ...{ name, scale, doraEpsilon, digest, files, entry },
  }));
}

const stateSchema = z.object({
  adapters: z.array(
    z.looseObject({
      name: z.string(),
      scale: z.number(),
      doraEpsilon: z.enum(["float32", "bfloat16"]),
      digest: z.string(),
      files: z.record(z.string(), z.string()),
      entry: z.string(),
      enabled: z.boolean().optional(),
    }),
  ),
  // Fields of older versions, which had only one active adapter.
  active: z.string().nullish(),
  enabled: z.boolean().optional(),
});

/** Adapter state of a model in Redis. An invalid state goes to quarantine and counts as no adapters. */
export async function readAdapters(
  quarantine: Quarantine,
  model: string,
  text: string | null,
): Promise<FleetAdapterState> {
  const none = NO_ADAPTERS as FleetAdapterState;
  if (text === null) return none;
  const { data } = stateSchema.safeParse(parseJson(text));
  if (data === undefined) {
    await quarantine.moveEntries(ADAPTERS_KEY, [[model, text]]);
    return none;
  }
  const adapters = data.adapters.map((adapter) => ({
    ...adapter,
    enabled: adapter.enabled ?? (data.enabled === true && data.active === adapter.name),
  }));
  return { adapters } as unknown as FleetAdapterState;
}
