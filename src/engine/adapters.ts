/** The adapters of one renderer: which are held in memory, and which of them acts. */
import type { CallOptions, NativeAdapter, NativeRenderer } from "./addon.js";
import { EngineError } from "./errors.js";
import type { ActingAdapter, AdapterSource, AdapterState } from "./types.js";

interface Held {
  native: NativeAdapter;
  scale: number;
}

/** At most one adapter acts. Changes are made one at a time: the caller sees to it. */
export class AdapterSet {
  readonly #renderer: NativeRenderer;
  /** In the order of loading. */
  readonly #held = new Map<string, Held>();
  #active: string | null = null;
  #enabled = true;
  #acting: ActingAdapter | null = null;

  constructor(renderer: NativeRenderer) {
    this.#renderer = renderer;
  }

  get state(): AdapterState {
    return {
      adapters: [...this.#held].map(([name, { native, scale }]) => ({ name, scale, ...native.info })),
      active: this.#active,
      enabled: this.#enabled,
    };
  }

  /** What a render that is asked for now happens under: the addon makes changes and renders in the order of calls. */
  get acting(): ActingAdapter | null {
    return this.#acting;
  }

  /**
   * Reads an adapter and makes it the active one, at full scale.
   * @throws EngineError ADAPTER where the name is in use, or a LoKr would not be alone; NativeError BAD_CHECKPOINT
   */
  async load({ name, ...files }: AdapterSource, call: CallOptions): Promise<void> {
    if (this.#held.has(name)) {
      throw new EngineError("ADAPTER", `An adapter named ${JSON.stringify(name)} is loaded already.`);
    }
    const native = await this.#renderer.loadAdapter(files, call);
    this.#checkCompany(native);
    await this.#apply({ name, scale: 1 }, native, call);
    this.#held.set(name, { native, scale: 1 });
    this.#active = name;
    this.#enabled = true;
  }

  async unload(call: CallOptions): Promise<void> {
    if (this.#active === null) return;
    await this.#apply(null, null, call);
    this.#held.clear();
    this.#active = null;
    this.#enabled = true;
  }

  /** @throws EngineError ADAPTER where there is none to enable */
  async enable(enabled: boolean, call: CallOptions): Promise<void> {
    if (this.#active === null) {
      if (enabled) throw noneLoaded();
      return;
    }
    const { native, scale } = this.#get(this.#active);
    if (enabled) await this.#apply({ name: this.#active, scale }, native, call);
    else await this.#apply(null, null, call);
    this.#enabled = enabled;
  }

  /**
   * @param name null: the active one
   * @throws EngineError ADAPTER for a name that no adapter has, and for a scale outside 0 to 1
   */
  async scale(name: string | null, scale: number, call: CallOptions): Promise<void> {
    if (!(scale >= 0 && scale <= 1))
      throw new EngineError("ADAPTER", `A scale is from 0 to 1, not ${scale}.`);
    const wanted = name ?? this.#active;
    if (wanted === null) throw noneLoaded();
    const adapter = this.#get(wanted);
    if (wanted === this.#active && this.#enabled) {
      await this.#apply({ name: wanted, scale }, adapter.native, call);
    }
    adapter.scale = scale;
  }

  #get(name: string): Held {
    const adapter = this.#held.get(name);
    if (adapter !== undefined) return adapter;
    const names = [...this.#held.keys()].join(", ");
    throw new EngineError(
      "ADAPTER",
      `No adapter is named ${JSON.stringify(name)}; loaded: ${names || "none"}.`,
    );
  }

  /** LoKr adapters stand alone: clients of the interface expect another one to be refused. */
  #checkCompany(native: NativeAdapter): void {
    const kinds = [native, ...[...this.#held.values()].map((adapter) => adapter.native)];
    if (kinds.length > 1 && kinds.some(({ info }) => info.kind === "lokr")) {
      throw new EngineError(
        "ADAPTER",
        "A LoKr adapter cannot be loaded beside another adapter: unload first.",
      );
    }
  }

  /** After a failure the base weights act. */
  async #apply(acting: ActingAdapter | null, native: NativeAdapter | null, call: CallOptions): Promise<void> {
    const applied = this.#renderer.applyAdapter(native, acting?.scale ?? 0, call);
    this.#acting = acting;
    try {
      await applied;
    } catch (error) {
      this.#acting = null;
      this.#enabled = false;
      throw error;
    }
  }
}

function noneLoaded(): EngineError {
  return new EngineError("ADAPTER", "No LoRA adapter loaded. Load one first.");
}
