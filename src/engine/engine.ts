/** The engine: lists models, plans and renders songs, manages adapters and trains, with the models in memory. */

import { type Gpu, listGpus, readGpus } from "../libtorch/gpus.js";
import { abbreviateList } from "../parameters.js";
import type {
  AdapterInfo,
  CallOptions,
  NativeAddon,
  RenderCall,
  RuntimeInfo,
  SampleInfo,
  TrainingCall,
  TrainingResult,
} from "./addon.js";
import { maxPlannedSongs, maxRenderedSongs } from "./batch-limits.js";
import { Checkpoints, fingerprintOf } from "./checkpoints.js";
import { LanguageModelContext } from "./language-model.js";
import { hasCode, LoadedModels } from "./loaded-models.js";
import { loadAddon } from "./native.js";
import { outputTokensToReserve, Planner } from "./planner.js";
import { firstOfEqualLength } from "./renderer.js";
import type {
  EngineOptions,
  FormatRequest,
  LanguageModelInfo,
  LanguageRequest,
  ModelEntry,
  MusicEngine,
  Plan,
  PlanarAudio,
  PlanRequest,
  Rendering,
  RenderRequest,
  SampleRequest,
  ScoreRequest,
  SlotState,
  SongAdapter,
  SongScores,
  SongSheet,
  TextLengthRequest,
  TrainingRequest,
  TrainingSampleRequest,
  UnderstandRequest,
} from "./types.js";

export class Engine implements MusicEngine {
  readonly #addon: NativeAddon;
  readonly #checkpoints: Checkpoints;
  readonly #options: EngineOptions;
  readonly #gpus: readonly Gpu[];
  readonly #log: (message: string) => void;
  readonly #models: LoadedModels;
  /** Tokenizer and context length of language models, by checkpoint name, for `checkTextLength`. */
  readonly #textContexts = new Map<string, Promise<LanguageModelContext>>();
  /** The training that is running. It is stopped when the engine closes. */
  readonly #training = new Set<Promise<unknown>>();
  readonly #stopTraining = new AbortController();

  /**
   * Loads the addon; models load on first use or on request.
   * @param log receives messages for the operator, such as the use of the built-in model
   * @throws EngineError ADDON_MISSING
   */
  constructor(options: EngineOptions, log: (message: string) => void) {
    const gpus = listGpus(); // sets the GPU numbering, so it must run before libtorch loads
    this.#addon = loadAddon(log, () => gpus.length > 0);
    this.#addon.useFlashAttention(options.flashAttention);
    const { slotModels, languageModel } = options;
    const configured = [...slotModels, languageModel].flatMap((name) => name ?? []);
    this.#checkpoints = new Checkpoints(options.checkpointsDirectory, configured);
    this.#options = options;
    this.#log = log;
    this.#gpus = this.#usableGpus(gpus);
    this.#models = new LoadedModels(this.#addon, this.#checkpoints, options, this.#gpus, log);
  }

  get usesEmbeddedModel(): boolean {
    const { slotModels, languageModel } = this.#options;
    return [...slotModels, languageModel].some(
      (name) => name !== null && this.#checkpoints.usesEmbedded(name),
    );
  }

  runtimeInfo(): RuntimeInfo {
    const info = this.#addon.runtimeInfo();
    const devices = info.devices.map((device) => {
      const gpu = this.#gpus.find((candidate) => candidate.device === device.name);
      return gpu === undefined ? device : { ...device, description: gpu.name, memoryBytes: gpu.totalBytes };
    });
    return { ...info, devices };
  }

  async gpus(): Promise<readonly Gpu[]> {
    return this.#gpus.length === 0 ? [] : readGpus();
  }

  slots(): SlotState[] {
    return this.#models.slots();
  }

  models(): ModelEntry[] {
    const loaded = this.#models.renderers;
    const names = new Set([...loaded.map(({ name }) => name), ...this.#checkpoints.rendererNames()]);
    const defaultName = this.#checkpoints.configured(this.#options.slotModels[0]);
    return [...names].map((name) => {
      const renderer = loaded.find((candidate) => candidate.name === name);
      return {
        name,
        isDefault: name === defaultName,
        isLoaded: renderer !== undefined,
        isTurbo: renderer?.isTurbo ?? this.#checkpoints.isTurbo(name),
        supportedTasks: this.#checkpoints.supportedTasks(name, renderer?.model),
      };
    });
  }

  languageModels(): { name: string; isLoaded: boolean }[] {
    const loaded = this.loadedLanguageModel();
    const names = new Set([...(loaded === null ? [] : [loaded]), ...this.#checkpoints.languageModelNames()]);
    return [...names].map((name) => ({ name, isLoaded: name === this.#models.languageModel?.name }));
  }

  loadedLanguageModel(): string | null {
    return this.#models.languageModelName;
  }

  async loadSlot(slotNumber: number, model: string | null, call: CallOptions = {}): Promise<SlotState> {
    return this.#models.loadSlot(slotNumber, model, call);
  }

  async loadLanguageModel(name: string | null, call: CallOptions = {}): Promise<string> {
    return (await this.#models.loadLanguageModel(name, call)).name;
  }

  async prepareLanguageModel(name: string | null, call: CallOptions = {}): Promise<LanguageModelInfo> {
    return (await this.#models.ensureLanguageModel(name, call)).info;
  }

  async checkTextLength({ languageModel, fields, codesSeconds }: TextLengthRequest): Promise<void> {
    this.#models.assertOpen();
    const checkpoint = this.#models.languageCheckpoint(languageModel ?? null);
    const known = this.#textContexts.get(checkpoint.name);
    const reading = known ?? LanguageModelContext.load(checkpoint);
    if (known === undefined) {
      this.#textContexts.set(checkpoint.name, reading);
      reading.catch(() => this.#textContexts.delete(checkpoint.name));
    }
    await (await reading).checkTextLength(fields, outputTokensToReserve(codesSeconds));
  }

  async createSample(request: SampleRequest, call: CallOptions): Promise<SongSheet> {
    return this.#withPlanner(request, call, (planner) => planner.createSample(request));
  }

  async formatInput(request: FormatRequest, call: CallOptions): Promise<SongSheet> {
    return this.#withPlanner(request, call, (planner) => planner.formatInput(request));
  }

  async plan(request: PlanRequest, call: CallOptions): Promise<Plan> {
    const [plan] = await this.planSongs([request], call);
    return plan as Plan;
  }

  async planSongs(requests: readonly PlanRequest[], call: CallOptions): Promise<Plan[]> {
    const atOnce = maxPlannedSongs(this.#options, this.#models.languageModelDevice !== "cpu");
    const plans: Plan[] = [];
    for (let begin = 0; begin < requests.length; begin += atOnce)
      plans.push(...(await this.#planTogether(requests.slice(begin, begin + atOnce), call)));
    return plans;
  }

  #withPlanner<T>(
    { languageModel = null }: LanguageRequest,
    call: CallOptions,
    work: (planner: Planner) => Promise<T>,
  ): Promise<T> {
    return this.#models.withLanguageModel(languageModel, call, (lm) =>
      work(new Planner(lm, call, this.#log)),
    );
  }

  /** Plans songs as one batch. If memory runs out, splits the batch in half and plans both halves. */
  async #planTogether(requests: readonly PlanRequest[], call: CallOptions): Promise<Plan[]> {
    const [first] = requests;
    if (first === undefined) return [];
    try {
      return await this.#withPlanner(first, call, (planner) => planner.plan(requests));
    } catch (error) {
      if (!hasCode(error, "OUT_OF_MEMORY") || requests.length === 1) throw error;
      const half = Math.ceil(requests.length / 2);
      this.#log(`${error.message}; planning ${half} songs at a time`);
      const plans = await this.#planTogether(requests.slice(0, half), call);
      return [...plans, ...(await this.#planTogether(requests.slice(half), call))];
    }
  }

  async understand(request: UnderstandRequest, call: CallOptions): Promise<SongSheet> {
    return this.#withPlanner(request, call, (planner) => planner.understand(request));
  }

  async score(request: ScoreRequest, call: CallOptions): Promise<SongScores | null> {
    return this.#withPlanner(request, call, (planner) => planner.score(request));
  }

  async render(request: RenderRequest, call: RenderCall): Promise<Rendering> {
    return this.#models.withRenderer(request.slot, call, (renderer) => renderer.render(request, call));
  }

  async *renderSongs(
    requests: readonly RenderRequest[],
    callForBatch: (first: number, count: number) => RenderCall,
  ): AsyncGenerator<Rendering> {
    const [one] = requests;
    if (one === undefined) return;
    let atOnce = maxRenderedSongs(this.#options, this.#models.deviceOf(one.slot) !== "cpu");
    for (let first = 0; first < requests.length; ) {
      const batch = firstOfEqualLength(requests.slice(first, first + atOnce));
      const call = callForBatch(first, batch.length);
      try {
        yield* await this.#models.withRenderer(one.slot, call, (renderer) =>
          renderer.renderSongs(batch, call),
        );
        first += batch.length;
      } catch (error) {
        if (!hasCode(error, "OUT_OF_MEMORY") || batch.length === 1) throw error;
        atOnce = Math.ceil(batch.length / 2);
        this.#log(`${error.message}; rendering ${atOnce} songs at a time`);
      }
    }
  }

  async encodeCodes(slotNumber: number, audio: PlanarAudio, call: CallOptions): Promise<Int32Array> {
    return this.#models.withRenderer(slotNumber, call, (renderer) => renderer.encodeCodes(audio, call));
  }

  async prepareSample(request: TrainingSampleRequest, path: string, call: CallOptions): Promise<void> {
    return this.#models.withRenderer(1, call, (renderer) => renderer.prepareSample(request, path, call));
  }

  fingerprint(model: string): Promise<string> {
    return fingerprintOf(this.#checkpoints.renderer(model).model.path);
  }

  async inspectAdapter(adapter: SongAdapter, call: CallOptions = {}): Promise<AdapterInfo> {
    const info = await this.#models.withRenderer(1, call, ({ adapters }) => adapters.inspect(adapter, call));
    const { unmatchedTensors: unmatched } = info;
    if (unmatched.length > 0) {
      const names = abbreviateList(unmatched);
      this.#log(`adapter ${adapter.name} has tensors that match nothing in the model: ${names}`);
    }
    return info;
  }

  async inspectSamples(samples: string[], call: CallOptions = {}): Promise<SampleInfo[]> {
    const { model } = await this.#models.rendererOf(1, call);
    return this.#addon.inspectSamples(model, samples, call);
  }

  async train(request: TrainingRequest, call: TrainingCall): Promise<TrainingResult> {
    const { name, model } = await this.#models.rendererOf(1, call);
    const device = this.#models.deviceOf(1);
    const signal = AbortSignal.any([call.signal, this.#stopTraining.signal]);
    const placement = { device, dtype: this.#options.dtype };
    const options = { ...request, ...placement, modelName: name, model };
    const running = this.#models.reportDeviceLoss(() => this.#addon.train(options, { ...call, signal }));
    this.#training.add(running);
    try {
      return await running;
    } finally {
      this.#training.delete(running);
    }
  }

  /** Stops training and waits for running calls; later calls reject with CLOSED. */
  async close(): Promise<void> {
    this.#models.stopLoading();
    this.#stopTraining.abort();
    await Promise.allSettled(this.#training);
    await this.#models.close();
    const contexts = await Promise.allSettled(this.#textContexts.values());
    await Promise.all(contexts.map((read) => (read.status === "fulfilled" ? read.value.close() : null)));
  }

  /** Returns `gpus` if libtorch can use them; otherwise logs a warning and returns none. */
  #usableGpus(gpus: readonly Gpu[]): readonly Gpu[] {
    const { devices, libtorchVersion } = this.#addon.runtimeInfo();
    const [gpu] = gpus;
    if (gpu === undefined || devices.length > 1) return gpus;
    this.#log(
      `THE GPU IS NOT USED: libtorch ${libtorchVersion} does not detect ${gpu.name}. Set up again ` +
        "(npm run setup), or set LIBTORCH to a CUDA build for its driver",
    );
    return [];
  }
}
