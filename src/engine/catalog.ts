/** Models in memory and on the disk, and the devices for them. */
import { type Gpu, readGpus } from "../libtorch/gpus.js";
import type { NativeAddon, RuntimeInfo } from "./addon.js";
import { type Checkpoints, fingerprintOf } from "./checkpoints.js";
import type { LoadedModels } from "./loaded-models.js";
import type { EngineOptions, ModelEntry, OwnCatalog, SlotState } from "./types.js";

export class Catalog implements OwnCatalog {
  constructor(
    private readonly addon: NativeAddon,
    private readonly checkpoints: Checkpoints,
    private readonly options: EngineOptions,
    private readonly usable: readonly Gpu[],
    private readonly loaded: LoadedModels,
  ) {}

  get usesEmbeddedModel(): boolean {
    const { slotModels, languageModel } = this.options;
    return [...slotModels, languageModel].some(
      (name) => name !== null && this.checkpoints.usesEmbedded(name),
    );
  }

  runtimeInfo(): RuntimeInfo {
    const info = this.addon.runtimeInfo();
    const devices = info.devices.map((device) => {
      const gpu = this.usable.find((candidate) => candidate.device === device.name);
      return gpu === undefined ? device : { ...device, description: gpu.name, memoryBytes: gpu.totalBytes };
    });
    return { ...info, devices };
  }

  async gpus(): Promise<readonly Gpu[]> {
    return this.usable.length === 0 ? [] : readGpus();
  }

  slots(): SlotState[] {
    return this.loaded.slots();
  }

  models(): ModelEntry[] {
    const renderers = this.loaded.renderers;
    const names = new Set([...renderers.map(({ name }) => name), ...this.checkpoints.rendererNames()]);
    const defaultName = this.checkpoints.configured(this.options.slotModels[0]);
    return [...names].map((name) => {
      const renderer = renderers.find((candidate) => candidate.name === name);
      return {
        name,
        isDefault: name === defaultName,
        isLoaded: renderer !== undefined,
        isTurbo: renderer?.info.isTurbo ?? this.checkpoints.isTurbo(name),
        supportedTasks: this.checkpoints.supportedTasks(name, renderer?.model),
      };
    });
  }

  languageModels(): { name: string; isLoaded: boolean }[] {
    const loaded = this.loadedLanguageModel();
    const names = new Set([...(loaded === null ? [] : [loaded]), ...this.checkpoints.languageModelNames()]);
    return [...names].map((name) => ({ name, isLoaded: name === this.loaded.languageModel?.name }));
  }

  fingerprint(model: string): Promise<string> {
    return fingerprintOf(this.checkpoints.renderer(model).model.path);
  }

  loadedLanguageModel(): string | null {
    return this.loaded.languageModelName;
  }
}
