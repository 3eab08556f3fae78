/** Trains adapters. A run has its own copy of the weights, in the addon. */
import type { NativeAddon, TrainingCall, TrainingResult } from "./addon.js";
import type { LoadedModels } from "./loaded-models.js";
import type { EngineOptions, Trainer, TrainingRequest } from "./types.js";

export class LoadingTrainer implements Trainer {
  readonly #running = new Set<Promise<unknown>>();
  readonly #stopping = new AbortController();

  constructor(
    private readonly addon: NativeAddon,
    private readonly loaded: LoadedModels,
    private readonly options: EngineOptions,
  ) {}

  async train(request: TrainingRequest, call: TrainingCall = {}): Promise<TrainingResult> {
    // The run reads its own copy of the weights, so it does not hold the loaded model.
    const { name, model } = await this.loaded.withRenderer(1, call, async (renderer) => renderer);
    const device = this.loaded.deviceOf(1);
    const signal = AbortSignal.any([...(call.signal ? [call.signal] : []), this.#stopping.signal]);
    const placement = { device, dtype: this.options.dtype };
    const options = { ...request, ...placement, modelName: name, model };
    const running = this.loaded.reportDeviceLoss(() => this.addon.train(options, { ...call, signal }));
    this.#running.add(running);
    try {
      return await running;
    } finally {
      this.#running.delete(running);
    }
  }

  /** Stops training and waits until its checkpoint is saved. */
  async close(): Promise<void> {
    this.#stopping.abort();
    await Promise.allSettled(this.#running);
  }
}
