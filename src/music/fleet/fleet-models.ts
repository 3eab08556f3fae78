/** What a gateway knows of the engines of its workers: their models, and texts that their language models write. */
import type { CallOptions } from "../../engine/addon.js";
import type {
  FormatRequest,
  LanguageModelInfo,
  ModelCatalog,
  ModelEntry,
  SampleRequest,
  SheetWriter,
  SlotState,
  SongSheet,
} from "../../engine/types.js";
import { type RemoteCalls, TEXT_CALL_QUEUE } from "./calls.js";
import { noWorkerError, type Workers } from "./workers.js";

export class FleetCatalog implements ModelCatalog {
  constructor(private readonly workers: Workers) {}

  async gpus() {
    return [];
  }

  /** One slot per model of the fleet; one empty slot if there are no workers. */
  slots(): SlotState[] {
    const slots = this.workers.models.map(
      ({ name, is_turbo, is_loaded, codebook_size = null, latent_channels = null }, index) => ({
        slot: index + 1,
        model: name,
        isLoaded: is_loaded,
        isTurbo: is_turbo,
        isLegoSft: false,
        codebookSize: codebook_size,
        latentChannels: latent_channels,
      }),
    );
    const unknown = { isTurbo: false, isLegoSft: false, codebookSize: null, latentChannels: null };
    return slots.length > 0 ? slots : [{ slot: 1, model: null, isLoaded: false, ...unknown }];
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
    return this.workers.languageModels.map((name) => ({ name, isLoaded: false }));
  }

  loadedLanguageModel(): null {
    return null;
  }
}

/** Forwards text requests to a worker with a language model. */
export class FleetSheetWriter implements SheetWriter {
  constructor(
    private readonly workers: Workers,
    private readonly calls: RemoteCalls,
  ) {}

  /** Checks nothing, because the worker's tokenizer checks the text when the task runs. */
  async checkTextLength(): Promise<void> {}

  /** Checks that some worker has a language model. The worker loads the model when a call needs it. */
  async prepareLanguageModel(): Promise<LanguageModelInfo> {
    if (this.workers.languageModels.length === 0) await this.workers.refresh();
    const [name] = this.workers.languageModels;
    if (name === undefined) throw noWorkerError("write text");
    return { name, writesText: true };
  }

  createSample(request: SampleRequest, { signal }: CallOptions): Promise<SongSheet> {
    return this.calls.call(TEXT_CALL_QUEUE, "createSample", request, signal);
  }

  formatInput(request: FormatRequest, { signal }: CallOptions): Promise<SongSheet> {
    return this.calls.call(TEXT_CALL_QUEUE, "formatInput", request, signal);
  }
}
