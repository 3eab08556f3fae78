/** The adapters of one renderer: which are held in memory, and which of them acts. */
import type { CallOptions, NativeAdapter, NativeRenderer } from "./addon.js";
import { EngineError } from "./errors.js";
import type { ActingAdapter, AdapterSource, AdapterState, LoadedAdapter, SongAdapter } from "./types.js";

export const NO_ADAPTERS: AdapterState = { adapters: [], active: null, enabled: true };

/** The adapter that acts in this state: whoever merges adapters, their states follow one another by these rules. */
export function actingOf<T extends LoadedAdapter>({ adapters, active, enabled }: AdapterState<T>): T | null {
  return (enabled && adapters.find(({ name }) => name === active)) || null;
}

/** @throws EngineError ADAPTER where the name is in use */
export function assertFree({ adapters }: AdapterState, name: string): void {
  if (adapters.some((adapter) => adapter.name === name)) {
    throw new EngineError("ADAPTER", `An adapter named ${JSON.stringify(name)} is loaded already.`);
  }
}

/** A loaded adapter is the active one. @throws EngineError ADAPTER where the name is in use, or a LoKr is not alone */
export function withLoaded<T extends LoadedAdapter>(state: AdapterState<T>, adapter: T): AdapterState<T> {
  assertFree(state, adapter.name);
  const adapters = [...state.adapters, adapter];
  // Clients of the interface expect another one to be refused.
  if (adapters.length > 1 && adapters.some(({ kind }) => kind === "lokr")) {
    throw new EngineError("ADAPTER", "A LoKr adapter cannot be loaded beside another adapter: unload first.");
  }
  return { adapters, active: adapter.name, enabled: true };
}

/** @throws EngineError ADAPTER where there is none to enable */
export function withEnabled<T extends LoadedAdapter>(
  state: AdapterState<T>,
  enabled: boolean,
): AdapterState<T> {
  if (state.active !== null) return { ...state, enabled };
  if (enabled) throw noneLoaded();
  return state;
}

/**
 * @param name null: the active one
 * @throws EngineError ADAPTER for a name that no adapter has, and for a scale outside 0 to 1
 */
export function withScale<T extends LoadedAdapter>(
  state: AdapterState<T>,
  name: string | null,
  scale: number,
): AdapterState<T> {
  if (!(scale >= 0 && scale <= 1)) throw new EngineError("ADAPTER", `A scale is from 0 to 1, not ${scale}.`);
  const wanted = name ?? state.active;
  if (wanted === null) throw noneLoaded();
  const names = state.adapters.map((adapter) => adapter.name);
  if (!names.includes(wanted)) {
    const loaded = names.join(", ") || "none";
    throw new EngineError("ADAPTER", `No adapter is named ${JSON.stringify(wanted)}; loaded: ${loaded}.`);
  }
  const adapters = state.adapters.map((other) => (other.name === wanted ? { ...other, scale } : other));
  return { ...state, adapters };
}

function noneLoaded(): EngineError {
  return new EngineError("ADAPTER", "No LoRA adapter loaded. Load one first.");
}

/** At most one adapter acts. Changes are made one at a time: the caller sees to it. */
export class AdapterSet {
  readonly #natives = new Map<string, NativeAdapter>();
  #state = NO_ADAPTERS;
  /** The last adapter that a song brought. */
  #brought: { key: string; native: NativeAdapter } | null = null;
  #merged: NativeAdapter | null = null;
  #acting: ActingAdapter | null = null;

  constructor(private readonly renderer: NativeRenderer) {}

  get state(): AdapterState {
    return this.#state;
  }

  /** What a render that is asked for now happens under: the addon makes changes and renders in the order of calls. */
  get acting(): ActingAdapter | null {
    return this.#acting;
  }

  /**
   * Reads an adapter and makes it the active one, at full scale.
   * @throws EngineError ADAPTER as `withLoaded`; NativeError BAD_CHECKPOINT
   */
  async load({ name, ...files }: AdapterSource, call: CallOptions): Promise<void> {
    assertFree(this.#state, name);
    const native = await this.renderer.loadAdapter(files, call);
    const next = withLoaded(this.#state, { name, scale: 1, ...native.info });
    this.#natives.set(name, native);
    await this.#become(next, call);
  }

  async unload(call: CallOptions): Promise<void> {
    await this.#become(NO_ADAPTERS, call);
    this.#natives.clear();
  }

  async enable(enabled: boolean, call: CallOptions): Promise<void> {
    await this.#become(withEnabled(this.#state, enabled), call);
  }

  async scale(name: string | null, scale: number, call: CallOptions): Promise<void> {
    await this.#become(withScale(this.#state, name, scale), call);
  }

  /** Reads the adapter that a song brings, unless it is the last one that a song brought. @throws NativeError BAD_CHECKPOINT */
  async bring({ digest, path, doraEpsilon }: SongAdapter, call: CallOptions): Promise<NativeAdapter> {
    const key = `${digest} ${doraEpsilon}`;
    if (this.#brought?.key === key) return this.#brought.native;
    const native = await this.renderer.loadAdapter({ path, doraEpsilon }, call);
    this.#brought = { key, native };
    return native;
  }

  /** Null: none. After a failure the base weights act. */
  async apply(acting: ActingAdapter | null, native: NativeAdapter | null, call: CallOptions): Promise<void> {
    if (this.#merged === native && this.#acting?.scale === acting?.scale) return;
    const applied = this.renderer.applyAdapter(native, acting?.scale ?? 0, call);
    this.#merged = native;
    this.#acting = acting && { name: acting.name, scale: acting.scale };
    try {
      await applied;
    } catch (error) {
      this.#merged = null;
      this.#acting = null;
      throw error;
    }
  }

  async #become(next: AdapterState, call: CallOptions): Promise<void> {
    const acting = actingOf(next);
    try {
      await this.apply(acting, acting && (this.#natives.get(acting.name) as NativeAdapter), call);
      this.#state = next;
    } catch (error) {
      this.#state = { ...this.#state, enabled: false };
      throw error;
    }
  }
}
