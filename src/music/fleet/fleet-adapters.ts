/** The adapters of a fleet: one state for each model, which every gateway shows and changes; tasks take what acts along. */
import {
  actingOf,
  assertFree,
  NO_ADAPTERS,
  withEnabled,
  withLoaded,
  withScale,
} from "../../engine/adapters.js";
import type { AdapterInfo } from "../../engine/addon.js";
import type { AdapterSource, AdapterState, LoadedAdapter } from "../../engine/types.js";
import type { TaskAdapter } from "../queue/store.js";
import type { AdapterShelf } from "../storage/adapter-shelf.js";
import { aboutAdaptersOf, type Calls } from "./calls.js";
import type { Fleet } from "./fleet.js";
import { keyOf, PREFIX, reached } from "./redis.js";

type FleetAdapter = LoadedAdapter & TaskAdapter;
type FleetAdapterState = AdapterState<FleetAdapter>;

/** The states by model. */
const ADAPTERS_KEY = keyOf("adapters");

/** Where the state still is what it was. */
const CHANGE = `
if (redis.call('HGET', ARGV[1] .. ':adapters', ARGV[2]) or '') ~= ARGV[3] then return 0 end
redis.call('HSET', ARGV[1] .. ':adapters', ARGV[2], ARGV[4])
return 1`;

export class FleetAdapters {
  constructor(
    private readonly fleet: Fleet,
    private readonly calls: Calls,
    private readonly shelf: AdapterShelf,
  ) {}

  async state(model: string): Promise<AdapterState> {
    return parsed(await this.#text(model));
  }

  /** Stores the adapter, has a worker look at it, and makes it the active one. @throws as MusicEngine.loadAdapter */
  async load(model: string, { path, name, doraEpsilon }: AdapterSource): Promise<AdapterState> {
    assertFree(await this.state(model), name);
    const adapter = { ...(await this.shelf.publish(path)), name, doraEpsilon, scale: 1 };
    const info = await this.calls.ask<AdapterInfo>(aboutAdaptersOf(model), "inspect", adapter);
    return this.#change(model, (state) => withLoaded(state, { ...adapter, ...info }));
  }

  unload(model: string): Promise<AdapterState> {
    return this.#change(model, () => NO_ADAPTERS as FleetAdapterState);
  }

  enable(model: string, enabled: boolean): Promise<AdapterState> {
    return this.#change(model, (state) => withEnabled(state, enabled));
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
      const next = change(parsed(text));
      const args = [PREFIX, model, text ?? "", JSON.stringify(next)];
      if ((await reached(() => this.fleet.redis.eval(CHANGE, 0, ...args))) === 1) return next;
    }
  }

  #text(model: string): Promise<string | null> {
    return reached(() => this.fleet.redis.hget(ADAPTERS_KEY, model));
  }
}

/** What a new task is rendered under where this is the state of its model. */
export function taskAdapterIn(text: string | null): TaskAdapter | null {
  const acting = actingOf(parsed(text));
  if (acting === null) return null;
  const { name, scale, doraEpsilon, digest, files, entry } = acting;
  return { name, scale, doraEpsilon, digest, files, entry };
}

function parsed(text: string | null): FleetAdapterState {
  return (text === null ? NO_ADAPTERS : JSON.parse(text)) as FleetAdapterState;
}
