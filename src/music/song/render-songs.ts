/** Renders the composed songs of a task. */
import type { DecodedAudio, RenderCall } from "../../engine/addon.js";
import {
  CODES_PER_SECOND,
  type Rendering,
  type RenderRequest,
  type RenderSong,
  SAMPLE_RATE,
} from "../../engine/types.js";
import { say } from "../../notes.js";
import type { PlannedComposition } from "./composition.js";
import { estimateLength } from "./lyric-length.js";
import type { ReadySlot } from "./prepare.js";
import type { Preview } from "./preview.js";
import { asRecording, type Recording, type Recordings } from "./recordings.js";
import type { SongContext } from "./song-context.js";

/**
 * Renders the songs, and yields them in order. If a song has several repaint windows, each is repainted in the
 * result of the previous one.
 * @param preview receives the audio of the first song while it is decoded
 */
export async function* renderSongs(
  context: SongContext,
  songs: readonly PlannedComposition[],
  recordings: Recordings,
  slot: ReadySlot,
  preview: Preview | undefined,
): AsyncGenerator<Rendering> {
  const { engine, progress } = context;
  const { windows } = recordings;
  /** Renders the window `index` of the songs [begin, end). */
  const render = (index: number, source: Recording | null, begin = 0, end = songs.length) => {
    const request = renderRequestOf(context, songs.slice(begin, end), { ...recordings, source }, slot, index);
    const isLast = index + 1 >= windows.length;
    return engine.renderer.render(request, (item, count) => {
      progress.beginSongs(begin + item, count);
      return callOf(context, isLast && begin + item === 0 ? preview : undefined);
    });
  };

  let item = 0;
  for await (let rendered of render(0, recordings.source)) {
    for (let index = 1; index < windows.length; index++) {
      const source = resultOf(rendered, recordings);
      for await (const next of render(index, source, item, item + 1)) rendered = withCostsOf(rendered, next);
    }
    if (item === 0) preview?.complete();
    item++;
    yield rendered;
  }
}

/** The song `next`, with the time and the warnings of both. */
function withCostsOf(previous: Rendering, next: Rendering): Rendering {
  return {
    ...next,
    timings: {
      conditions: previous.timings.conditions + next.timings.conditions,
      denoise: previous.timings.denoise + next.timings.denoise,
      decode: previous.timings.decode + next.timings.decode,
    },
    warnings: [...previous.warnings, ...next.warnings],
  };
}

/** Returns a rendered song as the source of its next window, in the form of the task's source: audio or latents. */
function resultOf({ audio, latents }: Rendering, { source }: Recordings): Recording {
  return source?.latents == null
    ? asRecording(audio)
    : { audio: null, latents, seconds: latents.samples / SAMPLE_RATE };
}

/** @param preview receives the decoded audio of the first song */
function callOf({ signal, progress }: SongContext, preview: Preview | undefined): RenderCall {
  const onDecoded = (part: DecodedAudio) => {
    if (part.item > 0) return;
    preview?.add(part);
    progress.reportPreview(preview?.seconds ?? 0);
  };
  return { signal, onProgress: progress.enter("render"), ...(preview && { onEvent: onDecoded }) };
}

function renderRequestOf(
  context: SongContext,
  songs: readonly PlannedComposition[],
  { source, reference, windows }: Recordings,
  { slot, denoise }: ReadySlot,
  window: number,
): RenderRequest {
  const { request, adapters } = context;
  const { taskType: task, guidance, edit, output } = request;
  return {
    ...{ slot, task, denoise, guidance, edit, adapters },
    source: source && { audio: source.audio, latents: source.latents, window: windows[window] ?? null },
    referenceAudio: reference?.audio ?? null,
    referenceLatents: reference?.latents ?? null,
    timesLyrics: output.timesLyrics,
    songs: songs.map((song) => renderSongOf(context, song, source)),
  };
}

function renderSongOf(
  { request: { taskType, words }, warnings }: SongContext,
  song: PlannedComposition,
  source: Recording | null,
): RenderSong {
  const durationSeconds = source?.seconds ?? plannedSeconds(song) ?? estimatedSeconds(song, warnings);
  const { seed, tracks } = song.requested;
  return {
    seed,
    codes: song.codes,
    caption: song.renderCaption,
    globalCaption: words.globalCaption,
    lyrics: song.lyrics,
    language: song.language,
    metadata: { ...song.metadata, durationSeconds },
    instruction: words.instruction ?? "",
    trackName: taskType === "complete" ? "" : (tracks[0] ?? ""),
    trackClasses: taskType === "complete" ? tracks : [],
  };
}

/**
 * Returns the planned length of the song; null if none was planned. Audio codes of the client determine the length.
 * Audio codes of the language model were written for the length in the metadata.
 */
function plannedSeconds({ requested, codes, metadata }: PlannedComposition): number | null {
  const codesSeconds = codes && codes.length / CODES_PER_SECOND;
  return requested.codes === null ? (metadata.durationSeconds ?? codesSeconds) : codesSeconds;
}

function estimatedSeconds({ lyrics, metadata }: PlannedComposition, warnings: string[]): number {
  const { seconds, reason } = estimateLength(lyrics, metadata);
  warnings.push(say("length_chosen", { seconds, reason }));
  return seconds;
}
