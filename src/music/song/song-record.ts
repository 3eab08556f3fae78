/** Records of finished songs, and the result of the task that made them. */
import type { LanguageModelInfo, LyricLine, Metadata, Rendering, SongScores } from "../../engine/types.js";
import { describeLevel, type MeasuredLevel } from "../audio/loudness.js";
import type { SongDescription, SongFile, SongMetas, SongResult } from "../queue/store.js";
import { effectsInSongs } from "../request/effects.js";
import type { GenerationRequest } from "../request/generation-request.js";
import { makesStems } from "../request/task-types.js";
import type { SongFacts } from "../request/uses.js";
import type { PlannedComposition } from "./composition.js";
import type { ReadySlot } from "./prepare.js";
import type { SongContext } from "./song-context.js";

/** @param seconds length of the audio; null if there is no audio */
export function metasOf(
  { prompt, lyrics }: Pick<GenerationRequest["words"], "prompt" | "lyrics">,
  metadata: Metadata,
  seconds: number | null,
): SongMetas {
  return {
    bpm: metadata.bpm,
    duration: seconds === null ? null : Math.round(seconds * 100) / 100,
    genres: "",
    keyscale: metadata.keyScale,
    timesignature: metadata.timeSignature,
    prompt,
    lyrics,
  };
}

/** Inputs and measurements of a song, from which its record is written. */
interface SongInputs {
  song: PlannedComposition;
  slot: ReadySlot;
  rendered: Rendering;
  metas: SongMetas;
  /**
   * Whether the tempo was measured in the middle 30 seconds of the song, or of the source that it mostly keeps. The
   * measured tempo of a song without a source may be half or twice the perceived one.
   */
  isTempoMeasured: boolean;
  scores: SongScores | null;
  peaks: number[];
  level: MeasuredLevel;
}

/**
 * Name of the noise generator (native/core/diffusion/noise.h). A different generator would make different songs
 * from the same seeds.
 */
const NOISE = "Philox4x32-10";

export function describeSong(request: GenerationRequest, inputs: SongInputs): SongDescription {
  const { song, metas, rendered, scores, peaks, level } = inputs;
  const [track] = song.requested.tracks;
  return {
    prompt: song.caption,
    lyrics: song.lyrics,
    caption: song.renderCaption,
    vocalLanguage: song.language,
    metas,
    generationInfo: songInfo(request, inputs),
    ditModel: rendered.model,
    peaks,
    ...describeLevel(level),
    ...(makesStems(request.taskType) && track !== undefined && { trackName: track }),
    ...(song.codes && { audioCodes: [...song.codes] }),
    ...(rendered.lyricLines.length > 0 && { lrc: lrcOf(rendered.lyricLines) }),
    ...(scores !== null && { scores }),
  };
}

/** Lines of `generation_info` about one song. Older clients parse its "Name: value" lines. */
function songInfo(
  { taskType }: GenerationRequest,
  { song, slot, rendered, metas, isTempoMeasured }: SongInputs,
): string {
  const { timesteps, inferenceSteps } = slot.denoise;
  const { conditions, denoise, decode } = rendered.timings;
  const lines = [
    `- LM: metadata ${song.seconds.metadata.toFixed(2)}s, audio codes ${song.seconds.codes.toFixed(2)}s`,
    `- DiT: conditions ${conditions.toFixed(2)}s, diffusion ${denoise.toFixed(2)}s, decoding ${decode.toFixed(2)}s`,
    `Task: ${taskType}`,
    ...(rendered.adapters.length === 0
      ? []
      : [`LoRA: ${rendered.adapters.map(({ name, scale }) => `${name} at ${scale}`).join(", ")}`]),
    `Steps: ${timesteps === null ? inferenceSteps : timesteps.length - 1}`,
    `Noise: ${NOISE}`,
    ...(metas.bpm === null ? [] : [`BPM: ${metas.bpm}${isTempoMeasured ? " (measured)" : ""}`]),
    `Duration: ${metas.duration}`,
    ...(metas.keyscale === "" ? [] : [`Key: ${metas.keyscale}`]),
    ...(metas.timesignature === "" ? [] : [`Time Signature: ${metas.timesignature}`]),
  ];
  return lines.join("\n");
}

/** LRC format: [minutes:seconds.hundredths]text. */
function lrcOf(lines: readonly LyricLine[]): string {
  const stamp = (seconds: number) => {
    const hundredths = Math.round(seconds * 100);
    const two = (number: number) => String(Math.floor(number)).padStart(2, "0");
    return `[${two(hundredths / 6000)}:${two((hundredths / 100) % 60)}.${two(hundredths % 100)}]`;
  };
  return lines.map(({ seconds, text }) => stamp(seconds) + text).join("\n");
}

export interface FinishedSong {
  warnings: readonly string[];
  file: SongFile & { description: SongDescription };
  facts: SongFacts;
}

/** @param totalSeconds time that all songs of the task took */
export function songsResult(
  { request, warnings }: SongContext,
  lm: LanguageModelInfo | null,
  songs: readonly FinishedSong[],
  totalSeconds: number,
): SongResult {
  const count = songs.length;
  const time =
    `**🎵 Total generation time (${count} song${count === 1 ? "" : "s"}): ${totalSeconds.toFixed(2)}s**\n` +
    `- ${(totalSeconds / count).toFixed(2)}s per song\n`;
  const audioFiles = songs.map(({ file }) => {
    const { description } = file;
    return { ...file, description: { ...description, generationInfo: time + description.generationInfo } };
  });
  const facts = songs.map((song) => song.facts);
  const ofSongs = songs.flatMap((song) => song.warnings);
  return {
    ...(audioFiles[0] as (typeof audioFiles)[0]).description,
    seeds: request.songs.map(({ seed }) => seed),
    lmModel: lm?.name ?? "",
    audioFiles,
    analysis: null,
    warnings: [...new Set([...warnings, ...ofSongs, ...effectsInSongs(request.chosen, facts)])],
  };
}
