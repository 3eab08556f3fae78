/** Adapters that a renderer has in memory, and which of them are active. */
import type { AdapterInfo, CallOptions, JobAdapter, NativeAdapter, NativeRenderer } from "./addon.js";
import { EngineError } from "./errors.js";
import type { AdapterSource, AdapterState, LoadedAdapter, ScaledAdapter, SongAdapter } from "./types.js";

export const NO_ADAPTERS: AdapterState = { adapters: [] };

/** Range of adapter scales. Larger scales ruin the song. Negative scales reverse the effect of the adapter. */
export const ADAPTER_SCALES = { min: -2, max: 2 } as const;

/** Active adapters, in merge order. */
export function activeAdapters<T extends LoadedAdapter>({ adapters }: AdapterState<T>): T[] {
  return inOrder(adapters.filter(({ enabled, scale }) => enabled && scale !== 0));
}

/** Sorts by name. Merged weights round the same way, whatever the order in which adapters were loaded. */
function inOrder<T extends { name: string; digest?: string }>(adapters: readonly T[]): T[] {
  const keyOf = ({ name, digest = "" }: T) => `${name}\0${digest}`;
  return adapters.toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
}

/** @throws EngineError ADAPTER if the name is taken */
export function assertAdapterNameIsFree({ adapters }: AdapterState, name: string): void {
  if (adapters.some((adapter) => adapter.name === name)) {
    throw new EngineError("ADAPTER", `An adapter named ${JSON.stringify(name)} is already loaded.`);
  }
}

/** @throws EngineError ADAPTER if no adapter has the name */
export function findAdapter<T extends LoadedAdapter>({ adapters }: AdapterState<T>, name: string): T {
  const found = adapters.find((adapter) => adapter.name === name);
  if (found !== undefined) return found;
  const loaded = adapters.map((adapter) => adapter.name).join(", ") || "none";
  throw new EngineError("ADAPTER", `No adapter is named ${JSON.stringify(name)}; loaded: ${loaded}.`);
}

/** @throws EngineError ADAPTER if the name is taken */
export function withAdapterAdded<T extends LoadedAdapter>(
  state: AdapterState<T>,
  adapter: T,
): AdapterState<T> {
  assertAdapterNameIsFree(state, adapter.name);
  return { adapters: [...state.adapters, adapter] };
}

/** Removes the adapter with this name; null removes all. @throws EngineError ADAPTER for an unknown name */
export function withAdapterRemoved<T extends LoadedAdapter>(
  state: AdapterState<T>,
  name: string | null,
): AdapterState<T> {
  if (name === null) return { adapters: [] };
  const gone = findAdapter(state, name);
  return { adapters: state.adapters.filter((adapter) => adapter !== gone) };
}

/**
 * Enables or disables adapters.
 * @param name null for all adapters
 * @throws EngineError ADAPTER for an unknown name, or if no adapter is loaded that could be enabled
 */
export function withAdaptersEnabled<T extends LoadedAdapter>(
  state: AdapterState<T>,
  name: string | null,
  enabled: boolean,
): AdapterState<T> {
  if (name !== null) return changed(state, findAdapter(state, name), { enabled });
  if (enabled && state.adapters.length === 0) throw noneLoaded();
  return { adapters: state.adapters.map((adapter) => ({ ...adapter, enabled })) };
}

/**
 * Sets the scale of an adapter.
 * @param name null for the adapter that was loaded last
 * @throws EngineError ADAPTER for an unknown name, or if no adapter is loaded
 */
export function withScale<T extends LoadedAdapter>(
  state: AdapterState<T>,
  name: string | null,
  scale: number,
): AdapterState<T> {
  const adapter = name === null ? state.adapters.at(-1) : findAdapter(state, name);
  if (adapter === undefined) throw noneLoaded();
  return changed(state, adapter, { scale });
}

function changed<T extends LoadedAdapter>(
  { adapters }: AdapterState<T>,
  adapter: T,
  change: Partial<LoadedAdapter>,
): AdapterState<T> {
  return { adapters: adapters.map((other) => (other === adapter ? { ...other, ...change } : other)) };
}

function noneLoaded(): EngineError {
  return new EngineError("ADAPTER", "No LoRA adapter loaded. Load one first.");
}

export type RenderAdapter = ScaledAdapter & JobAdapter;

/** Adapters that a renderer has in memory. Not safe for concurrent changes. */
export class AdapterSet {
  readonly #natives = new Map<string, NativeAdapter>();
  #state = NO_ADAPTERS;
  /** Cache of the last song's adapters, keyed by digest, because the next song often uses the same. */
  #songCache = new Map<string, NativeAdapter>();

  constructor(private readonly renderer: NativeRenderer) {}

  get state(): AdapterState {
    return this.#state;
  }

  get active(): RenderAdapter[] {
    return activeAdapters(this.#state).map(({ name, scale }) => ({
      name,
      scale,
      adapter: this.#natives.get(name) as NativeAdapter,
    }));
  }

  /** Loads an adapter at scale 1. @throws EngineError ADAPTER if the name is taken; NativeError BAD_CHECKPOINT */
  async load(source: AdapterSource, call: CallOptions): Promise<void> {
    assertAdapterNameIsFree(this.#state, source.name);
    const { name, path, doraEpsilon } = source;
    const native = await this.renderer.loadAdapter({ path, doraEpsilon }, call);
    const adapter = { name, path, doraEpsilon, scale: 1, enabled: true, ...native.info };
    this.#state = withAdapterAdded(this.#state, adapter);
    this.#natives.set(name, native);
  }

  unload(name: string | null): void {
    this.#state = withAdapterRemoved(this.#state, name);
    for (const known of [...this.#natives.keys()]) {
      if (name === null || known === name) this.#natives.delete(known);
    }
  }

  enable(name: string | null, enabled: boolean): void {
    this.#state = withAdaptersEnabled(this.#state, name, enabled);
  }

  scale(name: string | null, scale: number): void {
    this.#state = withScale(this.#state, name, scale);
  }

  /** Reads an adapter's properties without loading it. @throws NativeError BAD_CHECKPOINT */
  async inspect({ path, doraEpsilon }: SongAdapter, call: CallOptions): Promise<AdapterInfo> {
    return (await this.renderer.loadAdapter({ path, doraEpsilon }, call)).info;
  }

  /**
   * Loads the adapters of one song. Adapters that the last song used come from the cache.
   * @throws NativeError BAD_CHECKPOINT
   */
  async loadForSong(adapters: readonly SongAdapter[], call: CallOptions): Promise<RenderAdapter[]> {
    const known = this.#songCache;
    const current = new Map<string, NativeAdapter>();
    const parts: RenderAdapter[] = [];
    for (const { name, scale, digest, path, doraEpsilon } of inOrder(adapters)) {
      const key = `${digest} ${doraEpsilon}`;
      const adapter =
        current.get(key) ?? known.get(key) ?? (await this.renderer.loadAdapter({ path, doraEpsilon }, call));
      current.set(key, adapter);
      if (scale !== 0) parts.push({ name, scale, adapter });
    }
    this.#songCache = current;
    return parts;
  }
}
