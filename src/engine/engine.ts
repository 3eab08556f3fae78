/** Model slots, the language model, and the work that they do. */

import { chooseDevices, defaultIdleSeconds, type Gpu, listGpus, readGpus } from "../libtorch/gpus.js";
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
  ScoreRequest,
  SlotState,
  SongAdapter,
  SongScores,
  SongSheet,
  TrainingRequest,
  TrainingSampleRequest,
  UnderstandRequest,
  WordsRequest,
} from "./types.js";

interface Slot {
  /** Model configured at start-up. */
  configured: string;
  device: string;
  renderer: Renderer | null;
  /** Unloaded model; it reloads on next use. */
  unloaded: Pick<Renderer, "name" | "isTurbo" | "isLegoSft" | "codebookSize"> | null;
}

/** Idle checks within the idle time of a model, and the longest interval between them. */
const IDLE_CHECKS = 4;
const MAX_IDLE_CHECK_MS = 60_000;

export class Engine implements MusicEngine {
  readonly #addon: NativeAddon;
  readonly #checkpoints: Checkpoints;
  readonly #options: EngineOptions;
  readonly #gpus: readonly Gpu[];
  readonly #languageModelDevice: string;
  readonly #log: (message: string) => void;
  /** Slots 1 to 3; null if not configured. */
  readonly #slots: (Slot | null)[];
  #languageModel: LanguageModel | null = null;
  /** Name of an unloaded idle language model. */
  #unloadedLanguageModel: string | null = null;
  /** Default for requests that name no model; null: as configured. */
  #defaultLanguageModel: string | null = null;
  /** By checkpoint name. */
  readonly #textContexts = new Map<string, Promise<TextContext>>();
  /** Running language work. A task makes several model calls, so a model closes only after them. */
  readonly #languageWork = new Set<Promise<unknown>>();
  /** Running training, stopped when the engine closes. */
  readonly #training = new Set<Promise<unknown>>();
  readonly #stopTraining = new AbortController();
  /** Time of last use (`performance.now()`). */
  readonly #lastUsedMs = new WeakMap<Renderer | LanguageModel, number>();
  #idleTimer: NodeJS.Timeout | undefined;
  /** Tail of the load queue. Loads are serial, since parallel ones would need memory for both. */
  #loads: Promise<unknown> = Promise.resolve();
  #closed = false;

  /**
   * Loads the addon; models load on first use or on request.
   * @param log receives messages for the operator, such as the use of the embedded model
   * @throws EngineError ADDON_MISSING
   */
  constructor(options: EngineOptions, log: (message: string) => void) {
    const gpus = listGpus(); // before libtorch loads: this fixes the GPU numbering
    this.#addon = loadAddon(log, () => gpus.length > 0);
    this.#addon.useFlashAttention(options.flashAttention);
    const { slotModels, languageModel } = options;
    const configured = [...slotModels, languageModel].flatMap((name) => name ?? []);
    this.#checkpoints = new Checkpoints(options.checkpointsDirectory, configured);
    this.#options = options;
    this.#log = log;
    this.#gpus = this.#usableGpus(gpus);
    const wanted = slotModels.map((model, i) =>
      model ? (options.devices[i] ?? options.devices.at(-1)) : "cpu",
    );
    const chosen = chooseDevices(this.#gpus, [...(wanted as string[]), options.languageModelDevice]);
    this.#languageModelDevice = chosen.pop() as string;
    this.#slots = slotModels.map((model, i) =>
      model ? { configured: model, device: chosen[i] as string, renderer: null, unloaded: null } : null,
    );
    this.#startIdleTimer();
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
        supportedTasks: this.#checkpoints.supportedTasks(name, renderer?.model),
      };
    });
  }

  languageModels(): { name: string; isLoaded: boolean }[] {
    const loaded = this.loadedLanguageModel();
    const names = new Set([...(loaded === null ? [] : [loaded]), ...this.#checkpoints.languageModelNames()]);
    return [...names].map((name) => ({ name, isLoaded: name === this.#languageModel?.name }));
  }

  loadedLanguageModel(): string | null {
    return this.#languageModel?.name ?? this.#unloadedLanguageModel;
  }

  async loadSlot(slotNumber: number, model: string | null, call: CallOptions = {}): Promise<SlotState> {
    const slot = this.#slot(slotNumber);
    const { model: current } = stateOf(slot, slotNumber);
    await this.#queueLoad(() => this.#loadRenderer(slot, model ?? current, call));
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
    const [plan] = await this.planSongs([request], call);
    return plan as Plan;
  }

  async planSongs(requests: readonly PlanRequest[], call: CallOptions): Promise<Plan[]> {
    const atOnce = this.#options.batchMax ?? requests.length;
    const plans: Plan[] = [];
    for (let begin = 0; begin < requests.length; begin += atOnce)
      plans.push(...(await this.#planTogether(requests.slice(begin, begin + atOnce), call)));
    return plans;
  }

  /** Plans songs as one batch, or as two of half the size when out of memory. */
  async #planTogether(requests: readonly PlanRequest[], call: CallOptions): Promise<Plan[]> {
    const [first] = requests;
    if (first === undefined) return [];
    try {
      return await this.#withLanguageModel(first, call, (planner) => planner.plan(requests));
    } catch (error) {
      if (!hasCode(error, "OUT_OF_MEMORY") || requests.length === 1) throw error;
      const half = Math.ceil(requests.length / 2);
      this.#log(`${error.message}; planning ${half} at once`);
      const plans = await this.#planTogether(requests.slice(0, half), call);
      return [...plans, ...(await this.#planTogether(requests.slice(half), call))];
    }
  }

  async understand(request: UnderstandRequest, call: CallOptions): Promise<SongSheet> {
    return this.#withLanguageModel(request, call, (planner) => planner.understand(request));
  }

  async score(request: ScoreRequest, call: CallOptions): Promise<SongScores | null> {
    return this.#withLanguageModel(request, call, (planner) => planner.score(request));
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
      this.#log(`adapter ${name} has tensors that match nothing in the model: ${firstOf(unmatched)}`);
    return state;
  }

  unloadAdapter(name: string | null, call: CallOptions = {}): Promise<AdapterState> {
    return this.#changeAdapters(call, async (adapters) => adapters.unload(name));
  }

  enableAdapter(name: string | null, enabled: boolean, call: CallOptions = {}): Promise<AdapterState> {
    return this.#changeAdapters(call, async (adapters) => adapters.enable(name, enabled));
  }

  scaleAdapter(name: string | null, scale: number, call: CallOptions = {}): Promise<AdapterState> {
    return this.#changeAdapters(call, async (adapters) => adapters.scale(name, scale));
  }

  fingerprint(model: string): Promise<string> {
    return fingerprintOf(this.#checkpoints.renderer(model).model.path);
  }

  async inspectAdapter(adapter: SongAdapter, call: CallOptions = {}): Promise<AdapterInfo> {
    return this.#withRenderer(1, call, ({ adapters }) => adapters.inspect(adapter, call));
  }

  async inspectSamples(samples: string[], call: CallOptions = {}): Promise<SampleInfo[]> {
    const { model } = await this.#rendererOf(1, call);
    return this.#addon.inspectSamples(model, samples, call);
  }

  async train(request: TrainingRequest, call: TrainingCall): Promise<TrainingResult> {
    const { name, model } = await this.#rendererOf(1, call);
    const { device } = this.#slot(1);
    const signal = AbortSignal.any([call.signal, this.#stopTraining.signal]);
    const placement = { device, dtype: this.#options.dtype };
    const options = { ...request, ...placement, modelName: name, model };
    const running = this.#reportDeviceLoss(() => this.#addon.train(options, { ...call, signal }));
    this.#training.add(running);
    try {
      return await running;
    } finally {
      this.#training.delete(running);
    }
  }

  /** Stops training and waits for running calls; later calls reject with CLOSED. */
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

  /** Runs `work` with the model of the slot. */
  async #withRenderer<T>(
    slotNumber: number,
    call: CallOptions,
    work: (renderer: Renderer) => Promise<T>,
  ): Promise<T> {
    const renderer = await this.#rendererOf(slotNumber, call);
    return this.#retryOutOfMemory(renderer, () => work(renderer));
  }

  #ensureRenderer(slot: Slot, call: CallOptions): Promise<Renderer> {
    return this.#queueLoad(
      async () => slot.renderer ?? (await this.#loadRenderer(slot, slot.unloaded?.name ?? null, call)),
    );
  }

  /** Serialises adapter changes with each other and with model loads. */
  #changeAdapters(call: CallOptions, change: (adapters: AdapterSet) => Promise<void>): Promise<AdapterState> {
    return this.#queueLoad(async () => {
      const slot = this.#slot(1);
      const renderer = slot.renderer ?? (await this.#loadRenderer(slot, slot.unloaded?.name ?? null, call));
      const { adapters } = renderer;
      await this.#reportDeviceLoss(() => change(adapters));
      return adapters.state;
    });
  }

  /** Runs `work` with the requested language model, loading it if necessary. */
  async #withLanguageModel<T>(
    { languageModel }: LanguageRequest,
    call: CallOptions,
    work: (planner: Planner) => Promise<T>,
  ): Promise<T> {
    const name = languageModel ?? this.#defaultLanguageModel;
    const isLoaded = this.#languageModel?.name === this.#languageCheckpoint(name).name;
    const lm = (isLoaded && this.#languageModel) || (await this.#ensureLanguageModel(name, call));
    const running = this.#retryOutOfMemory(lm, () => work(new Planner(lm, call, this.#log)));
    this.#languageWork.add(running);
    try {
      return await running;
    } finally {
      this.#languageWork.delete(running);
    }
  }

  /** @param name null: as configured */
  #languageCheckpoint(name: string | null): Checkpoint {
    return this.#checkpoints.languageModel(name ?? this.#checkpoints.configured(this.#options.languageModel));
  }

  /** Loads a language model (null: as configured). Slot 1 loads first, since its codebook limits the audio codes. */
  async #ensureLanguageModel(name: string | null, call: CallOptions): Promise<LanguageModel> {
    const slot = this.#slot(1);
    const { codebookSize } = slot.renderer ?? (await this.#ensureRenderer(slot, call));
    const load = async () => {
      const checkpoint = this.#languageCheckpoint(name);
      const old = this.#languageModel;
      if (old?.name === checkpoint.name) {
        this.#markUsed(old);
        return old;
      }
      this.#logLoad(name ?? this.#options.languageModel, checkpoint.name);
      const { dtype, quantization, offloadLanguageModel: offload } = this.#options;
      const placement = { device: this.#languageModelDevice, dtype, quantization, offload };
      this.#languageModel = await this.#retryOutOfMemory(old, () =>
        LanguageModel.load(this.#addon, checkpoint, placement, codebookSize, call),
      );
      this.#unloadedLanguageModel = null;
      this.#markUsed(this.#languageModel);
      this.#reportUnused(this.#languageModel);
      await Promise.allSettled(this.#languageWork);
      await old?.close();
      return this.#languageModel;
    };
    return this.#queueLoad(() =>
      this.#withEmbeddedFallback(name === null ? this.#options.languageModel : null, load),
    );
  }

  /** @param model null: as configured */
  #loadRenderer(slot: Slot, model: string | null, call: CallOptions): Promise<Renderer> {
    return this.#withEmbeddedFallback(model === null ? slot.configured : null, () =>
      this.#readRenderer(slot, model, call),
    );
  }

  /**
   * Retries with the embedded model if an installed default is broken.
   * @param configured null: the model was requested by name
   */
  async #withEmbeddedFallback<T>(configured: string | null, load: () => Promise<T>): Promise<T> {
    try {
      return await load();
    } catch (error) {
      const isBroken = BROKEN_CODES.includes((error as { code?: unknown }).code);
      if (!isBroken || configured === null || !this.#checkpoints.replaceBroken(configured)) throw error;
      this.#log(
        `${configured} IS BROKEN and is not used; remove its folder or pull it again: ${(error as Error).message}`,
      );
      return load();
    }
  }

  async #readRenderer(slot: Slot, model: string | null, call: CallOptions): Promise<Renderer> {
    const checkpoint = this.#checkpoints.renderer(model ?? this.#checkpoints.configured(slot.configured));
    this.#logLoad(model ?? slot.configured, checkpoint.name);
    const old = slot.renderer;
    const placement = { ...this.#options, device: slot.device };
    slot.renderer = await this.#retryOutOfMemory(old, () =>
      Renderer.load(this.#addon, checkpoint, placement, call),
    );
    slot.unloaded = null;
    this.#markUsed(slot.renderer);
    this.#reportUnused(slot.renderer);
    await old?.close();
    return slot.renderer;
  }

  /** Runs `work`; when out of memory, unloads idle models and retries once. */
  async #retryOutOfMemory<T>(used: Renderer | LanguageModel | null, work: () => Promise<T>): Promise<T> {
    try {
      return await this.#reportDeviceLoss(work);
    } catch (error) {
      if (!hasCode(error, "OUT_OF_MEMORY")) throw error;
      const left = await this.#unloadIdle((model) => model !== used);
      const without = left.length > 0 ? ` without ${left.join(", ")}` : "";
      this.#log(`${error.message}; retrying${without}`);
      return await this.#reportDeviceLoss(work);
    } finally {
      if (used !== null) this.#markUsed(used);
    }
  }

  #markUsed(model: Renderer | LanguageModel): void {
    this.#lastUsedMs.set(model, performance.now());
  }

  /** Unloads models that were idle longer than the idle time of their device. */
  #startIdleTimer(): void {
    const idleMs = (device: string) => {
      const name = device === "cuda" ? "cuda:0" : device;
      const gpu = this.#gpus.find((candidate) => candidate.device === name);
      return 1000 * (this.#options.idleSeconds ?? defaultIdleSeconds(gpu)) || Number.POSITIVE_INFINITY;
    };
    const devices = [...this.#slots.flatMap((slot) => slot?.device ?? []), this.#languageModelDevice];
    const shortest = Math.min(...devices.map(idleMs));
    if (shortest === Number.POSITIVE_INFINITY) return;
    const isUnused = (model: Renderer | LanguageModel, device: string) =>
      performance.now() - (this.#lastUsedMs.get(model) ?? 0) >= idleMs(device);
    const drop = async () => {
      const left = await this.#unloadIdle(isUnused);
      if (left.length > 0) this.#log(`Unloaded idle model ${left.join(", ")}; it reloads on demand`);
    };
    // Queued as a load, so that no load relies on a model that is being unloaded.
    const check = () =>
      this.#queueLoad(drop).catch((error: Error) => {
        if (!this.#closed) this.#log(error.message);
      });
    this.#idleTimer = setInterval(check, Math.min(shortest / IDLE_CHECKS, MAX_IDLE_CHECK_MS)).unref();
  }

  /** Calls `onDeviceLost` when a GPU failed. */
  async #reportDeviceLoss<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (hasCode(error, "DEVICE_LOST")) this.#options.onDeviceLost?.(error);
      throw error;
    }
  }

  /** Unloads idle models that match `isSpare`. Models with loaded adapters stay, as these would be lost. */
  async #unloadIdle(
    isSpare: (model: Renderer | LanguageModel, device: string) => boolean,
  ): Promise<string[]> {
    const idle: (Renderer | LanguageModel)[] = [];
    for (const slot of this.#slots) {
      const renderer = slot?.renderer ?? null;
      if (slot === null || renderer === null || !renderer.isIdle || !isSpare(renderer, slot.device)) continue;
      const { name, isTurbo, isLegoSft, codebookSize } = renderer;
      slot.unloaded = { name, isTurbo, isLegoSft, codebookSize };
      slot.renderer = null;
      idle.push(renderer);
    }
    const lm = this.#languageModel;
    if (lm !== null && this.#languageWork.size === 0 && isSpare(lm, this.#languageModelDevice)) {
      this.#unloadedLanguageModel = lm.name;
      this.#languageModel = null;
      idle.push(lm);
    }
    await Promise.all(idle.map((model) => model.close()));
    return idle.map(({ name }) => name);
  }

  #logLoad(requested: string, used: string): void {
    this.#log(
      requested === used || !this.#checkpoints.usesEmbedded(requested)
        ? `loading ${requested}`
        : `${requested} is not installed or is broken: loading the embedded model ${used} instead`,
    );
  }

  /** Unused tensors suggest an unknown model family. */
  #reportUnused({ name, unusedTensors }: Renderer | LanguageModel): void {
    if (unusedTensors.length === 0) return;
    this.#log(`${name} has unused tensors: ${firstOf(unusedTensors)}`);
  }

  /** Name of slot 1's default model. */
  #defaultModelName(): string {
    return this.#checkpoints.configured(this.#options.slotModels[0]);
  }

  /** Runs loads in sequence; a failed load does not stop the next. */
  #queueLoad<T>(load: () => Promise<T>): Promise<T> {
    const turn = this.#loads.then(() => {
      if (this.#closed) throw new EngineError("CLOSED", "The engine is closed.");
      return load();
    });
    this.#loads = turn.catch(() => undefined);
    return turn;
  }
}

/** Error codes of damaged or incomplete models. */
const BROKEN_CODES: readonly unknown[] = ["BAD_CHECKPOINT", "MODEL_NOT_FOUND", "TOKENIZER"];

function hasCode(error: unknown, code: NativeErrorCode): error is Error {
  return error instanceof Error && "code" in error && error.code === code;
}

function stateOf({ renderer, unloaded }: Slot, slotNumber: number): SlotState {
  const model = renderer ?? unloaded;
  return {
    slot: slotNumber,
    model: model?.name ?? null,
    isLoaded: renderer !== null,
    isTurbo: model?.isTurbo ?? false,
    isLegoSft: model?.isLegoSft ?? false,
    codebookSize: model?.codebookSize ?? null,
  };
}
