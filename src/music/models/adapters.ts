/** Adapters of slot 1: load, unload, scale, toggle, status. */
import { basename } from "node:path";
import { activeAdapters } from "../../engine/adapters.js";
import type { AdapterState, LoadedAdapter, MusicEngine } from "../../engine/types.js";
import { HttpError, toHttpError } from "../errors.js";
import type { AdapterLoad, AdapterScale, AdapterToggle } from "../request/adapter-bodies.js";
import { requireModel } from "./models.js";

/** Initial scale of an adapter. The status also reports this scale if no adapter is loaded. */
const FULL_SCALE = 1;

const KIND_NAMES = { lora: "LoRA", lokr: "LoKr", loha: "LoHa", ia3: "IA3" } as const;

export class Adapters {
  /** @param resolve maps a client's path to an absolute path */
  constructor(
    private readonly engine: MusicEngine,
    private readonly resolve: (path: string) => Promise<string>,
  ) {}

  /** All methods throw HttpError: 400 for client errors, 500 before the model is loaded, 503 in a fleet without workers. */
  async status() {
    const { adapters } = await this.#state();
    const newest = adapters.at(-1);
    return {
      lora_loaded: adapters.length > 0,
      use_lora: adapters.some(({ enabled }) => enabled),
      lora_scale: newest?.scale ?? FULL_SCALE,
      adapter_type: newest?.kind ?? null,
      scales: Object.fromEntries(adapters.map(({ name, scale }) => [name, scale])),
      active_adapter: newest?.name ?? null,
      adapters: adapters.map(({ name }) => name),
      enabled_adapters: adapters.filter(({ enabled }) => enabled).map(({ name }) => name),
      // Always false, because Carillon never invents a name for an adapter.
      synthetic_default_mode: false,
    };
  }

  async load({ path, name, doraEpsilon }: AdapterLoad) {
    await this.#state();
    const adapterName = name ?? basename(path);
    const state = await attempt("Failed to load LoRA", async () =>
      this.engine.loadAdapter({ path: await this.resolve(path), name: adapterName, doraEpsilon }),
    );
    const message = loadedMessage(path, adapterName, state);
    return { message, lora_path: path, adapter_name: adapterName };
  }

  async unload({ name }: { name: string | null }) {
    if (name === null && (await this.#state()).adapters.length === 0) {
      return { message: "⚠️ No LoRA adapter loaded." };
    }
    const { adapters } = await attempt("Failed to unload LoRA", () => this.engine.unloadAdapter(name));
    const rest = adapters.map((adapter) => adapter.name).join(", ");
    return {
      message:
        rest === ""
          ? "✅ LoRA unloaded, using base model"
          : `✅ LoRA ${name} unloaded, still loaded: ${rest}`,
    };
  }

  async toggle({ enabled, name }: AdapterToggle) {
    const before = await this.#state();
    const state = await attempt("Failed to toggle LoRA", () => this.engine.enableAdapter(name, enabled));
    const which = name === null ? "LoRA" : `LoRA ${name}`;
    const wanted = enabled ? "enabled" : "disabled";
    const isSame = state.adapters.every((adapter) => find(before, adapter.name)?.enabled === adapter.enabled);
    const message = isSame
      ? `⚠️ Nothing changed: ${state.adapters.length === 0 ? "no LoRA adapter is loaded" : `${which} is already ${wanted}`}`
      : `✅ ${which} ${wanted}`;
    return { message, use_lora: enabled };
  }

  async scale({ scale, name }: AdapterScale) {
    const before = await this.#state();
    const state = await attempt("Failed to set LoRA scale", () => this.engine.scaleAdapter(name, scale));
    const adapterName = name ?? state.adapters.at(-1)?.name ?? null;
    const adapter = adapterName === null ? undefined : find(state, adapterName);
    const shown = `(${adapterName}): ${scale.toFixed(2)}`;
    const resting = adapter?.enabled === false ? " (takes effect when LoRA is enabled)" : "";
    const isSame = adapterName !== null && find(before, adapterName)?.scale === scale;
    const message = isSame
      ? `⚠️ Nothing changed: LoRA scale is already ${shown}${resting}`
      : `✅ LoRA scale ${shown}${resting}`;
    return { message, scale, adapter_name: adapterName };
  }

  async #state(): Promise<AdapterState> {
    const state = await this.engine.adapters();
    requireModel(this.engine);
    return state;
  }
}

function find({ adapters }: AdapterState, name: string): LoadedAdapter | undefined {
  return adapters.find((adapter) => adapter.name === name);
}

function loadedMessage(path: string, name: string, state: AdapterState): string {
  const adapter = find(state, name);
  const unmatched = adapter?.unmatchedTensors.length ?? 0;
  const left = unmatched === 0 ? "" : `, ${unmatched} tensors do not match this model and were skipped`;
  const others = activeAdapters(state).filter((other) => other.name !== name);
  const beside = others.length === 0 ? "" : `; also active: ${others.map((other) => other.name).join(", ")}`;
  return `✅ ${KIND_NAMES[adapter?.kind ?? "lora"]} loaded from ${path} (${adapter?.moduleCount} modules${left})${beside}`;
}

/** Maps errors to HttpError: status 400 if the adapter is damaged or was made for another model. */
async function attempt<T>(what: string, change: () => Promise<T>): Promise<T> {
  try {
    return await change();
  } catch (error) {
    const { status, detail } = toHttpError(error);
    const isBadAdapter = (error as { code?: unknown }).code === "BAD_CHECKPOINT";
    throw new HttpError(isBadAdapter ? 400 : status, `❌ ${what}: ${detail}`, {}, { cause: error });
  }
}
