/** Renders the composed songs of a task. The engine renders them in one batch if it can. */
import type { DecodedAudio, RenderCall } from "../../engine/addon.js";
import { renderParametersOf } from "../../engine/render-parameters.js";
import { CODES_PER_SECOND, type Rendering, type RenderRequest, SAMPLE_RATE } from "../../engine/types.js";
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
  const seconds = secondsOf(recordings);
  const [window = null, ...others] = seconds === null ? [] : repaintWindows(first.request, seconds);
  const requestOf = (item: number, source: Sources, within: RepaintWindow | null) =>
    renderRequestOf(contexts[item] as SongContext, songs[item] as PlannedComposition, {
      ...{ recordings, slot, source, window: within },
    });

  const requests = songs.map((_, item) => requestOf(item, recordings, window));
  let item = 0;
  for await (let rendered of first.engine.renderer.renderSongs(requests, (begin, count) => {
    first.progress.beginSongs(begin, count);
    return callOf(first, begin === 0 && others.length === 0 ? preview : undefined);
  })) {
    for (const [index, other] of others.entries()) {
      first.progress.beginSongs(item, 1);
      const isPreviewed = item === 0 && index === others.length - 1;
      const request = requestOf(item, resultOf(rendered, recordings), other);
      const next = await first.engine.renderer.render(
        request,
        callOf(first, isPreviewed ? preview : undefined),
      );
      rendered = {
        ...next,
        timings: {
          conditions: rendered.timings.conditions + next.timings.conditions,
          denoise: rendered.timings.denoise + next.timings.denoise,
          decode: rendered.timings.decode + next.timings.decode,
        },
        warnings: [...rendered.warnings, ...next.warnings],
      };
    }
    if (item === 0) preview?.complete();
    item++;
    yield rendered;
  }
}

/** Returns a rendered song as the source of its next window, in the form of the task's source: audio or latents. */
function resultOf({ audio, latents }: Rendering, { sourceLatents }: Recordings): Sources {
  const [source = null] = audio;
  const [ownLatents = null] = latents;
  return sourceLatents === null ? { source } : { source: null, sourceLatents: ownLatents };
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
  { request, adapters, warnings }: SongContext,
  song: PlannedComposition,
  {
    recordings: { reference, referenceLatents },
    slot,
    source: { source, sourceLatents = null },
    window,
  }: { recordings: Recordings; slot: number; source: Sources; window: RepaintWindow | null },
): RenderRequest {
  const sourceSeconds = secondsOf({ source, sourceLatents });
  const durationSeconds = sourceSeconds ?? plannedSeconds(request, song) ?? estimatedSeconds(song, warnings);
  return {
    slot,
    task: request.taskType,
    instruction: request.instruction ?? "",
    trackName: request.trackName,
    trackClasses: request.trackClasses,
    globalCaption: request.globalCaption,
    caption: song.renderCaption,
    lyrics: song.lyrics,
    language: song.language,
    timesLyrics: request.timesLyrics,
    metadata: { ...song.metadata, durationSeconds },
    audioCodes: song.audioCodes,
    source: sourceSeconds === null ? null : { audio: source, latents: sourceLatents, window },
    referenceAudio: reference,
    referenceLatents,
    seeds: request.seeds,
    adapters,
    ...renderParametersOf(request),
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
