import type { CallOptions, RenderJob } from "../../src/engine/addon.js";
import type {
  MusicEngine,
  Plan,
  PlanRequest,
  RenderRequest,
  SamplingOptions,
} from "../../src/engine/types.js";

/** Request for a one-second text2music song with few steps. */
export const plainSong: RenderRequest = {
  slot: 1,
  task: "text2music",
  instruction: "",
  trackName: "",
  trackClasses: [],
  globalCaption: "",
  caption: "calm piano",
  lyrics: "[Instrumental]",
  language: "unknown",
  timesLyrics: false,
  metadata: { bpm: null, keyScale: "", timeSignature: "", durationSeconds: 1 },
  audioCodes: null,
  source: null,
  referenceAudio: null,
  seeds: [7],
  denoise: {
    inferenceSteps: 2,
    shift: 3,
    timesteps: null,
    inferMethod: "ode",
    ...{ dcwEnabled: false, dcwMode: "double", dcwScaler: 0.05, dcwHighScaler: 0.02 },
    ...{ velocityNormThreshold: 0, velocityEmaFactor: 0, latentRescale: 1, latentShift: 0 },
    audioCoverStrength: 1,
    coverNoiseStrength: 0,
  },
  guidance: {
    ...{ guidanceScale: 7, useAdg: false, cfgIntervalStart: 0, cfgIntervalEnd: 1 },
    ...{ guidanceVariant: null, eta: 0, momentum: -0.75, normThreshold: 2.5 },
  },
  edit: {
    ...{ repaintMode: "balanced", repaintStrength: 0.5, chunkMaskMode: "explicit", coverNofsq: false },
    ...{ repaintLatentCrossfadeFrames: null, repaintWavCrossfadeSeconds: null },
  },
};

const { denoise, guidance, edit } = plainSong;

/** A render job for the native addon, with the settings of `plainSong`. */
export const plainJob: RenderJob = {
  ...{ task: "text2music", denoise, guidance, edit, seeds: [1n], samples: 48_000, adapters: [] },
  ...{ audioCodes: null, source: null, referenceAudio: null },
  prompts: [{ text: Int32Array.of(1), lyrics: Int32Array.of(1), plainText: null, timedLyrics: null }],
};

/** Returns `plainSong` with the given duration. */
export function plainSongOf(durationSeconds: number): RenderRequest {
  return { ...plainSong, metadata: { ...plainSong.metadata, durationSeconds } };
}

export const plainSampling: SamplingOptions = {
  temperature: 0.85,
  topK: 0,
  topP: 0.9,
  minP: 0,
  repetitionPenalty: 1,
  constrained: true,
};

/** Request for plans of two songs, two seconds each. */
export const plainPlan: PlanRequest = {
  caption: "calm piano",
  lyrics: "[Instrumental]",
  metadata: { bpm: null, keyScale: "", timeSignature: "", durationSeconds: 2 },
  ...{ fillMetadata: true, rewriteCaption: false, detectLanguage: true, writeCodes: true },
  cfgScale: 2,
  negativePrompt: "NO USER INPUT",
  sampling: plainSampling,
  seeds: [1, 2],
};

export async function planOne(engine: MusicEngine, request: PlanRequest, call: CallOptions): Promise<Plan> {
  return (await engine.planner.planSongs([request], call))[0] as Plan;
}
