/**
 * The engine of a gateway, which has none: what the workers tell of their models, the fleet's adapters, and the words that
 * a worker's language model writes. What is done to one machine's models it refuses.
 */
import type { CallOptions, RuntimeInfo } from "../../engine/addon.js";
import type {
  AdapterSource,
  AdapterState,
  FormatRequest,
  LanguageModelInfo,
  ModelEntry,
  MusicEngine,
  SampleRequest,
  SlotState,
  SongSheet,
} from "../../engine/types.js";
import { refuseInFleet } from "../errors.js";
import { type Calls, WORDS } from "./calls.js";
import type { FleetAdapters } from "./fleet-adapters.js";
import { noWorker, type Workers } from "./workers.js";

const refuse = async (): Promise<never> => refuseInFleet();

export class FleetEngine implements MusicEngine {
  readonly usesEmbeddedModel = false;
  readonly plan = refuse;
  readonly understand = refuse;
  readonly render = refuse;
  readonly encodeCodes = refuse;
  readonly prepareSample = refuse;
  readonly loadSlot = refuse;
  readonly loadLanguageModel = refuse;
  readonly inspectAdapter = refuse;
  readonly fingerprint = refuse;
  readonly inspectSamples = refuse;
  readonly train = refuse;

  constructor(
    private readonly workers: Workers,
    private readonly fleetAdapters: FleetAdapters,
    private readonly calls: Calls,
  ) {}

  runtimeInfo(): RuntimeInfo {
    return { libtorchVersion: "", devices: [], cpuDtype: "float32" };
  }

  async gpus() {
    return [];
  }

  /** One for each model of the fleet; one without a model while there is no worker. */
  slots(): SlotState[] {
    const slots = this.workers.models.map(({ name, is_turbo, is_loaded }, index) => ({
      slot: index + 1,
      model: name,
      isLoaded: is_loaded,
      isTurbo: is_turbo,
    }));
    return slots.length > 0 ? slots : [{ slot: 1, model: null, isLoaded: false, isTurbo: false }];
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

  /** The worker makes it ready that is asked for its words. */
  async prepareLanguageModel(): Promise<LanguageModelInfo> {
    if (this.languageModels().length === 0) await this.workers.refresh();
    const [first] = this.languageModels();
    if (first === undefined) throw noWorker("write words");
    return { name: first.name, writesText: true };
  }

  createSample(request: SampleRequest, { signal }: CallOptions): Promise<SongSheet> {
    return this.calls.ask(WORDS, "createSample", request, signal);
  }

  formatInput(request: FormatRequest, { signal }: CallOptions): Promise<SongSheet> {
    return this.calls.ask(WORDS, "formatInput", request, signal);
  }

  async adapters(): Promise<AdapterState> {
    return this.fleetAdapters.state(await this.#model());
  }

  async loadAdapter(source: AdapterSource): Promise<AdapterState> {
    return this.fleetAdapters.load(await this.#model(), source);
  }

  async unloadAdapters(): Promise<AdapterState> {
    return this.fleetAdapters.unload(await this.#model());
  }

  async enableAdapter(enabled: boolean): Promise<AdapterState> {
    return this.fleetAdapters.enable(await this.#model(), enabled);
  }

  async scaleAdapter(name: string | null, scale: number): Promise<AdapterState> {
    return this.fleetAdapters.scale(await this.#model(), name, scale);
  }

  /** Adapters are its own. */
  #model(): Promise<string> {
    return this.workers.preferredModel("take adapters");
  }

  async close(): Promise<void> {}
}
