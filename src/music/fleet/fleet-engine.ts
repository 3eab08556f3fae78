/**
 * The engine of a gateway, which has none: what the workers tell of their models. What is done to one machine's models,
 * and what waits for a language model's words without being a task, it refuses.
 */
import type { RuntimeInfo } from "../../engine/addon.js";
import type { AdapterState, ModelEntry, MusicEngine, SlotState } from "../../engine/types.js";
import { HttpError } from "../errors.js";
import type { Workers } from "./workers.js";

export const FLEET_REFUSAL =
  "A fleet's servers do not do this, for it would change one machine alone: ask a server that works alone";

function refused(): never {
  throw new HttpError(501, FLEET_REFUSAL);
}

const refuse = async (): Promise<never> => refused();

export class FleetEngine implements MusicEngine {
  readonly usesEmbeddedModel = false;
  readonly createSample = refuse;
  readonly formatInput = refuse;
  readonly plan = refuse;
  readonly understand = refuse;
  readonly render = refuse;
  readonly encodeCodes = refuse;
  readonly prepareSample = refuse;
  readonly loadSlot = refuse;
  readonly loadLanguageModel = refuse;
  readonly prepareLanguageModel = refuse;
  readonly loadAdapter = refuse;
  readonly unloadAdapters = refuse;
  readonly enableAdapter = refuse;
  readonly scaleAdapter = refuse;
  readonly inspectSamples = refuse;
  readonly train = refuse;

  constructor(private readonly workers: Workers) {}

  runtimeInfo(): RuntimeInfo {
    return { libtorchVersion: "", devices: [], cpuDtype: "float32" };
  }

  async gpus() {
    return [];
  }

  /** One for each model of the fleet; one without a model while there is no worker. */
  slots(): SlotState[] {
    const slots = this.workers.models.map(({ name, is_turbo }, index) => ({
      slot: index + 1,
      model: name,
      isTurbo: is_turbo,
    }));
    return slots.length > 0 ? slots : [{ slot: 1, model: null, isTurbo: false }];
  }

  models(): ModelEntry[] {
    return this.workers.models.map(({ name, is_loaded, is_turbo, tasks }, index) => ({
      name,
      isDefault: index === 0,
      isLoaded: is_loaded,
      isTurbo: is_turbo,
      supportedTasks: tasks,
    }));
  }

  languageModels() {
    const names = new Set(this.workers.known.flatMap(({ lm_models }) => lm_models));
    return [...names].map((name) => ({ name, isLoaded: false }));
  }

  loadedLanguageModel(): null {
    return null;
  }

  /** The worker's tokenizer judges them when the task runs. */
  async checkWords(): Promise<void> {}

  adapters(): AdapterState {
    return refused();
  }

  async close(): Promise<void> {}
}
