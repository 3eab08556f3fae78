/**
 * The models in memory: renderers in slots 1 to 3, and one language model. They load on demand, make room for each
 * other when memory runs out, and unload when idle.
 */

import { chooseDevices, defaultIdleSeconds, type Gpu } from "../libtorch/gpus.js";
import { abbreviateList } from "../parameters.js";
import type { CallOptions, NativeAddon } from "./addon.js";
import { maxPlannedSongs } from "./batches.js";
import type { Checkpoint, Checkpoints } from "./checkpoints.js";
import { EngineError, hasCode } from "./errors.js";
import { LanguageModel } from "./language-model.js";
import { Leases } from "./leases.js";
import { Renderer } from "./renderer.js";
import type { EngineOptions, ModelLoader, SlotState } from "./types.js";

interface Slot {
  configured: string;
  device: string;
  renderer: Renderer | null;
  /** Model that was unloaded while idle and reloads on next use; null if there is none. */
  unloaded: Pick<Renderer, "name" | "info"> | null;
}

/** How often idle models are checked within the idle time. Checks are at most MAX_IDLE_CHECK_MS apart. */
const IDLE_CHECKS = 4;
const MAX_IDLE_CHECK_MS = 60_000;

export class LoadedModels implements ModelLoader {
  readonly languageModelDevice: string;
  /** Slots 1 to 3; a slot that is not configured is null. */
  readonly #slots: (Slot | null)[];
  #languageModel: LanguageModel | null = null;
  #unloadedLanguageModel: string | null = null;
  /** Language model for requests that name none; null: the configured one. */
  #defaultLanguageModel: string | null = null;
  readonly #leases = new Leases<Renderer | LanguageModel>();
  readonly #lastUsedMs = new WeakMap<Renderer | LanguageModel, number>();
  #idleTimer: NodeJS.Timeout | undefined;
  /** The last load in the queue. Loads run one at a time, because two would need memory for both models. */
  #loads: Promise<unknown> = Promise.resolve();
  #closed = false;

  constructor(
    private readonly addon: NativeAddon,
    private readonly checkpoints: Checkpoints,
    private readonly options: EngineOptions,
    private readonly gpus: readonly Gpu[],
    private readonly log: (message: string) => void,
  ) {
    const { slotModels } = options;
    const wanted = slotModels.map((model, i) =>
      model ? (options.devices[i] ?? options.devices.at(-1)) : "cpu",
    );
    const hasGpu = addon.runtimeInfo().devices.some(({ name }) => name !== "cpu");
    const chosen = chooseDevices(gpus, [...(wanted as string[]), options.languageModelDevice]).map(
      (device) => (device === "auto" && !hasGpu ? "cpu" : device),
    );
    this.languageModelDevice = chosen.pop() as string;
    this.#slots = slotModels.map((model, i) =>
      model ? { configured: model, device: chosen[i] as string, renderer: null, unloaded: null } : null,
    );
    this.#startIdleTimer();
  }

  slots(): SlotState[] {
    return this.#slots.flatMap((slot, index) => (slot === null ? [] : [stateOf(slot, index + 1)]));
  }

  get renderers(): Renderer[] {
    return this.#slots.flatMap((slot) => slot?.renderer ?? []);
  }

  get languageModel(): LanguageModel | null {
    return this.#languageModel;
  }

  /** Name of the language model that was loaded last, although it may be unloaded now; null before the first load. */
  get languageModelName(): string | null {
    return this.#languageModel?.name ?? this.#unloadedLanguageModel;
  }

  /** @throws EngineError SLOT_UNAVAILABLE */
  deviceOf(slotNumber: number): string {
    return this.#slot(slotNumber).device;
  }

  /** @param model null: reloads the slot's current model */
  async loadSlot(slotNumber: number, model: string | null, call: CallOptions = {}): Promise<SlotState> {
    const slot = this.#slot(slotNumber);
    const { model: current } = stateOf(slot, slotNumber);
    await this.#queueLoad(() => this.#loadRenderer(slot, model ?? current, call));
    return stateOf(slot, slotNumber);
  }

  /** Loads a language model and makes it the default. If `name` is null, loads the current default. */
  async loadLanguageModel(name: string | null, call: CallOptions = {}): Promise<string> {
    const loaded = await this.ensureLanguageModel(name, call);
    this.#defaultLanguageModel = name ?? this.#defaultLanguageModel;
    return loaded.name;
  }

  /** @param name null: the default */
  languageCheckpoint(name: string | null): Checkpoint {
    return this.#languageCheckpoint(name ?? this.#defaultLanguageModel);
  }

  /** @throws EngineError CLOSED */
  assertOpen(): void {
    if (this.#closed) throw new EngineError("CLOSED", "The engine is closed.");
  }

  /** Makes all later loads fail with CLOSED. */
  stopLoading(): void {
    this.#closed = true;
    clearInterval(this.#idleTimer);
  }

  /** Waits for running calls and frees all models. */
  async close(): Promise<void> {
    await this.#loads;
    const models = [...this.renderers, this.#languageModel];
    for (const slot of this.#slots) {
      if (slot !== null) slot.renderer = null;
    }
    this.#languageModel = null;
    await Promise.all(models.map((model) => model && this.#close(model)));
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

  /** Loads the model of a slot if needed, and keeps it loaded until `work` ends. */
  async withRenderer<T>(
    slotNumber: number,
    call: CallOptions,
    work: (renderer: Renderer) => Promise<T>,
  ): Promise<T> {
    const slot = this.#slot(slotNumber);
    for (;;) {
      const { renderer } = slot;
      if (renderer !== null) return this.#use(renderer, work);
      await this.#ensureRenderer(slot, call);
    }
  }

  #ensureRenderer(slot: Slot, call: CallOptions): Promise<Renderer> {
    return this.#queueLoad(
      async () => slot.renderer ?? (await this.#loadRenderer(slot, slot.unloaded?.name ?? null, call)),
    );
  }

  /** Loads a language model if needed, and keeps it loaded until `work` ends. */
  async withLanguageModel<T>(
    requested: string | null,
    call: CallOptions,
    work: (lm: LanguageModel) => Promise<T>,
  ): Promise<T> {
    const name = requested ?? this.#defaultLanguageModel;
    for (;;) {
      const lm = this.#languageModel;
      if (lm?.name === this.#languageCheckpoint(name).name) return this.#use(lm, work);
      await this.ensureLanguageModel(name, call);
    }
  }

  /** The lease begins at once, so that the model cannot be unloaded between a check and its use. */
  #use<Model extends Renderer | LanguageModel, T>(
    model: Model,
    work: (model: Model) => Promise<T>,
  ): Promise<T> {
    return this.#leases.hold(model, () => this.#retryOutOfMemory(model, () => work(model)));
  }

  /** Frees a model once the calls that use it have ended. */
  async #close(model: Renderer | LanguageModel): Promise<void> {
    await this.#leases.released(model);
    await model.close();
  }

  /** @param name null means the configured model */
  #languageCheckpoint(name: string | null): Checkpoint {
    return this.checkpoints.languageModel(name ?? this.checkpoints.configured(this.options.languageModel));
  }

  /** Loads a language model if necessary. Loads slot 1 first, because its codebook limits the audio codes. */
  async ensureLanguageModel(requested: string | null, call: CallOptions): Promise<LanguageModel> {
    const name = requested ?? this.#defaultLanguageModel;
    const slot = this.#slot(1);
    const { codebookSize } = (slot.renderer ?? (await this.#ensureRenderer(slot, call))).info;
    const load = async () => {
      const checkpoint = this.#languageCheckpoint(name);
      const old = this.#languageModel;
      if (old?.name === checkpoint.name) {
        this.#markUsed(old);
        return old;
      }
      this.#logLoad(name ?? this.options.languageModel, checkpoint.name);
      const { dtype, quantization, offloadLanguageModel: offload, sharesPlanning } = this.options;
      const device = this.languageModelDevice;
      const maxSongs = sharesPlanning ? maxPlannedSongs(this.options, device !== "cpu") : 1;
      const placement = { device, dtype, quantization, offload };
      this.#languageModel = await this.#retryOutOfMemory(old, () =>
        LanguageModel.load(this.addon, checkpoint, placement, codebookSize, maxSongs, call),
      );
      this.#unloadedLanguageModel = null;
      this.#markUsed(this.#languageModel);
      this.#reportUnused(this.#languageModel);
      if (old !== null) await this.#close(old);
      return this.#languageModel;
    };
    return this.#queueLoad(() =>
      this.#withEmbeddedFallback(name === null ? this.options.languageModel : null, load),
    );
  }

  /** @param model null means the configured model */
  #loadRenderer(slot: Slot, model: string | null, call: CallOptions): Promise<Renderer> {
    return this.#withEmbeddedFallback(model === null ? slot.configured : null, () =>
      this.#readRenderer(slot, model, call),
    );
  }

  /**
   * Runs `load`. If the default model `configured` is broken, the built-in model replaces it and `load` runs again. If
   * the request names a model, `configured` is null and nothing is replaced.
   */
  async #withEmbeddedFallback<T>(configured: string | null, load: () => Promise<T>): Promise<T> {
    try {
      return await load();
    } catch (error) {
      const isBroken = BROKEN_CODES.includes((error as { code?: unknown }).code);
      if (!isBroken || configured === null || !this.checkpoints.replaceBroken(configured)) throw error;
      this.log(
        `${configured} IS BROKEN and is not used; remove its folder or pull it again: ${(error as Error).message}`,
      );
      return load();
    }
  }

  async #readRenderer(slot: Slot, model: string | null, call: CallOptions): Promise<Renderer> {
    const checkpoint = this.checkpoints.renderer(model ?? this.checkpoints.configured(slot.configured));
    this.#logLoad(model ?? slot.configured, checkpoint.name);
    const old = slot.renderer;
    const placement = { ...this.options, device: slot.device };
    slot.renderer = await this.#retryOutOfMemory(old, () =>
      Renderer.load(this.addon, checkpoint, placement, call),
    );
    slot.unloaded = null;
    this.#markUsed(slot.renderer);
    this.#reportUnused(slot.renderer);
    if (old !== null) await this.#close(old);
    return slot.renderer;
  }

  /** Runs `work`. If memory runs out, unloads idle models and runs `work` once more. */
  async #retryOutOfMemory<T>(used: Renderer | LanguageModel | null, work: () => Promise<T>): Promise<T> {
    try {
      return await this.reportDeviceLoss(work);
    } catch (error) {
      if (!hasCode(error, "OUT_OF_MEMORY")) throw error;
      const left = await this.#unloadIdle((model) => model !== used);
      const unloaded = left.length > 0 ? ` after unloading ${left.join(", ")}` : "";
      this.log(`${error.message}; retrying${unloaded}`);
      return await this.reportDeviceLoss(work);
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
      const gpu = this.gpus.find((candidate) => candidate.device === name);
      return 1000 * (this.options.idleSeconds ?? defaultIdleSeconds(gpu)) || Number.POSITIVE_INFINITY;
    };
    const devices = [...this.#slots.flatMap((slot) => slot?.device ?? []), this.languageModelDevice];
    const shortest = Math.min(...devices.map(idleMs));
    if (shortest === Number.POSITIVE_INFINITY) return;
    const isUnused = (model: Renderer | LanguageModel, device: string) =>
      performance.now() - (this.#lastUsedMs.get(model) ?? 0) >= idleMs(device);
    const drop = async () => {
      const left = await this.#unloadIdle(isUnused);
      if (left.length > 0) this.log(`Unloaded idle model ${left.join(", ")}; it reloads on demand`);
    };
    // Unloading waits in the queue of loads, so that no load relies on a model that is being unloaded.
    const check = () =>
      this.#queueLoad(drop).catch((error: Error) => {
        if (!this.#closed) this.log(error.message);
      });
    this.#idleTimer = setInterval(check, Math.min(shortest / IDLE_CHECKS, MAX_IDLE_CHECK_MS)).unref();
  }

  async reportDeviceLoss<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (hasCode(error, "DEVICE_LOST")) this.options.onDeviceLost?.(error);
      throw error;
    }
  }

  /** Unloads idle models for which `isSpare` is true. */
  async #unloadIdle(
    isSpare: (model: Renderer | LanguageModel, device: string) => boolean,
  ): Promise<string[]> {
    const isIdle = (model: Renderer | LanguageModel, device: string) =>
      !this.#leases.isHeld(model) && isSpare(model, device);
    const idle: (Renderer | LanguageModel)[] = [];
    for (const slot of this.#slots) {
      const renderer = slot?.renderer ?? null;
      if (slot === null || renderer === null || !isIdle(renderer, slot.device)) continue;
      slot.unloaded = { name: renderer.name, info: renderer.info };
      slot.renderer = null;
      idle.push(renderer);
    }
    const lm = this.#languageModel;
    if (lm !== null && isIdle(lm, this.languageModelDevice)) {
      this.#unloadedLanguageModel = lm.name;
      this.#languageModel = null;
      idle.push(lm);
    }
    await Promise.all(idle.map((model) => model.close()));
    return idle.map(({ name }) => name);
  }

  #logLoad(requested: string, used: string): void {
    this.log(
      requested === used || !this.checkpoints.usesEmbedded(requested)
        ? `loading ${requested}`
        : `${requested} is ${this.checkpoints.isInstalled(requested) ? "broken or incomplete" : "not installed"}: loading the built-in model ${used} instead (npx carillon models pull ${requested})`,
    );
  }

  /** Logs unused tensors, which suggest an unknown model family. */
  #reportUnused({ name, unusedTensors }: Renderer | LanguageModel): void {
    if (unusedTensors.length === 0) return;
    this.log(`${name} has unused tensors: ${abbreviateList(unusedTensors)}`);
  }

  /** Runs loads in sequence; a failed load does not stop the next. */
  #queueLoad<T>(load: () => Promise<T>): Promise<T> {
    const turn = this.#loads.then(() => {
      this.assertOpen();
      return load();
    });
    this.#loads = turn.catch(() => undefined);
    return turn;
  }
}

/** Error codes of damaged or incomplete models. */
const BROKEN_CODES: readonly unknown[] = ["BAD_CHECKPOINT", "MODEL_NOT_FOUND", "TOKENIZER"];

function stateOf({ renderer, unloaded }: Slot, slotNumber: number): SlotState {
  const model = renderer ?? unloaded;
  return {
    slot: slotNumber,
    model: model?.name ?? null,
    isLoaded: renderer !== null,
    isTurbo: model?.info.isTurbo ?? false,
    isLegoSft: model?.info.isLegoSft ?? false,
    codebookSize: model?.info.codebookSize ?? null,
    latentChannels: model?.info.silentFrame.length ?? null,
  };
}
