/** Stub engine: makes silence after a given time. */
import { setTimeout as sleep } from "node:timers/promises";
import type { RenderCall } from "../../src/engine/addon.js";
import type {
  MusicEngine,
  RenderRequest,
  SongPlanner,
  SongRenderer,
  Trainer,
} from "../../src/engine/types.js";

const SAMPLE_RATE = 48_000;

/**
 * Supports only text2music without a language model. Each song takes the time that `renderMs` returns.
 */
export function stubEngine(renderMs: () => number, model = "stub"): MusicEngine {
  const SLOT = {
    slot: 1,
    model,
    isLoaded: true,
    isTurbo: true,
    isLegoSft: false,
    codebookSize: 64_000,
    latentChannels: 64,
  };
  return {
    catalog: {
      usesEmbeddedModel: false,
      runtimeInfo: () => ({ libtorchVersion: "", devices: [], cpuDtype: "float32" }),
      gpus: async () => [{ device: "cuda:0", name: "stub", freeBytes: 3e9, totalBytes: 4e9 }],
      slots: () => [SLOT],
      models: () => [],
      fingerprint: async () => "stub",
      languageModels: () => [],
      loadedLanguageModel: () => null,
    },
    loader: { loadSlot: async () => SLOT, loadLanguageModel: async () => "" },
    planner: {} as SongPlanner,
    trainer: {} as Trainer,
    renderer: {
      async *render({ songs }: RenderRequest, callForBatch: (first: number, count: number) => RenderCall) {
        for (const [index, { metadata }] of songs.entries()) {
          const { signal } = callForBatch(index, 1);
          await sleep(renderMs(), undefined, signal === undefined ? {} : { signal });
          const samplesPerChannel = Math.round(metadata.durationSeconds * SAMPLE_RATE);
          const frames = Math.ceil((samplesPerChannel * 25) / SAMPLE_RATE);
          yield {
            audio: new Float32Array(2 * samplesPerChannel),
            samplesPerChannel,
            latents: {
              ...{ values: new Float32Array(64 * frames), frames, samples: samplesPerChannel },
              ...{ silentFrame: null, gain: null },
            },
            timings: { conditions: 0, denoise: 0, decode: 0 },
            model,
            lyricLines: [],
            adapters: [],
            warnings: [],
          };
        }
      },
    } as SongRenderer,
    close: async () => {},
  };
}
