import type { CallOptions, RenderCall, RenderJob } from "../../src/engine/addon.js";
import { renderParametersOf } from "../../src/engine/render-parameters.js";
import type {
  MusicEngine,
  Plan,
  PlanRequest,
  Rendering,
  RenderRequest,
  RenderSong,
  SamplingOptions,
} from "../../src/engine/types.js";

/** A one-second song. */
export const plainSong: RenderSong = {
  seed: 7,
  codes: null,
  caption: "calm piano",
  globalCaption: "",
  lyrics: "[Instrumental]",
  language: "unknown",
  metadata: { bpm: null, keyScale: "", timeSignature: "", durationSeconds: 1 },
  instruction: "",
  trackName: "",
  trackClasses: [],
};

/** Request for `plainSong` as text2music, with few steps. */
export const plainRequest: RenderRequest = {
  ...{ slot: 1, task: "text2music", source: null, referenceAudio: null, timesLyrics: false },
  ...renderParametersOf({ inferenceSteps: 2 }),
  songs: [plainSong],
};

/** Returns `plainSong` with the given duration. */
export function songOf(durationSeconds: number): RenderSong {
  return { ...plainSong, metadata: { ...plainSong.metadata, durationSeconds } };
}

/** Returns `plainRequest` for a song of the given duration. */
export function requestOf(durationSeconds: number): RenderRequest {
  return { ...plainRequest, songs: [songOf(durationSeconds)] };
}

/** Changes all songs of a request. */
export function withSong(request: RenderRequest, change: Partial<RenderSong>): RenderRequest {
  return { ...request, songs: request.songs.map((song) => ({ ...song, ...change })) };
}

/** Renders the only song of a request. */
export async function renderOne(
  engine: MusicEngine,
  request: RenderRequest,
  call: RenderCall = {},
): Promise<Rendering> {
  for await (const song of engine.renderer.render(request, () => call)) return song;
  throw new Error("the request has no song");
}

const { denoise, guidance, edit } = plainRequest;

/** A render job for the native addon, with the settings of `plainRequest`. */
export const plainJob: RenderJob = {
  ...{ task: "text2music", denoise, guidance, edit, samples: 48_000, adapters: [] },
  ...{ source: null, referenceAudio: null },
  songs: [
    {
      ...{ seed: 1n, codes: null },
      prompt: { text: Int32Array.of(1), lyrics: Int32Array.of(1), plainText: null, timedLyrics: null },
    },
  ],
};

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
  seed: 1,
};

export async function planOne(engine: MusicEngine, request: PlanRequest, call: CallOptions): Promise<Plan> {
  return (await engine.planner.planSongs([request], call))[0] as Plan;
}
