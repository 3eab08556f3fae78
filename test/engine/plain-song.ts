import type { RenderRequest } from "../../src/engine/types.js";

/** A second of text2music with nothing special asked for. */
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
    audioCoverStrength: 1,
    coverNoiseStrength: 0,
  },
  guidance: { guidanceScale: 7, useAdg: false, cfgIntervalStart: 0, cfgIntervalEnd: 1 },
  edit: { repaintMode: "balanced", repaintStrength: 0.5, chunkMaskMode: "explicit" },
};

/** The same, of another length. */
export function plainSongOf(durationSeconds: number): RenderRequest {
  return { ...plainSong, metadata: { ...plainSong.metadata, durationSeconds } };
}
