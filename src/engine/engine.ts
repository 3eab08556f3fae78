/** Assembles the engine: its parts share the models in memory. */
import { type Gpu, listGpus } from "../libtorch/gpus.js";
import type { NativeAddon } from "./addon.js";
import { Catalog } from "./catalog.js";
import { Checkpoints } from "./checkpoints.js";
import { LoadedModels } from "./loaded-models.js";
import { LoadingPlanner, LoadingRenderer, LoadingTrainer } from "./loading.js";
import { loadAddon } from "./native.js";
import type { EngineOptions, MusicEngine } from "./types.js";

type Log = (message: string) => void;

export class Engine implements MusicEngine {
  readonly catalog: Catalog;
  readonly loader: LoadedModels;
  readonly planner: LoadingPlanner;
  readonly renderer: LoadingRenderer;
  readonly trainer: LoadingTrainer;

  /**
   * Loads the addon; models load on first use or on request.
   * @param log receives messages for the operator, such as the use of the built-in model
   * @throws EngineError ADDON_MISSING
   */
  constructor(options: EngineOptions, log: Log) {
    const detected = listGpus(); // sets the GPU numbering, so it must run before libtorch loads
    const addon = loadAddon(log, () => detected.length > 0);
    addon.useFlashAttention(options.flashAttention);
    const { slotModels, languageModel } = options;
    const configured = [...slotModels, languageModel].flatMap((name) => name ?? []);
    const checkpoints = new Checkpoints(options.checkpointsDirectory, configured);
    const gpus = usableGpus(detected, addon, log);
    this.loader = new LoadedModels(addon, checkpoints, options, gpus, log);
    this.catalog = new Catalog(addon, checkpoints, options, gpus, this.loader);
    this.planner = new LoadingPlanner(this.loader, options, log);
    this.renderer = new LoadingRenderer(this.loader, options, log);
    this.trainer = new LoadingTrainer(addon, this.loader, options);
  }

  async close(): Promise<void> {
    this.loader.stopLoading();
    await this.trainer.close();
    await this.loader.close();
    await this.planner.close();
  }
}

/** Returns `gpus` if libtorch can use them; otherwise logs a warning and returns none. */
function usableGpus(gpus: readonly Gpu[], addon: NativeAddon, log: Log): readonly Gpu[] {
  const { devices, libtorchVersion } = addon.runtimeInfo();
  const [gpu] = gpus;
  if (gpu === undefined || devices.length > 1) return gpus;
  log(
    `THE GPU IS NOT USED: libtorch ${libtorchVersion} does not detect ${gpu.name}. Set up again ` +
      "(npm run setup), or set LIBTORCH to a CUDA build for its driver",
  );
  return [];
}
