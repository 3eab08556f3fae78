/** Adapters that a renderer has in memory. */
import type { AdapterInfo, CallOptions, JobAdapter, NativeAdapter, NativeRenderer } from "./addon.js";
import type { ScaledAdapter, SongAdapter } from "./types.js";

/** Range of adapter scales. Larger scales ruin the song. Negative scales reverse the effect of the adapter. */
export const ADAPTER_SCALES = { min: -2, max: 2 } as const;

/** Which parts of an adapter were skipped or assumed, for the user. */
export function adapterWarnings({ unmatchedTensors, warnings }: AdapterInfo): string[] {
  const { length } = unmatchedTensors;
  const skipped = length === 0 ? [] : [`${length} tensors do not match this model and were skipped`];
  return [...skipped, ...warnings];
}

export type RenderAdapter = ScaledAdapter & JobAdapter;

/** Keeps the adapters of the last song in memory, because the next song often uses the same. */
export class AdapterCache {
  #adapters = new Map<string, NativeAdapter>();

  constructor(private readonly renderer: NativeRenderer) {}

  /** Reads an adapter's properties, and keeps it in memory for the next song. @throws NativeError BAD_CHECKPOINT */
  async inspect(adapter: SongAdapter, call: CallOptions): Promise<AdapterInfo> {
    const native = await this.#load(adapter, call);
    this.#adapters.set(keyOf(adapter), native);
    return native.info;
  }

  /**
   * Returns the adapters of one song in merge order, without those of scale 0. The order does not depend on the order
   * of the list, so that merged weights round the same way.
   * @throws NativeError BAD_CHECKPOINT
   */
  async load(adapters: readonly SongAdapter[], call: CallOptions): Promise<RenderAdapter[]> {
    const current = new Map<string, NativeAdapter>();
    const parts: RenderAdapter[] = [];
    const orderOf = ({ name, digest }: SongAdapter) => `${name}\0${digest}`;
    for (const adapter of adapters.toSorted((a, b) => (orderOf(a) < orderOf(b) ? -1 : 1))) {
      const key = keyOf(adapter);
      const native = current.get(key) ?? (await this.#load(adapter, call));
      current.set(key, native);
      if (adapter.scale !== 0) parts.push({ name: adapter.name, scale: adapter.scale, adapter: native });
    }
    this.#adapters = current;
    return parts;
  }

  async #load(adapter: SongAdapter, call: CallOptions): Promise<NativeAdapter> {
    const { path, doraEpsilon } = adapter;
    return this.#adapters.get(keyOf(adapter)) ?? this.renderer.loadAdapter({ path, doraEpsilon }, call);
  }
}

function keyOf({ digest, doraEpsilon }: SongAdapter): string {
  return `${digest} ${doraEpsilon}`;
}
