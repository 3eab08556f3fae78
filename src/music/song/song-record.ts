/** What the record of a finished task says of its songs. */
import type { ActingAdapter, LyricLine, Metadata, Rendering } from "../../engine/types.js";
import type { SongMetas } from "../queue/store.js";
import type { GenerationRequest } from "../request/schema.js";
import type { PlannedComposition } from "./compose.js";

/** `seconds`: how long the music really lasts; null where there is none. */
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

/** What a song was made of and under, for the text about it. */
export interface Making {
  song: PlannedComposition;
  rendered: Pick<Rendering, "timings" | "adapter" | "lyricLines">;
  metas: SongMetas;
  /** The tempo was measured in the music, as nobody had named one. */
  isTempoMeasured: boolean;
}

/** Text for people; older clients read the "Name: value" lines. `totalSeconds`: of all `count` songs together. */
export function summary(
  request: GenerationRequest,
  { song, rendered, metas, isTempoMeasured }: Making,
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
    ...(rendered.adapter === null ? [] : [adapterLine(rendered.adapter)]),
    `Steps: ${request.timesteps === null ? request.inferenceSteps : request.timesteps.length - 1}`,
    ...(metas.bpm === null ? [] : [`BPM: ${metas.bpm}${isTempoMeasured ? " (measured)" : ""}`]),
    `Duration: ${metas.duration}`,
    ...(metas.keyscale === "" ? [] : [`Key: ${metas.keyscale}`]),
    ...(metas.timesignature === "" ? [] : [`Time Signature: ${metas.timesignature}`]),
  ];
  return lines.join("\n");
}

/** Lines as players of lyrics read them: [minutes:seconds.hundredths]text. */
export function lrcOf(lines: readonly LyricLine[]): string {
  const stamp = (seconds: number) => {
    const hundredths = Math.round(seconds * 100);
    const two = (number: number) => String(Math.floor(number)).padStart(2, "0");
    return `[${two(hundredths / 6000)}:${two((hundredths / 100) % 60)}.${two(hundredths % 100)}]`;
  };
  return lines.map(({ seconds, text }) => stamp(seconds) + text).join("\n");
}

function adapterLine({ name, scale }: ActingAdapter): string {
  return `LoRA: ${name} at ${scale}`;
}
