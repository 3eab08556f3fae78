/** Renders the composed songs of a task. The engine renders them in one batch if it can. */
import type { DecodedAudio, RenderCall } from "../../engine/addon.js";
import { renderParametersOf } from "../../engine/render-parameters.js";
import {
  CODES_PER_SECOND,
  type Rendering,
  type RenderRequest,
  type RenderSong,
  SAMPLE_RATE,
  type Seed,
} from "../../engine/types.js";
import { type RepaintWindow, repaintWindows } from "../audio/repaint-windows.js";
import type { GenerationRequest } from "../request/schema.js";
import type { PlannedComposition } from "./compose.js";
import { estimateLength } from "./lyric-length.js";
import type { Preview } from "./preview.js";
import type { Recordings, SongContext } from "./song-context.js";

/** The source of a task, as audio or as latents. */
type Sources = Pick<Recordings, "source"> & Partial<Pick<Recordings, "sourceLatents">>;

/** Exact length of the source in seconds; null without a source. */
export function secondsOf({ source, sourceLatents }: Sources): number | null {
  if (sourceLatents) return sourceLatents.samples / SAMPLE_RATE;
  return source === null ? null : source.length / 2 / SAMPLE_RATE;
}

/**
 * Renders the songs, and yields them in order. If a song has several repaint windows, each is repainted in the
 * result of the previous one.
 * @param contexts one per song
 * @param preview receives the audio of the first song while it is decoded
 */
export async function* renderSongs(
  contexts: readonly SongContext[],
  songs: readonly PlannedComposition[],
  recordings: Recordings,
  slot: number,
  preview: Preview | undefined,
): AsyncGenerator<Rendering> {
  const [first] = contexts as [SongContext];
  const { engine, progress } = first;
  const seconds = secondsOf(recordings);
  const windows = seconds === null ? [] : repaintWindows(first.request, seconds);
  /** Renders the window `index` of the songs [begin, end). */
  const render = (index: number, source: Sources, begin = 0, end = songs.length) => {
    const parts = { recordings, slot, source, window: windows[index] ?? null };
    const request = renderRequestOf(contexts.slice(begin, end), songs.slice(begin, end), parts);
    const isLast = index + 1 >= windows.length;
    return engine.renderer.render(request, (item, count) => {
      progress.beginSongs(begin + item, count);
      return callOf(first, isLast && begin + item === 0 ? preview : undefined);
    });
  };

  let item = 0;
  for await (let rendered of render(0, recordings)) {
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
function resultOf({ audio, latents }: Rendering, { sourceLatents }: Recordings): Sources {
  return sourceLatents === null ? { source: audio } : { source: null, sourceLatents: latents };
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
  contexts: readonly SongContext[],
  songs: readonly PlannedComposition[],
  {
    recordings: { reference, referenceLatents },
    slot,
    source: { source, sourceLatents = null },
    window,
  }: { recordings: Recordings; slot: number; source: Sources; window: RepaintWindow | null },
): RenderRequest {
  const [{ request, adapters }] = contexts as [SongContext];
  const sourceSeconds = secondsOf({ source, sourceLatents });
  return {
    slot,
    task: request.taskType,
    source: sourceSeconds === null ? null : { audio: source, latents: sourceLatents, window },
    referenceAudio: reference,
    referenceLatents,
    timesLyrics: request.timesLyrics,
    adapters,
    ...renderParametersOf(request),
    songs: songs.map((song, item) => renderSongOf(contexts[item] as SongContext, song, sourceSeconds)),
  };
}

function renderSongOf(
  { request, warnings }: SongContext,
  song: PlannedComposition,
  sourceSeconds: number | null,
): RenderSong {
  const durationSeconds = sourceSeconds ?? plannedSeconds(request, song) ?? estimatedSeconds(song, warnings);
  return {
    seed: request.seeds[0] as Seed,
    codes: song.audioCodes?.[0] ?? null,
    caption: song.renderCaption,
    globalCaption: request.globalCaption,
    lyrics: song.lyrics,
    language: song.language,
    metadata: { ...song.metadata, durationSeconds },
    instruction: request.instruction ?? "",
    trackName: request.trackName,
    trackClasses: request.trackClasses,
  };
}

/**
 * Returns the planned length of the song; null if none was planned. Audio codes of the client determine the length.
 * Audio codes of the language model were written for the length in the metadata.
 */
function plannedSeconds(
  request: GenerationRequest,
  { audioCodes, metadata }: PlannedComposition,
): number | null {
  const count = audioCodes?.[0]?.length;
  const codesSeconds = count === undefined ? null : count / CODES_PER_SECOND;
  return request.audioCodes === null ? (metadata.durationSeconds ?? codesSeconds) : codesSeconds;
}

function estimatedSeconds({ lyrics, metadata }: PlannedComposition, warnings: string[]): number {
  const { seconds, reason } = estimateLength(lyrics, metadata);
  warnings.push(`audio_duration was not set: using ${seconds} s, ${reason}`);
  return seconds;
}
