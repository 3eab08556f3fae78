/** Metadata and texts in the record of a finished song. */
import type { LyricLine, Metadata, Rendering, SongScores } from "../../engine/types.js";
import type { SongMetas } from "../queue/store.js";
import type { GenerationRequest } from "../request/schema.js";
import type { PlannedComposition } from "./compose.js";

/** @param seconds length of the audio; null if there is no audio */
export function metasOf(request: GenerationRequest, metadata: Metadata, seconds: number | null): SongMetas {
  return {
    bpm: metadata.bpm,
    duration: seconds === null ? null : Math.round(seconds * 100) / 100,
    genres: "",
    keyscale: metadata.keyScale,
    timesignature: metadata.timeSignature,
    prompt: request.prompt,
    lyrics: request.lyrics,
  };
}

/** Inputs and measurements of a song, from which its record is written. */
export interface SongInputs {
  song: PlannedComposition;
  rendered: Pick<Rendering, "timings" | "adapters" | "lyricLines">;
  metas: SongMetas;
  /**
   * Whether the tempo was measured in the middle 30 seconds of the song, or of the source that it mostly keeps. The
   * measured tempo of a song without a source may be half or twice the perceived one.
   */
  isTempoMeasured: boolean;
  scores: SongScores | null;
  peaks: number[];
}

/**
 * Name of the noise generator (native/core/diffusion/noise.h). A different generator would make different songs
 * from the same seeds.
 */
const NOISE = "Philox4x32-10";

/**
 * Text of `generation_info`. Older clients parse its "Name: value" lines.
 * @param totalSeconds time that all songs of the task took
 */
export function generationInfo(
  request: GenerationRequest,
  { song, rendered, metas, isTempoMeasured }: SongInputs,
  { totalSeconds, count }: { totalSeconds: number; count: number },
): string {
  const songs = `${count} song${count === 1 ? "" : "s"}`;
  const { conditions, denoise, decode } = rendered.timings;
  const lines = [
    `**🎵 Total generation time (${songs}): ${totalSeconds.toFixed(2)}s**`,
    `- ${(totalSeconds / count).toFixed(2)}s per song`,
    `- LM: metadata ${song.seconds.metadata.toFixed(2)}s, audio codes ${song.seconds.codes.toFixed(2)}s`,
    `- DiT: conditions ${conditions.toFixed(2)}s, diffusion ${denoise.toFixed(2)}s, decoding ${decode.toFixed(2)}s`,
    `Task: ${request.taskType}`,
    ...(rendered.adapters.length === 0
      ? []
      : [`LoRA: ${rendered.adapters.map(({ name, scale }) => `${name} at ${scale}`).join(", ")}`]),
    `Steps: ${request.timesteps === null ? request.inferenceSteps : request.timesteps.length - 1}`,
    `Noise: ${NOISE}`,
    ...(metas.bpm === null ? [] : [`BPM: ${metas.bpm}${isTempoMeasured ? " (measured)" : ""}`]),
    `Duration: ${metas.duration}`,
    ...(metas.keyscale === "" ? [] : [`Key: ${metas.keyscale}`]),
    ...(metas.timesignature === "" ? [] : [`Time Signature: ${metas.timesignature}`]),
  ];
  return lines.join("\n");
}

/** LRC format: [minutes:seconds.hundredths]text. */
export function lrcOf(lines: readonly LyricLine[]): string {
  const stamp = (seconds: number) => {
    const hundredths = Math.round(seconds * 100);
    const two = (number: number) => String(Math.floor(number)).padStart(2, "0");
    return `[${two(hundredths / 6000)}:${two((hundredths / 100) % 60)}.${two(hundredths % 100)}]`;
  };
  return lines.map(({ seconds, text }) => stamp(seconds) + text).join("\n");
}
