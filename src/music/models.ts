/** What clients learn of the models, which model a name means, and how models are switched. */
import { isAbsolute, posix } from "node:path";
import type { CallOptions } from "../engine/addon.js";
import { EngineError } from "../engine/errors.js";
import { DURATION_SECONDS_RANGE } from "../engine/metadata.js";
import type { MusicEngine, SlotState } from "../engine/types.js";
import { HttpError, RequestError } from "./errors.js";
import { TASK_TYPES, type TaskType } from "./request/schema.js";
import type { ModelSwitch } from "./request/service-bodies.js";

/**
 * The slot with the named model. No name, or one that no slot has loaded, means slot 1: clients send the
 * names of other installations, and the result says which model was used.
 */
export function selectSlot(slots: readonly SlotState[], model: string | null): SlotState {
  const loaded = slots.flatMap((slot) => slot.model ?? []);
  const name = model === null ? undefined : namedModel(loaded, model);
  const named = name === undefined ? undefined : slots.find((slot) => slot.model === name);
  return named ?? (slots[0] as SlotState);
}

/**
 * The model with exactly the name that a client asks for, else the one with its last part: clients put a vendor before
 * it. A path means that folder alone.
 */
export function namedModel(models: readonly string[], asked: string): string | undefined {
  if (models.includes(asked)) return asked;
  return models.find((model) => posix.basename(model) === posix.basename(asked));
}

/** As `namedModel` among what is installed; what is no such model stays as it is, and may be a path. */
function installedModel(models: readonly string[], asked: string): string {
  return isAbsolute(asked) ? asked : (namedModel(models, asked) ?? asked);
}

const STARTED_AT_SECONDS = Math.floor(Date.now() / 1000);

/**
 * What a model is made for: what its configuration says, else three tasks of a turbo model. Others are not refused: what
 * comes of them is for the client to judge.
 */
export function supportedTaskTypes(engine: MusicEngine, name: string): readonly TaskType[] {
  const model = engine.models().find((candidate) => candidate.name === name);
  if (model?.supportedTasks) return TASK_TYPES.filter((task) => model.supportedTasks?.includes(task));
  return model?.isTurbo === true ? ["text2music", "cover", "repaint"] : TASK_TYPES;
}

/** The models that a task can select, the default first; while that loads for the first time, it stands there alone. */
export function listModels(engine: MusicEngine) {
  const defaultModel = defaultModelName(engine);
  const inSlots = engine.slots().map(({ model }) => model);
  const models = engine
    .models()
    .filter(({ name }) => inSlots.includes(name) || name === defaultModel)
    .map(({ name }) => ({ name, is_default: name === defaultModel }))
    .sort((a, b) => Number(b.is_default) - Number(a.is_default));
  return { models, default_model: defaultModel };
}

/** The models of `listModels` as clients of chat models read them. */
export function openRouterModels(engine: MusicEngine) {
  const data = listModels(engine).models.map(({ name }) => ({
    id: `acestep/${name}`,
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

/** Everything that is installed. */
export function modelInventory(engine: MusicEngine) {
  return {
    models: installedModels(engine).map((model) => ({
      ...model,
      supported_task_types: supportedTaskTypes(engine, model.name),
    })),
    default_model: defaultModelName(engine),
    slots: engine.slots().map(({ slot, model, isLoaded }) => ({ slot, model, is_loaded: isLoaded })),
    lm_models: languageModels(engine),
    loaded_lm_model: engine.loadedLanguageModel(),
    llm_initialized: engine.loadedLanguageModel() !== null,
  };
}

/**
 * Loads what the client asks for; what is loaded already stays as it is, and an old model serves until the
 * new one is ready.
 * @throws HttpError 400 for a slot or model that does not exist, 500 where loading fails
 */
export async function switchModels(engine: MusicEngine, request: ModelSwitch) {
  const slot = engine.slots().find((state) => state.slot === request.slot);
  if (slot === undefined) {
    const variable = `SVC_CONFIG_PATH${request.slot}`;
    throw new RequestError(
      `Slot ${request.slot} is not available because ${variable} was not set at startup. Set it and restart the server.`,
    );
  }
  const model = request.model === null ? null : installedModel(namesOf(engine.models()), request.model);
  if (!slot.isLoaded || (model !== null && model !== slot.model)) {
    const what = `DiT init failed for slot ${slot.slot}`;
    await loadOrRefuse(what, model, () => engine.loadSlot(slot.slot, model));
  }
  if (request.initLanguageModel) {
    const name = installedLanguageModel(engine, request.languageModel);
    await loadOrRefuse("LLM init failed", name, () => engine.loadLanguageModel(name));
  }
  const loadedLanguageModel = engine.loadedLanguageModel();
  return {
    message: "Model initialization completed",
    slot: request.slot,
    loaded_model: engine.slots().find((state) => state.slot === request.slot)?.model ?? null,
    loaded_lm_model: request.initLanguageModel ? loadedLanguageModel : null,
    models: installedModels(engine),
    lm_models: languageModels(engine),
    llm_initialized: loadedLanguageModel !== null,
  };
}

/**
 * Loads the models of slots that have none, and those that rest. Training and preparation unload nothing here, so there is seldom any:
 * clients call it after them because other servers need it.
 * @throws HttpError 500 where loading fails
 */
export async function reloadModels(engine: MusicEngine) {
  const reloaded: string[] = [];
  for (const { slot } of engine.slots().filter(({ isLoaded }) => !isLoaded)) {
    await loadOrRefuse(`DiT init failed for slot ${slot}`, null, () => engine.loadSlot(slot, null));
    reloaded.push(slot === 1 ? "DiT/VAE/Text Encoder" : `DiT/VAE/Text Encoder of slot ${slot}`);
  }
  const what = reloaded.length === 0 ? "everything was loaded already" : `loaded ${reloaded.join(", ")}`;
  return { message: `✅ Service reinitialized: ${what}`, reloaded };
}

/**
 * Makes a language model ready: the one that the client `named`, else the default one.
 * @throws HttpError 400 where the client named one that does not exist, 500 where loading fails
 */
export async function readyLanguageModel(
  engine: MusicEngine,
  call: CallOptions,
  named: string | null = null,
): Promise<void> {
  const name = installedLanguageModel(engine, named);
  await loadOrRefuse("LLM init failed", name, () => engine.prepareLanguageModel(name, call));
}

/** A model that the client `named` and that does not exist is the client's mistake, all else the server's. */
async function loadOrRefuse(what: string, named: string | null, load: () => Promise<unknown>): Promise<void> {
  try {
    await load();
  } catch (error) {
    if (error instanceof HttpError) throw error;
    const message = error instanceof Error ? error.message : String(error);
    const isUnknown = named !== null && error instanceof EngineError && error.code === "MODEL_NOT_FOUND";
    const detail = `Model initialization failed: ${what}: ${message}`;
    throw new HttpError(isUnknown ? 400 : 500, detail, {}, { cause: error });
  }
}

function installedModels(engine: MusicEngine) {
  const defaultModel = defaultModelName(engine);
  return engine
    .models()
    .map(({ name, isLoaded }) => ({ name, is_default: name === defaultModel, is_loaded: isLoaded }))
    .sort((a, b) => a.name.localeCompare(b.name));
}

/** Null where the client named none. */
function installedLanguageModel(engine: MusicEngine, named: string | null): string | null {
  return named === null ? null : installedModel(namesOf(engine.languageModels()), named);
}

function namesOf(models: readonly { name: string }[]): string[] {
  return models.map(({ name }) => name);
}

function languageModels(engine: MusicEngine) {
  return engine.languageModels().map(({ name, isLoaded }) => ({ name, is_loaded: isLoaded }));
}

/** @throws HttpError 500 before slot 1 has a model, which adapters are for */
export function requireModel(engine: MusicEngine): void {
  if (engine.slots()[0]?.model == null) throw new HttpError(500, "Model not initialized");
}

/** The model of slot 1: what a task gets that names none. */
function defaultModelName(engine: MusicEngine): string | null {
  return engine.slots()[0]?.model ?? engine.models().find((model) => model.isDefault)?.name ?? null;
}
