/**
 * Engine of a gateway without models. It reports the workers' models, and forwards text requests to a worker's language model. It rejects operations on the models of one machine.
 */
import type { CallOptions, RuntimeInfo } from "../../engine/addon.js";
import type {
  FormatRequest,
  LanguageModelInfo,
  ModelEntry,
  MusicEngine,
  SampleRequest,
  SlotState,
  SongSheet,
} from "../../engine/types.js";
import { throwNotAvailableInFleet } from "../errors.js";
import { type RemoteCalls, TEXT_CALL_QUEUE } from "./calls.js";
import { noWorkerError, type Workers } from "./workers.js";

const refuse = async (): Promise<never> => throwNotAvailableInFleet();

export class FleetEngine implements MusicEngine {
  readonly usesEmbeddedModel = false;
  readonly plan = refuse;
  readonly planSongs = refuse;
  readonly understand = refuse;
  readonly score = refuse;
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
    private readonly calls: RemoteCalls,
  ) {}

  // biome-ignore lint/correctness/useYield: this generator always throws, so it never yields
  async *renderSongs(): AsyncGenerator<never> {
    throwNotAvailableInFleet();
  }

  runtimeInfo(): RuntimeInfo {
    return { libtorchVersion: "", devices: [], cpuDtype: "float32" };
  }

  async gpus() {
    return [];
  }

  /** One slot per model of the fleet; one empty slot if there are no workers. */
  slots(): SlotState[] {
    const slots = this.workers.models.map(
      ({ name, is_turbo, is_loaded, codebook_size: codebookSize = null }, index) => ({
        slot: index + 1,
        model: name,
        isLoaded: is_loaded,
        isTurbo: is_turbo,
        isLegoSft: false,
        codebookSize,
      }),
    );
    return slots.length > 0
      ? slots
      : [{ slot: 1, model: null, isLoaded: false, isTurbo: false, isLegoSft: false, codebookSize: null }];
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

  /** Checks nothing, because the worker's tokenizer checks the text when the task runs. */
  async checkTextLength(): Promise<void> {}

  /** Checks that some worker has a language model. The worker loads the model when a call needs it. */
  async prepareLanguageModel(): Promise<LanguageModelInfo> {
    if (this.languageModels().length === 0) await this.workers.refresh();
    const [first] = this.languageModels();
    if (first === undefined) throw noWorkerError("write text");
    return { name: first.name, writesText: true };
  }

  createSample(request: SampleRequest, { signal }: CallOptions): Promise<SongSheet> {
    return this.calls.call(TEXT_CALL_QUEUE, "createSample", request, signal);
  }

  formatInput(request: FormatRequest, { signal }: CallOptions): Promise<SongSheet> {
    return this.calls.call(TEXT_CALL_QUEUE, "formatInput", request, signal);
  }

  async close(): Promise<void> {}
}
