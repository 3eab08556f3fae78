/** Endpoints of loaded adapters: load, unload, scale, toggle, status. */
import { basename } from "node:path";
import { adapterWarnings } from "../../engine/adapters.js";
import type { ModelCatalog } from "../../engine/types.js";
import { HttpError, toHttpError } from "../errors.js";
import type { GenerationRequest } from "../request/generation-request.js";
import type { RequestedAdapter } from "../request/loras.js";
import type { AdapterLoad, AdapterScale, AdapterToggle } from "../request/training-bodies.js";
import type { RequestedAdapters } from "../song/requested-adapters.js";
import {
  type AdapterRecord,
  activeAdapters,
  assertNameIsFree,
  FULL_SCALE,
  type LoadedAdapter,
  type LoadedAdapters,
  taskAdapter,
  withAdapter,
  withEnabled,
  withoutAdapter,
  withScale,
} from "./loaded-adapters.js";
import { selectSlot } from "./models.js";
import { styleFolder } from "./style-folder.js";

const KIND_NAMES = { lora: "LoRA", lokr: "LoKr", loha: "LoHa", ia3: "IA3" } as const;

/** Name of an adapter whose client gave none: the last part of the path that says what it is. */
function styleName(path: string): string {
  return basename(styleFolder(path)) || basename(path);
}

export class Adapters {
  constructor(
    private readonly record: AdapterRecord,
    private readonly catalog: Pick<ModelCatalog, "slots">,
    private readonly requested: RequestedAdapters,
  ) {}

  /**
   * Resolves the adapters of a request. A request that lists none gets the active ones of its model. Analyses use no
   * adapters.
   * @throws EngineError ADAPTER if the files of one are gone, and the errors of RequestedAdapters.resolveAll
   */
  async ofRequest(
    { analysis, model, loras }: Pick<GenerationRequest, "analysis" | "model" | "loras">,
    signal: AbortSignal,
  ): Promise<RequestedAdapter[]> {
    if (analysis !== null) return [];
    if (loras !== null) return this.requested.resolveAll(loras, () => this.loaded(), signal);
    const slot = selectSlot(this.catalog.slots(), model);
    const active = slot.model === null ? [] : activeAdapters(await this.record.read(slot.model));
    return Promise.all(active.map(async (one) => ({ ...(await taskAdapter(one)), scale: one.scale })));
  }

  /** All methods below throw HttpError: 400 for client errors, 500 before the model is loaded, 503 in a fleet without workers. */
  async status() {
    const adapters = await this.loaded();
    const newest = adapters.at(-1);
    return {
      lora_loaded: adapters.length > 0,
      use_lora: adapters.some(({ enabled }) => enabled),
      // Reported even if no adapter is loaded.
      lora_scale: newest?.scale ?? FULL_SCALE,
      adapter_type: newest?.kind ?? null,
      scales: Object.fromEntries(adapters.map(({ name, scale }) => [name, scale])),
      active_adapter: newest?.name ?? null,
      adapters: adapters.map(({ name }) => name),
      enabled_adapters: adapters.filter(({ enabled }) => enabled).map(({ name }) => name),
      paths: Object.fromEntries(adapters.map(({ name, path }) => [name, this.requested.shorten(path)])),
      // Always false, because Carillon never invents a name for an adapter.
      synthetic_default_mode: false,
    };
  }

  async load({ path, name, doraEpsilon }: AdapterLoad) {
    const model = await this.record.model();
    const adapterName = name ?? styleName(path);
    const loaded = await attempt("Failed to load LoRA", async () => {
      assertNameIsFree(await this.record.read(model), adapterName);
      const source = { path: await this.requested.resolve(path), name: adapterName, doraEpsilon };
      const adapter = await this.record.inspect(model, source);
      return this.record.change(model, (loaded) => withAdapter(loaded, adapter));
    });
    const message = loadedMessage(path, adapterName, loaded);
    return { message, lora_path: path, adapter_name: adapterName };
  }

  async unload({ name }: { name: string | null }) {
    if (name === null && (await this.loaded()).length === 0) {
      return { message: "⚠️ No LoRA adapter loaded." };
    }
    const adapters = await this.#change("Failed to unload LoRA", (loaded) => withoutAdapter(loaded, name));
    const rest = adapters.map((adapter) => adapter.name).join(", ");
    return {
      message:
        rest === ""
          ? "✅ LoRA unloaded, using base model"
          : `✅ LoRA ${name} unloaded, still loaded: ${rest}`,
    };
  }

  async toggle({ enabled, name }: AdapterToggle) {
    const before = await this.loaded();
    const after = await this.#change("Failed to toggle LoRA", (loaded) => withEnabled(loaded, name, enabled));
    const which = name === null ? "LoRA" : `LoRA ${name}`;
    const wanted = enabled ? "enabled" : "disabled";
    const isSame = after.every((adapter) => find(before, adapter.name)?.enabled === adapter.enabled);
    const message = isSame
      ? `⚠️ Nothing changed: ${after.length === 0 ? "no LoRA adapter is loaded" : `${which} is already ${wanted}`}`
      : `✅ ${which} ${wanted}`;
    return { message, use_lora: enabled };
  }

  async scale({ scale, name }: AdapterScale) {
    const before = await this.loaded();
    const after = await this.#change("Failed to set LoRA scale", (loaded) => withScale(loaded, name, scale));
    const adapterName = name ?? after.at(-1)?.name ?? null;
    const adapter = adapterName === null ? undefined : find(after, adapterName);
    const shown = `(${adapterName}): ${scale.toFixed(2)}`;
    const resting = adapter?.enabled === false ? " (takes effect when LoRA is enabled)" : "";
    const isSame = adapterName !== null && find(before, adapterName)?.scale === scale;
    const message = isSame
      ? `⚠️ Nothing changed: LoRA scale is already ${shown}${resting}`
      : `✅ LoRA scale ${shown}${resting}`;
    return { message, scale, adapter_name: adapterName };
  }

  /** Called by one server of a fleet at a time. @throws StoreError, or the signal's reason */
  removeUnused(signal: AbortSignal): Promise<void> {
    return this.record.removeUnused(signal);
  }

  async loaded(): Promise<LoadedAdapters> {
    return this.record.read(await this.record.model());
  }

  async #change(what: string, change: (loaded: LoadedAdapters) => LoadedAdapters): Promise<LoadedAdapters> {
    const model = await this.record.model();
    return attempt(what, () => this.record.change(model, change));
  }
}

function find(loaded: LoadedAdapters, name: string): LoadedAdapter | undefined {
  return loaded.find((adapter) => adapter.name === name);
}

function loadedMessage(path: string, name: string, loaded: LoadedAdapters): string {
  const adapter = find(loaded, name);
  const notes = adapter === undefined ? [] : adapterWarnings(adapter);
  const left = notes.map((note) => `, ${note}`).join("");
  const others = activeAdapters(loaded).filter((other) => other.name !== name);
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
