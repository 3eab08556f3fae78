/** Models: lists for clients, lookup by name, switching. */

import { isAbsolute, posix } from "node:path";
import type { CallOptions } from "../../engine/addon.js";
import { EMBEDDED_LANGUAGE_MODEL, EMBEDDED_MODEL } from "../../engine/checkpoints.js";
import { EngineError } from "../../engine/errors.js";
import { DURATION_SECONDS_RANGE } from "../../engine/metadata.js";
import { INFER_METHODS } from "../../engine/render-parameters.js";
import type {
  LanguageModelInfo,
  ModelCatalog,
  MusicEngine,
  SheetWriter,
  SlotState,
} from "../../engine/types.js";
import { OWNER_SEPARATOR } from "../../models/folder-names.js";
import { HttpError, RequestError } from "../errors.js";
import type { ModelSwitch } from "../request/service-bodies.js";
import { supportedTaskTypes } from "../request/task-types.js";

/**
 * Returns the slot that holds the named model. Returns slot 1 if no model is named, or if the named model is
 * not loaded: clients often send names of models that only other servers have. Callers report the model used
 * and warn about an unknown name.
 */
export function selectSlot(slots: readonly SlotState[], model: string | null): SlotState {
  const loaded = slots.flatMap((slot) => slot.model ?? []);
  const name = model === null ? undefined : findModelByName(loaded, model);
  const named = name === undefined ? undefined : slots.find((slot) => slot.model === name);
  return named ?? (slots[0] as SlotState);
}

/**
 * Finds a model by its exact name, or by the last part of its name, because some clients put a vendor in
 * front of the name. A path, or a model in another owner's folder, must match exactly.
 */
export function findModelByName(models: readonly string[], requested: string): string | undefined {
  if (models.includes(requested)) return requested;
  const own = models.filter((model) => !posix.dirname(model).includes(OWNER_SEPARATOR));
  return own.find((model) => posix.basename(model) === posix.basename(requested));
}

/** Like `findModelByName`, but returns unknown names and absolute paths unchanged. */
function installedModel(models: readonly string[], requested: string): string {
  return isAbsolute(requested) ? requested : (findModelByName(models, requested) ?? requested);
}

const STARTED_AT_SECONDS = Math.floor(Date.now() / 1000);

/**
 * Models that a task can select, default first. While the default model loads for the first time, it is the
 * only one in the list.
 */
export function listModels(catalog: ModelCatalog) {
  const defaultModel = defaultModelName(catalog);
  const inSlots = catalog.slots().map(({ model }) => model);
  const models = catalog
    .models()
    .filter(({ name }) => inSlots.includes(name) || name === defaultModel)
    .map(({ name }) => ({ name, is_default: name === defaultModel }))
    .sort((a, b) => Number(b.is_default) - Number(a.is_default));
  return { models, default_model: defaultModel };
}

/** `listModels` in the format of OpenRouter. */
export function openRouterModels(catalog: ModelCatalog) {
  const data = listModels(catalog).models.map(({ name }) => ({
    id: `acestep/${name}`,
    object: "model",
    owned_by: "acestep",
    name,
    created: STARTED_AT_SECONDS,
    input_modalities: ["text", "audio"],
    output_modalities: ["audio", "text"],
    context_length: 4096,
    max_output_length: DURATION_SECONDS_RANGE.max,
    pricing: { prompt: "0", completion: "0", request: "0", image: "0" },
    description: "Music generation",
  }));
  return { object: "list", data };
}

export function modelInventory(catalog: ModelCatalog) {
  return {
    models: installedModels(catalog).map(({ entry, ...model }) => ({
      ...model,
      supported_task_types: supportedTaskTypes(entry),
      infer_methods: [...INFER_METHODS],
      sings: model.name !== EMBEDDED_MODEL,
    })),
    default_model: defaultModelName(catalog),
    slots: catalog.slots().map(({ slot, model, isLoaded }) => ({ slot, model, is_loaded: isLoaded })),
    lm_models: languageModels(catalog),
    loaded_lm_model: catalog.loadedLanguageModel(),
    llm_initialized: catalog.loadedLanguageModel() !== null,
  };
}

/**
 * Loads the requested models into a slot. Models that are already loaded stay. The slot's old model serves
 * until the new one is ready.
 * @throws HttpError 400 for an unknown slot or model, 500 if loading fails
 */
export async function switchModels({ catalog, loader }: MusicEngine, request: ModelSwitch) {
  const slot = catalog.slots().find((state) => state.slot === request.slot);
  if (slot === undefined) {
    const variable = `SVC_CONFIG_PATH${request.slot}`;
    throw new RequestError(
      `Slot ${request.slot} is not available because ${variable} was not set at startup. Set it and restart the server.`,
    );
  }
  const model = request.model === null ? null : installedModel(namesOf(catalog.models()), request.model);
  if (!slot.isLoaded || (model !== null && model !== slot.model)) {
    const what = `DiT init failed for slot ${slot.slot}`;
    await loadOrRefuse(what, model, () => loader.loadSlot(slot.slot, model));
  }
  if (request.initLanguageModel) {
    const name = installedLanguageModel(catalog, request.languageModel);
    await loadOrRefuse("LLM init failed", name, () => loader.loadLanguageModel(name));
  }
  const loadedLanguageModel = catalog.loadedLanguageModel();
  return {
    message: "Model initialization completed",
    slot: request.slot,
    loaded_model: catalog.slots().find((state) => state.slot === request.slot)?.model ?? null,
    loaded_lm_model: request.initLanguageModel ? loadedLanguageModel : null,
    models: installedModels(catalog).map(({ entry: _entry, ...model }) => model),
    lm_models: languageModels(catalog),
    llm_initialized: loadedLanguageModel !== null,
  };
}

/**
 * Loads the models of slots whose model is missing or unloaded. Clients call this after training, because
 * other servers unload models for training. Carillon keeps its models loaded, so this call rarely has
 * anything to do.
 * @throws HttpError 500 if loading fails
 */
export async function reloadModels({ catalog, loader }: MusicEngine) {
  const reloaded: string[] = [];
  for (const { slot } of catalog.slots().filter(({ isLoaded }) => !isLoaded)) {
    await loadOrRefuse(`DiT init failed for slot ${slot}`, null, () => loader.loadSlot(slot, null));
    reloaded.push(slot === 1 ? "DiT/VAE/Text Encoder" : `DiT/VAE/Text Encoder of slot ${slot}`);
  }
  const what = reloaded.length === 0 ? "all models were already loaded" : `loaded ${reloaded.join(", ")}`;
  return { message: `✅ Service reinitialized: ${what}`, reloaded };
}

/** Loads the language model `named` by the client, or the default. @throws HttpError 400, or 500 if loading fails */
export async function ensureLanguageModel(
  catalog: ModelCatalog,
  writer: SheetWriter,
  call: CallOptions,
  named: string | null = null,
): Promise<LanguageModelInfo> {
  const name = installedLanguageModel(catalog, named);
  return loadOrRefuse("LLM init failed", name, () => writer.prepareLanguageModel(name, call));
}

const NO_SUCH_MODEL: ReadonlySet<unknown> = new Set(["MODEL_NOT_FOUND", "UNSUPPORTED_MODEL"]);

/**
 * Runs `load` and maps its errors to HttpError: 400 if the client `named` a model that does not exist or is unsupported,
 * otherwise 500.
 */
async function loadOrRefuse<T>(what: string, named: string | null, load: () => Promise<T>): Promise<T> {
  try {
    return await load();
  } catch (error) {
    if (error instanceof HttpError) throw error;
    const message = error instanceof Error ? error.message : String(error);
    const isUnknown = named !== null && error instanceof EngineError && NO_SUCH_MODEL.has(error.code);
    const detail = `Model initialization failed: ${what}: ${message}`;
    throw new HttpError(isUnknown ? 400 : 500, detail, {}, { cause: error });
  }
}

function installedModels(catalog: ModelCatalog) {
  const defaultModel = defaultModelName(catalog);
  return catalog
    .models()
    .map((entry) => ({
      name: entry.name,
      is_default: entry.name === defaultModel,
      is_loaded: entry.isLoaded,
      entry,
    }))
    .sort((a, b) => a.name.localeCompare(b.name));
}

function installedLanguageModel(catalog: ModelCatalog, named: string | null): string | null {
  return named === null ? null : installedModel(namesOf(catalog.languageModels()), named);
}

function namesOf(models: readonly { name: string }[]): string[] {
  return models.map(({ name }) => name);
}

function languageModels(catalog: ModelCatalog) {
  return catalog.languageModels().map(({ name, isLoaded }) => ({
    name,
    is_loaded: isLoaded,
    writes_text: name !== EMBEDDED_LANGUAGE_MODEL,
  }));
}

/** Model of slot 1. @throws HttpError 500 if the slot has none yet */
export function requireModel(catalog: ModelCatalog): string {
  const model = catalog.slots()[0]?.model;
  if (model == null) throw new HttpError(500, "Model not initialized");
  return model;
}

/** Model of slot 1, used by tasks that name none. */
function defaultModelName(catalog: ModelCatalog): string | null {
  return catalog.slots()[0]?.model ?? catalog.models().find((model) => model.isDefault)?.name ?? null;
}
