/** What clients learn of the adapters of slot 1 and how they change them. */
import { basename, isAbsolute } from "node:path";
import type { AdapterState, LoadedAdapter, MusicEngine } from "../engine/types.js";
import { HttpError, toHttpError } from "./errors.js";
import { requireModel } from "./models.js";
import type { PermittedRoot } from "./permitted-root.js";
import type { AdapterLoad, AdapterScale } from "./request/adapter-bodies.js";

/** The scale that an adapter starts with, and the one shown where there is none. */
const FULL_SCALE = 1;

export class Adapters {
  /** @param isLocal whether only programs of this machine reach the service: they may name any path */
  constructor(
    private readonly engine: MusicEngine,
    private readonly root: PermittedRoot,
    private readonly isLocal: boolean,
  ) {}

  /** @throws HttpError as all of these: 400 for what the client can mend, 500 before the model is loaded, 503 where a fleet has none */
  async status() {
    const state = await this.#state();
    const { adapters, active, enabled } = state;
    const shown = activeOf(state);
    return {
      lora_loaded: adapters.length > 0,
      use_lora: active !== null && enabled,
      lora_scale: shown?.scale ?? FULL_SCALE,
      adapter_type: shown?.kind ?? null,
      scales: Object.fromEntries(adapters.map(({ name, scale }) => [name, scale])),
      active_adapter: active,
      adapters: adapters.map(({ name }) => name),
      // The name is never made up: every adapter has one.
      synthetic_default_mode: false,
    };
  }

  async load({ path, name, doraEpsilon }: AdapterLoad) {
    await this.#state();
    const adapterName = name ?? basename(path);
    const state = await attempt("Failed to load LoRA", async () =>
      this.engine.loadAdapter({ path: await this.#resolve(path), name: adapterName, doraEpsilon }),
    );
    return { message: loadedMessage(path, activeOf(state)), lora_path: path, adapter_name: adapterName };
  }

  async unload() {
    if ((await this.#state()).active === null) return { message: "⚠️ No LoRA adapter loaded." };
    await attempt("Failed to unload LoRA", () => this.engine.unloadAdapters());
    return { message: "✅ LoRA unloaded, using base model" };
  }

  async toggle(enabled: boolean) {
    await this.#state();
    await attempt("Failed to toggle LoRA", () => this.engine.enableAdapter(enabled));
    return { message: `✅ LoRA ${enabled ? "enabled" : "disabled"}`, use_lora: enabled };
  }

  async scale({ scale, name }: AdapterScale) {
    await this.#state();
    const state = await attempt("Failed to set LoRA scale", () => this.engine.scaleAdapter(name, scale));
    const adapterName = name ?? state.active;
    const resting = state.enabled ? "" : " (acts once LoRA is enabled)";
    const message = `✅ LoRA scale (${adapterName}): ${scale.toFixed(2)}${resting}`;
    return { message, scale, adapter_name: adapterName };
  }

  async #state(): Promise<AdapterState> {
    const state = await this.engine.adapters();
    requireModel(this.engine);
    return state;
  }

  #resolve(path: string): Promise<string> {
    return this.isLocal && isAbsolute(path) ? Promise.resolve(path) : this.root.resolve(path);
  }
}

function activeOf({ adapters, active }: AdapterState): LoadedAdapter | undefined {
  return adapters.find(({ name }) => name === active);
}

function loadedMessage(path: string, adapter: LoadedAdapter | undefined): string {
  const unmatched = adapter?.unmatchedTensors.length ?? 0;
  const left = unmatched === 0 ? "" : `, ${unmatched} tensors fit nothing in this model and were left out`;
  return `✅ ${adapter?.kind === "lokr" ? "LoKr" : "LoRA"} loaded from ${path} (${adapter?.moduleCount} modules${left})`;
}

/** A damaged adapter, or one of another model, is the client's mistake as much as a wrong name. */
async function attempt<T>(what: string, change: () => Promise<T>): Promise<T> {
  try {
    return await change();
  } catch (error) {
    const { status, detail } = toHttpError(error);
    const isBadAdapter = (error as { code?: unknown }).code === "BAD_CHECKPOINT";
    throw new HttpError(isBadAdapter ? 400 : status, `❌ ${what}: ${detail}`, {}, { cause: error });
  }
}
