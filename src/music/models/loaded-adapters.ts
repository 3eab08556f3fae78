/**
 * Adapters that clients loaded with /v1/lora/load. They are the default of a new task's `loras`: submission writes the
 * active ones into the task, so a song does not depend on what is loaded when it is made.
 */
import type { AdapterInfo } from "../../engine/addon.js";
import { EngineError } from "../../engine/errors.js";
import type { AdapterSource, MusicEngine, ScaledAdapter } from "../../engine/types.js";
import type { RequestedAdapter } from "../request/loras.js";
import { adapterSignature, type StoredAdapter } from "../storage/adapter-storage.js";
import { requireModel } from "./models.js";

export interface LoadedAdapter extends AdapterInfo, AdapterSource, ScaledAdapter {
  enabled: boolean;
  /** Files of the adapter in the object store; only in a fleet. */
  stored?: StoredAdapter;
}

/** The loaded adapters of a model, in load order. All enabled ones are active together. */
export type LoadedAdapters = readonly LoadedAdapter[];

/** Keeps the loaded adapters of each model: in this process, or in the Redis of a fleet. */
export interface AdapterRecord {
  /** Model that adapters are loaded for. @throws HttpError 500 before it is loaded, 503 in a fleet without workers */
  model(): Promise<string>;
  read(model: string): Promise<LoadedAdapters>;
  /** Replaces the adapters of a model with the result of `change`, which may be called several times. */
  change(model: string, change: (loaded: LoadedAdapters) => LoadedAdapters): Promise<LoadedAdapters>;
  /** Validates an adapter against the model. @throws EngineError ADAPTER, NativeError BAD_CHECKPOINT, StoreError */
  inspect(model: string, source: AdapterSource): Promise<LoadedAdapter>;
  /** Deletes stored files of adapters that are neither loaded nor used by an unfinished task. */
  removeUnused(signal: AbortSignal): Promise<void>;
}

/** Record of a process that makes its own songs. It holds the adapters of one model, as loading a model drops them. */
export class OwnAdapterRecord implements AdapterRecord {
  #model = "";
  #loaded: LoadedAdapters = [];

  constructor(private readonly engine: MusicEngine) {}

  async model(): Promise<string> {
    const model = requireModel(this.engine.catalog);
    if (model !== this.#model) this.#loaded = [];
    this.#model = model;
    return model;
  }

  async read(model: string): Promise<LoadedAdapters> {
    return model === (await this.model()) ? this.#loaded : [];
  }

  async change(_model: string, change: (loaded: LoadedAdapters) => LoadedAdapters): Promise<LoadedAdapters> {
    this.#loaded = change(this.#loaded);
    return this.#loaded;
  }

  async inspect(_model: string, source: AdapterSource): Promise<LoadedAdapter> {
    const digest = await adapterSignature(source.path);
    const info = await this.engine.renderer.inspectAdapter({ ...source, scale: FULL_SCALE, digest });
    return { ...source, ...info, scale: FULL_SCALE, enabled: true };
  }

  async removeUnused(): Promise<void> {
    // This process reads adapters where they are, and stores none.
  }
}

/** Scale of an adapter after loading. */
export const FULL_SCALE = 1;

/** Enabled adapters whose scale is not 0. */
export function activeAdapters(loaded: LoadedAdapters): LoadedAdapters {
  return loaded.filter(({ enabled, scale }) => enabled && scale !== 0);
}

/**
 * The fields of a loaded adapter that a task needs to use it.
 * @throws EngineError ADAPTER if its files are gone
 */
export async function taskAdapter({
  name,
  path,
  doraEpsilon,
  stored,
}: LoadedAdapter): Promise<Omit<RequestedAdapter, "scale">> {
  if (stored !== undefined) return { name, path, doraEpsilon, stored };
  await adapterSignature(path).catch((cause: Error) => {
    const quoted = JSON.stringify(name);
    const advice = `Restore it, or unload it: POST /v1/lora/unload {"adapter_name": ${quoted}}`;
    throw new EngineError("ADAPTER", `The loaded adapter ${quoted} is gone: ${cause.message}`, {
      cause,
      advice,
    });
  });
  return { name, path, doraEpsilon };
}

/** @throws EngineError ADAPTER if the name is taken */
export function assertNameIsFree(loaded: LoadedAdapters, name: string): void {
  if (loaded.some((adapter) => adapter.name === name)) {
    throw new EngineError("ADAPTER", `An adapter named ${JSON.stringify(name)} is already loaded.`);
  }
}

/** @throws EngineError ADAPTER if no adapter has the name */
export function findAdapter(loaded: LoadedAdapters, name: string): LoadedAdapter {
  const found = loaded.find((adapter) => adapter.name === name);
  if (found !== undefined) return found;
  const names = loaded.map((adapter) => adapter.name).join(", ") || "none";
  throw new EngineError("ADAPTER", `No adapter is named ${JSON.stringify(name)}; loaded: ${names}.`);
}

/** @throws EngineError ADAPTER if the name is taken */
export function withAdapter(loaded: LoadedAdapters, adapter: LoadedAdapter): LoadedAdapters {
  assertNameIsFree(loaded, adapter.name);
  return [...loaded, adapter];
}

/** @param name null for all adapters. @throws EngineError ADAPTER for an unknown name */
export function withoutAdapter(loaded: LoadedAdapters, name: string | null): LoadedAdapters {
  if (name === null) return [];
  const gone = findAdapter(loaded, name);
  return loaded.filter((adapter) => adapter !== gone);
}

/**
 * @param name null for all adapters
 * @throws EngineError ADAPTER for an unknown name, or if no adapter is loaded that could be enabled
 */
export function withEnabled(loaded: LoadedAdapters, name: string | null, enabled: boolean): LoadedAdapters {
  if (name !== null) return changed(loaded, findAdapter(loaded, name), { enabled });
  if (enabled && loaded.length === 0) throw noneLoaded();
  return loaded.map((adapter) => ({ ...adapter, enabled }));
}

/**
 * @param name null for the adapter that was loaded last
 * @throws EngineError ADAPTER for an unknown name, or if no adapter is loaded
 */
export function withScale(loaded: LoadedAdapters, name: string | null, scale: number): LoadedAdapters {
  const adapter = name === null ? loaded.at(-1) : findAdapter(loaded, name);
  if (adapter === undefined) throw noneLoaded();
  return changed(loaded, adapter, { scale });
}

function changed(
  loaded: LoadedAdapters,
  adapter: LoadedAdapter,
  change: Partial<LoadedAdapter>,
): LoadedAdapters {
  return loaded.map((other) => (other === adapter ? { ...other, ...change } : other));
}

function noneLoaded(): EngineError {
  return new EngineError("ADAPTER", "No LoRA adapter loaded. Load one first.");
}
