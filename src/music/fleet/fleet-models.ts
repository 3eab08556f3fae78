/** What a gateway knows of the engines of its workers: their models, and texts that their language models write. */
import type { ModelCatalog, SheetWriter, SlotState } from "../../engine/types.js";
import { type RemoteCalls, TEXT_CALL_QUEUE } from "./calls.js";
import { noWorkerError, type Workers } from "./workers.js";

export function fleetCatalog(workers: Workers): ModelCatalog {
  return {
    gpus: async () => [],
    slots: () => slotsOf(workers),
    models: () =>
      workers.models.map(({ name, is_loaded, is_turbo, tasks }, index) => ({
        name,
        isDefault: index === 0,
        isLoaded: is_loaded,
        isTurbo: is_turbo,
        supportedTasks: tasks,
      })),
    languageModels: () => workers.languageModels.map((name) => ({ name, isLoaded: false })),
    loadedLanguageModel: () => null,
  };
}

/** One slot per model of the fleet; one empty slot if there are no workers. */
function slotsOf({ models }: Workers): SlotState[] {
  const slots = models.map(
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

/** Forwards text requests to a worker with a language model. */
export function fleetSheetWriter(workers: Workers, calls: RemoteCalls): SheetWriter {
  return {
    /** Checks nothing, because the worker's tokenizer checks the text when the task runs. */
    checkTextLength: async () => {},
    /** Checks that some worker has a language model. The worker loads the model when a call needs it. */
    prepareLanguageModel: async () => {
      if (workers.languageModels.length === 0) await workers.refresh();
      const [name] = workers.languageModels;
      if (name === undefined) throw noWorkerError("write text");
      return { name, writesText: true };
    },
    createSample: (request, { signal }) => calls.call(TEXT_CALL_QUEUE, "createSample", request, signal),
    formatInput: (request, { signal }) => calls.call(TEXT_CALL_QUEUE, "formatInput", request, signal),
  };
}
