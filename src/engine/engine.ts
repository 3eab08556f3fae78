/** The engine: model slots, the language model, and what they do together. */
import { firstOf } from "../parameters.js";
import { type AdapterSet, NO_ADAPTERS } from "./adapters.js";
import type {
  AdapterInfo,
  CallOptions,
  NativeAddon,
  NativeErrorCode,
  RenderCall,
  RuntimeInfo,
  SampleInfo,
  TrainingCall,
  TrainingResult,
} from "./addon.js";
import { type Checkpoint, Checkpoints, fingerprintOf } from "./checkpoints.js";
import { EngineError } from "./errors.js";
import { chooseDevices, defaultIdleSeconds, type Gpu, listGpus, readGpus } from "./gpus.js";
import { LanguageModel, TextContext } from "./language-model.js";
import { loadAddon } from "./native.js";
import { Planner, tokensToWrite } from "./planner.js";
import { Renderer } from "./renderer.js";
import type {
  AdapterSource,
  AdapterState,
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
  SlotState,
  SongAdapter,
  SongSheet,
  TrainingRequest,
  TrainingSampleRequest,
  UnderstandRequest,
  WordsRequest,
} from "./types.js";

interface Slot {
  /** The model named at start-up. */
  configured: string;
  device: string;
  renderer: Renderer | null;
  /** What left while its memory was needed elsewhere: it loads again when it is next used. */
  resting: Pick<Renderer, "name" | "isTurbo"> | null;
}

/** How often it is looked for models that nobody used: within the time that they have for it, and at least. */
const IDLE_CHECKS = 4;
const MAX_IDLE_CHECK_MS = 60_000;

export class Engine implements MusicEngine {
  readonly #addon: NativeAddon;
  readonly #checkpoints: Checkpoints;
  readonly #options: EngineOptions;
  readonly #gpus: readonly Gpu[];
  readonly #languageModelDevice: string;
  readonly #log: (message: string) => void;
  /** Slots 1 to 3; null where not configured. */
  readonly #slots: (Slot | null)[];
  #languageModel: LanguageModel | null = null;
  /** The name of one that left while nobody used it. */
  #restingLanguageModel: string | null = null;
  /** What requests get that name none: as configured, until another is made the default. */
  #defaultLanguageModel: string | null = null;
  /** By the checkpoint's name. */
  readonly #textContexts = new Map<string, Promise<TextContext>>();
  /** Work in progress: it calls its language model more than once, so that one closes only afterwards. */
  readonly #languageWork = new Set<Promise<unknown>>();
  /** Runs in progress, and what ends them when the engine closes. */
  readonly #training = new Set<Promise<unknown>>();
  readonly #stopTraining = new AbortController();
  /** When models were last used, by `performance.now`. */
  readonly #lastUsedMs = new WeakMap<Renderer | LanguageModel, number>();
  #idleTimer: NodeJS.Timeout | undefined;
  /** The tail of the queue of loads: two at once would need the memory of both. */
  #loads: Promise<unknown> = Promise.resolve();
  #closed = false;

  /**
   * Loads the addon, no model yet: those load when first used, or when asked for.
   * @param log is told of what a person should know, as the use of the embedded model
   * @throws EngineError ADDON_MISSING
   */
  constructor(options: EngineOptions, log: (message: string) => void) {
    const gpus = listGpus(); // before libtorch, which numbers them as this settles
    this.#addon = loadAddon(log, () => gpus.length > 0);
    this.#addon.useFlashAttention(options.flashAttention);
    const { slotModels, languageModel } = options;
    const configured = [...slotModels, languageModel].flatMap((name) => name ?? []);
    this.#checkpoints = new Checkpoints(options.checkpointsDirectory, configured);
    this.#options = options;
    this.#log = log;
    this.#gpus = this.#usable(gpus);
    const wanted = slotModels.map((model, i) =>
      model ? (options.devices[i] ?? options.devices.at(-1)) : "cpu",
    );
    const chosen = chooseDevices(this.#gpus, [...(wanted as string[]), options.languageModelDevice]);
    this.#languageModelDevice = chosen.pop() as string;
    this.#slots = slotModels.map((model, i) =>
      model ? { configured: model, device: chosen[i] as string, renderer: null, resting: null } : null,
    );
    this.#watchIdle();
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
    return this.#slots.flatMap((slot, index) => (slot === null ? [] : [stateOf(slot, index + 1)]));
  }

  models(): ModelEntry[] {
    const loaded = this.#slots.flatMap((slot) => slot?.renderer ?? []);
    const names = new Set([...loaded.map(({ name }) => name), ...this.#checkpoints.rendererNames()]);
    const defaultName = this.#defaultModelName();
    return [...names].map((name) => {
      const renderer = loaded.find((candidate) => candidate.name === name);
      return {
        name,
        isDefault: name === defaultName,
        isLoaded: renderer !== undefined,
        isTurbo: renderer?.isTurbo ?? this.#checkpoints.isTurbo(name),
        supportedTasks: this.#checkpoints.supportedTasks(name, renderer?.directory),
      };
    });
  }

  languageModels(): { name: string; isLoaded: boolean }[] {
    const loaded = this.loadedLanguageModel();
    const names = new Set([...(loaded === null ? [] : [loaded]), ...this.#checkpoints.languageModelNames()]);
    return [...names].map((name) => ({ name, isLoaded: name === this.#languageModel?.name }));
  }

  loadedLanguageModel(): string | null {
    return this.#languageModel?.name ?? this.#restingLanguageModel;
  }

  async loadSlot(slotNumber: number, model: string | null, call: CallOptions = {}): Promise<SlotState> {
    const slot = this.#slot(slotNumber);
    const { model: current } = stateOf(slot, slotNumber);
    await this.#oneLoad(() => this.#loadRenderer(slot, model ?? current, call));
    return stateOf(slot, slotNumber);
  }

  async loadLanguageModel(name: string | null, call: CallOptions = {}): Promise<string> {
    const loaded = await this.#ensureLanguageModel(name ?? this.#defaultLanguageModel, call);
    this.#defaultLanguageModel = name ?? this.#defaultLanguageModel;
    return loaded.name;
  }

  async prepareLanguageModel(name: string | null, call: CallOptions = {}): Promise<LanguageModelInfo> {
    return (await this.#ensureLanguageModel(name ?? this.#defaultLanguageModel, call)).info;
  }

  async checkWords({ languageModel, fields, codesSeconds }: WordsRequest): Promise<void> {
    if (this.#closed) throw new EngineError("CLOSED", "The engine is closed.");
    const checkpoint = this.#languageCheckpoint(languageModel ?? this.#defaultLanguageModel);
    const known = this.#textContexts.get(checkpoint.name);
    const reading = known ?? TextContext.load(checkpoint);
    if (known === undefined) {
      this.#textContexts.set(checkpoint.name, reading);
      reading.catch(() => this.#textContexts.delete(checkpoint.name));
    }
    await (await reading).checkWords(fields, tokensToWrite(codesSeconds));
  }

  async createSample(request: SampleRequest, call: CallOptions): Promise<SongSheet> {
    return this.#withLanguageModel(request, call, (planner) => planner.createSample(request));
  }

  async formatInput(request: FormatRequest, call: CallOptions): Promise<SongSheet> {
    return this.#withLanguageModel(request, call, (planner) => planner.formatInput(request));
  }

  async plan(request: PlanRequest, call: CallOptions): Promise<Plan> {
    return this.#withLanguageModel(request, call, (planner) => planner.plan(request));
  }

  async understand(request: UnderstandRequest, call: CallOptions): Promise<SongSheet> {
    return this.#withLanguageModel(request, call, (planner) => planner.understand(request));
  }

  async render(request: RenderRequest, call: RenderCall): Promise<Rendering> {
    return this.#withRenderer(request.slot, call, (renderer) => renderer.render(request, call));
  }

  async encodeCodes(slotNumber: number, audio: PlanarAudio, call: CallOptions): Promise<Int32Array> {
    return this.#withRenderer(slotNumber, call, (renderer) => renderer.encodeCodes(audio, call));
  }

  async prepareSample(request: TrainingSampleRequest, path: string, call: CallOptions): Promise<void> {
    return this.#withRenderer(1, call, (renderer) => renderer.prepareSample(request, path, call));
  }

  async adapters(): Promise<AdapterState> {
    return this.#slot(1).renderer?.adapters.state ?? NO_ADAPTERS;
  }

  async loadAdapter(source: AdapterSource, call: CallOptions = {}): Promise<AdapterState> {
    const { name } = source;
    const state = await this.#changeAdapters(call, (adapters) => adapters.load(source, call));
    const unmatched = state.adapters.find((adapter) => adapter.name === name)?.unmatchedTensors ?? [];
    if (unmatched.length > 0)
      this.#log(`adapter ${name} holds tensors that fit nothing: ${firstOf(unmatched)}`);
    return state;
  }

  unloadAdapters(call: CallOptions = {}): Promise<AdapterState> {
    return this.#changeAdapters(call, (adapters) => adapters.unload(call));
  }

  enableAdapter(enabled: boolean, call: CallOptions = {}): Promise<AdapterState> {
    return this.#changeAdapters(call, (adapters) => adapters.enable(enabled, call));
  }

  scaleAdapter(name: string | null, scale: number, call: CallOptions = {}): Promise<AdapterState> {
    return this.#changeAdapters(call, (adapters) => adapters.scale(name, scale, call));
  }

  fingerprint(model: string): Promise<string> {
    return fingerprintOf(this.#checkpoints.renderer(model).directory);
  }

  async inspectAdapter(adapter: SongAdapter, call: CallOptions = {}): Promise<AdapterInfo> {
    return this.#withRenderer(1, call, async ({ adapters }) => (await adapters.bring(adapter, call)).info);
  }

  async inspectSamples(samples: string[], call: CallOptions = {}): Promise<SampleInfo[]> {
    const { directory } = await this.#rendererOf(1, call);
    return this.#addon.inspectSamples(directory, samples, call);
  }

  async train(request: TrainingRequest, call: TrainingCall): Promise<TrainingResult> {
    const { name, directory } = await this.#rendererOf(1, call);
    const { device } = this.#slot(1);
    const signal = AbortSignal.any([call.signal, this.#stopTraining.signal]);
    const placement = { device, dtype: this.#options.dtype };
    const options = { ...request, ...placement, modelName: name, modelDirectory: directory };
    const running = this.#watch(() => this.#addon.train(options, { ...call, signal }));
    this.#training.add(running);
    try {
      return await running;
    } finally {
      this.#training.delete(running);
    }
  }

  /** Stops training, waits for the other calls already made; later ones reject with CLOSED. */
  async close(): Promise<void> {
    this.#closed = true;
    clearInterval(this.#idleTimer);
    this.#stopTraining.abort();
    await Promise.allSettled(this.#training);
    await this.#loads;
    const models = [...this.#slots.map((slot) => slot?.renderer), this.#languageModel];
    for (const slot of this.#slots) {
      if (slot !== null) slot.renderer = null;
    }
    this.#languageModel = null;
    await Promise.allSettled(this.#languageWork);
    await Promise.all(models.map((model) => model?.close()));
    const contexts = await Promise.allSettled(this.#textContexts.values());
    await Promise.all(contexts.map((read) => (read.status === "fulfilled" ? read.value.close() : null)));
  }

  /** Those of `gpus` that libtorch computes on: all, or none, which their owner would miss. */
  #usable(gpus: readonly Gpu[]): readonly Gpu[] {
    const { devices, libtorchVersion } = this.#addon.runtimeInfo();
    const [gpu] = gpus;
    if (gpu === undefined || devices.length > 1) return gpus;
    this.#log(
      `THE GPU IS NOT USED: ${gpu.name} is there, but libtorch ${libtorchVersion} sees none. Set up again ` +
        "(npm run setup), or set LIBTORCH to a build with CUDA for its driver",
    );
    return [];
  }

  #slot(slotNumber: number): Slot {
    const slot = this.#slots[slotNumber - 1] ?? null;
    if (slot === null) {
      const available = this.slots().map((state) => state.slot);
      throw new EngineError(
        "SLOT_UNAVAILABLE",
        `Slot ${slotNumber} is not available; configured at start-up: ${available.join(", ")}.`,
      );
    }
    return slot;
  }

  async #rendererOf(slotNumber: number, call: CallOptions): Promise<Renderer> {
    const slot = this.#slot(slotNumber);
    return slot.renderer ?? (await this.#ensureRenderer(slot, call));
  }

  /** Runs `work` on the model of the slot. */
  async #withRenderer<T>(
    slotNumber: number,
    call: CallOptions,
    work: (renderer: Renderer) => Promise<T>,
  ): Promise<T> {
    const renderer = await this.#rendererOf(slotNumber, call);
    return this.#compute(renderer, () => work(renderer));
  }

  #ensureRenderer(slot: Slot, call: CallOptions): Promise<Renderer> {
    return this.#oneLoad(
      async () => slot.renderer ?? (await this.#loadRenderer(slot, slot.resting?.name ?? null, call)),
    );
  }

  /** One change at a time, and none while slot 1 is switched. */
  #changeAdapters(call: CallOptions, change: (adapters: AdapterSet) => Promise<void>): Promise<AdapterState> {
    return this.#oneLoad(async () => {
      const slot = this.#slot(1);
      const renderer = slot.renderer ?? (await this.#loadRenderer(slot, slot.resting?.name ?? null, call));
      const { adapters } = renderer;
      await this.#watch(() => change(adapters));
      return adapters.state;
    });
  }

  /** Runs `work` on the model that the request means, whichever is loaded. */
  async #withLanguageModel<T>(
    { languageModel }: LanguageRequest,
    call: CallOptions,
    work: (planner: Planner) => Promise<T>,
  ): Promise<T> {
    const name = languageModel ?? this.#defaultLanguageModel;
    const isLoaded = this.#languageModel?.name === this.#languageCheckpoint(name).name;
    const lm = (isLoaded && this.#languageModel) || (await this.#ensureLanguageModel(name, call));
    const running = this.#compute(lm, () => work(new Planner(lm, call, this.#log)));
    this.#languageWork.add(running);
    try {
      return await running;
    } finally {
      this.#languageWork.delete(running);
    }
  }

  /** Null: as configured. */
  #languageCheckpoint(name: string | null): Checkpoint {
    return this.#checkpoints.languageModel(name ?? this.#checkpoints.configured(this.#options.languageModel));
  }

  /** The codes a language model may write are those its renderer reads, so slot 1 loads first. Null: as configured. */
  async #ensureLanguageModel(name: string | null, call: CallOptions): Promise<LanguageModel> {
    const slot = this.#slot(1);
    const { codebookSize } = slot.renderer ?? (await this.#ensureRenderer(slot, call));
    return this.#oneLoad(async () => {
      const checkpoint = this.#languageCheckpoint(name);
      const old = this.#languageModel;
      if (old?.name === checkpoint.name) {
        this.#touch(old);
        return old;
      }
      this.#announce(name ?? this.#options.languageModel, checkpoint.name);
      const { dtype, quantization, offloadLanguageModel: offload } = this.#options;
      const placement = { device: this.#languageModelDevice, dtype, quantization, offload };
      this.#languageModel = await this.#compute(old, () =>
        LanguageModel.load(this.#addon, checkpoint, placement, codebookSize, call),
      );
      this.#restingLanguageModel = null;
      this.#touch(this.#languageModel);
      this.#reportUnused(this.#languageModel);
      await Promise.allSettled(this.#languageWork);
      await old?.close();
      return this.#languageModel;
    });
  }

  /** `model` null: as configured. */
  async #loadRenderer(slot: Slot, model: string | null, call: CallOptions): Promise<Renderer> {
    const checkpoint = this.#checkpoints.renderer(model ?? this.#checkpoints.configured(slot.configured));
    this.#announce(model ?? slot.configured, checkpoint.name);
    const old = slot.renderer;
    const placement = { ...this.#options, device: slot.device };
    slot.renderer = await this.#compute(old, () => Renderer.load(this.#addon, checkpoint, placement, call));
    slot.resting = null;
    this.#touch(slot.renderer);
    this.#reportUnused(slot.renderer);
    await old?.close();
    return slot.renderer;
  }

  /** Computes; where memory runs out, once more without the models that nobody uses just then. */
  async #compute<T>(used: Renderer | LanguageModel | null, work: () => Promise<T>): Promise<T> {
    try {
      return await this.#watch(work);
    } catch (error) {
      if (!hasCode(error, "OUT_OF_MEMORY")) throw error;
      const left = await this.#dropIdle((model) => model !== used);
      const without = left.length > 0 ? ` without ${left.join(", ")}` : "";
      this.#log(`${error.message}; trying once more${without}`);
      return await this.#watch(work);
    } finally {
      if (used !== null) this.#touch(used);
    }
  }

  #touch(model: Renderer | LanguageModel): void {
    this.#lastUsedMs.set(model, performance.now());
  }

  /** Lets models go that nobody used for as long as their device has patience. */
  #watchIdle(): void {
    const patienceMs = (device: string) => {
      const name = device === "cuda" ? "cuda:0" : device;
      const gpu = this.#gpus.find((candidate) => candidate.device === name);
      return 1000 * (this.#options.idleSeconds ?? defaultIdleSeconds(gpu)) || Number.POSITIVE_INFINITY;
    };
    const devices = [...this.#slots.flatMap((slot) => slot?.device ?? []), this.#languageModelDevice];
    const shortest = Math.min(...devices.map(patienceMs));
    if (shortest === Number.POSITIVE_INFINITY) return;
    const isUnused = (model: Renderer | LanguageModel, device: string) =>
      performance.now() - (this.#lastUsedMs.get(model) ?? 0) >= patienceMs(device);
    const drop = async () => {
      const left = await this.#dropIdle(isUnused);
      if (left.length > 0) this.#log(`nobody used ${left.join(", ")}: unloaded until the next use`);
    };
    // A turn among the loads, so that none of them counts on a model that leaves.
    const check = () =>
      this.#oneLoad(drop).catch((error: Error) => {
        if (!this.#closed) this.#log(error.message);
      });
    this.#idleTimer = setInterval(check, Math.min(shortest / IDLE_CHECKS, MAX_IDLE_CHECK_MS)).unref();
  }

  /** Tells the process of a device that is lost to it. */
  async #watch<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (hasCode(error, "DEVICE_LOST")) this.#options.onDeviceLost?.(error);
      throw error;
    }
  }

  /** Lets go of loaded models that nobody uses and `isSpare` names; those with adapters stay, for these would be lost. */
  async #dropIdle(isSpare: (model: Renderer | LanguageModel, device: string) => boolean): Promise<string[]> {
    const idle: (Renderer | LanguageModel)[] = [];
    for (const slot of this.#slots) {
      const renderer = slot?.renderer ?? null;
      if (slot === null || renderer === null || !renderer.isIdle || !isSpare(renderer, slot.device)) continue;
      slot.resting = { name: renderer.name, isTurbo: renderer.isTurbo };
      slot.renderer = null;
      idle.push(renderer);
    }
    const lm = this.#languageModel;
    if (lm !== null && this.#languageWork.size === 0 && isSpare(lm, this.#languageModelDevice)) {
      this.#restingLanguageModel = lm.name;
      this.#languageModel = null;
      idle.push(lm);
    }
    await Promise.all(idle.map((model) => model.close()));
    return idle.map(({ name }) => name);
  }

  #announce(requested: string, used: string): void {
    this.#log(
      requested === used || !this.#checkpoints.usesEmbedded(requested)
        ? `loading ${requested}`
        : `${requested} is not installed: loading the embedded model ${used} in its place`,
    );
  }

  /** A sign of a checkpoint from a family this engine does not know. */
  #reportUnused({ name, unusedTensors }: Renderer | LanguageModel): void {
    if (unusedTensors.length === 0) return;
    this.#log(`${name} holds tensors that nothing reads: ${firstOf(unusedTensors)}`);
  }

  /** The name under which slot 1's own model appears, were it loaded. */
  #defaultModelName(): string {
    return this.#checkpoints.configured(this.#options.slotModels[0]);
  }

  /** Runs loads one after the other; a failed one does not stop the next. */
  #oneLoad<T>(load: () => Promise<T>): Promise<T> {
    const turn = this.#loads.then(() => {
      if (this.#closed) throw new EngineError("CLOSED", "The engine is closed.");
      return load();
    });
    this.#loads = turn.catch(() => undefined);
    return turn;
  }
}

function hasCode(error: unknown, code: NativeErrorCode): error is Error {
  return error instanceof Error && "code" in error && error.code === code;
}

function stateOf({ renderer, resting }: Slot, slotNumber: number): SlotState {
  const model = renderer ?? resting;
  return {
    slot: slotNumber,
    model: model?.name ?? null,
    isLoaded: renderer !== null,
    isTurbo: model?.isTurbo ?? false,
  };
}
