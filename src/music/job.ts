/** The way of one task: read recordings, compose, render, encode, record. Each step takes the output of the one before. */
import { rm } from "node:fs/promises";
import type { DecodedAudio } from "../engine/addon.js";
import { TEXT_TO_MUSIC_INSTRUCTION } from "../engine/conditioning.js";
import { renderParametersOf } from "../engine/render-parameters.js";
import {
  CODES_PER_SECOND,
  type LanguageModelInfo,
  type MusicEngine,
  type Rendering,
  SAMPLE_RATE,
  type SongAdapter,
} from "../engine/types.js";
import { repaintWindow } from "./audio/audio-inputs.js";
import { encodeAudio } from "./audio/encode.js";
import { measureTempo } from "./audio/tempo.js";
import type { SongDescription, SongResult } from "./queue/store.js";
import type { GenerationRequest } from "./request/schema.js";
import { analyze } from "./song/analysis.js";
import { compose, type PlannedComposition } from "./song/compose.js";
import {
  type JobContext,
  provideLanguageModel,
  type Recordings,
  readRecordings,
  readySlot,
  withinModelLimits,
} from "./song/job-context.js";
import type { Preview } from "./song/preview.js";
import { JobProgress, type TaskProgress } from "./song/progress.js";
import { lrcOf, type Making, metasOf, summary } from "./song/song-record.js";

/** Where neither the client nor the language model sets a length. */
const DEFAULT_DURATION_SECONDS = 30;

/** Where the audio of item `index` goes: a file's name for the record, and its path. */
export type Destination = (index: number) => { name: string; path: string };

export interface JobOptions {
  destination: Destination;
  /** Source and reference audio that lasts longer is refused. */
  maxSourceSeconds: number;
  /** Whether the language model has a part in songs that only leave it room to; by default it has not. */
  plansUnasked?: boolean;
  /** What songs of slot 1 are rendered under; null: the base model, absent: the adapter that acts there. */
  adapter?: SongAdapter | null | undefined;
  signal: AbortSignal;
  report(progress: TaskProgress): void;
  /** Where the first song can be heard as it is decoded. */
  preview?: Preview;
}

/**
 * Makes all songs of a request and writes their files; makes none where the request asks for an analysis. Each song of
 * a batch is made by itself, from its own seed, so that it is the one that the seed gives alone.
 * @throws NativeError, EngineError, DecodeError, EncodeError, RequestError for a window beyond the source, or the
 * signal's reason; no file is left then
 */
export async function makeSongs(
  engine: MusicEngine,
  request: GenerationRequest,
  { destination, maxSourceSeconds, plansUnasked = false, adapter, signal, report, preview }: JobOptions,
): Promise<SongResult> {
  const startedMs = performance.now();
  const progress = new JobProgress(request.batchSize, report);
  const warnings = [...request.warnings];
  const limits = { maxSourceSeconds, plansUnasked };
  const context: JobContext = { engine, request, adapter, signal, progress, ...limits, warnings };
  if (request.analysis !== null) return analyze(context, request.analysis);

  const lm = await provideLanguageModel(context);
  const recordings = await readRecordings(context);
  const { slot, isTurbo } = await readySlot(context);
  const allowed = withinModelLimits(context, isTurbo);
  const songs: Song[] = [];
  try {
    for (const item of request.seeds.keys()) {
      progress.beginSong(item);
      const own = { ...context, request: ofItem(allowed, item) };
      const parts = { lm, recordings, slot, ...destination(item) };
      songs.push(await makeSong(own, item === 0 && preview ? { ...parts, preview } : parts));
    }
  } catch (error) {
    for (const { path } of songs) await rm(path, { force: true });
    throw error;
  }

  const totalSeconds = (performance.now() - startedMs) / 1000;
  const audioFiles = songs.map(({ name, bytes, making, model }) => {
    const description = describe(allowed, making, model, { totalSeconds, count: songs.length });
    return { name, bytes, description };
  });
  return {
    ...(audioFiles[0] as (typeof audioFiles)[0]).description,
    seeds: request.seeds,
    lmModel: lm?.name ?? "",
    audioFiles,
    analysis: null,
    warnings: [...new Set(warnings)],
  };
}

interface Song {
  name: string;
  path: string;
  bytes: number;
  making: Making;
  /** The DiT that rendered it. */
  model: string;
}

/** The request for one song of the batch. */
function ofItem(request: GenerationRequest, item: number): GenerationRequest {
  return {
    ...request,
    batchSize: 1,
    seeds: request.seeds.slice(item, item + 1),
    audioCodes: request.audioCodes?.slice(item, item + 1) ?? null,
  };
}

interface SongParts {
  lm: LanguageModelInfo | null;
  recordings: Recordings;
  slot: number;
  name: string;
  path: string;
  preview?: Preview;
}

async function makeSong(context: JobContext, parts: SongParts): Promise<Song> {
  const { request, progress, signal, warnings } = context;
  const { lm, recordings, name, path, preview } = parts;
  const song = await compose(context, lm, secondsOf(recordings));
  const rendered = await render(context, song, parts);
  preview?.complete();
  warnings.push(...rendered.warnings);
  progress.enter("encode");
  const { model, samplesPerChannel } = rendered;
  const [audio] = rendered.audio;
  if (audio === undefined) throw new Error("no audio was rendered");
  const format = request.audioFormat;
  const bytes = await encodeAudio({
    audio,
    samplesPerChannel,
    sampleRate: SAMPLE_RATE,
    format,
    path,
    signal,
  });
  const isTempoMeasured = song.metadata.bpm === null;
  const bpm = song.metadata.bpm ?? measureTempo(audio, SAMPLE_RATE);
  const metas = metasOf(request, { ...song.metadata, bpm }, samplesPerChannel / SAMPLE_RATE);
  return { name, path, bytes, model, making: { song, rendered, metas, isTempoMeasured } };
}

function describe(
  request: GenerationRequest,
  making: Making,
  ditModel: string,
  job: { totalSeconds: number; count: number },
): SongDescription {
  const { song, metas, rendered } = making;
  const [audioCodes] = song.audioCodes ?? [];
  const [lines = []] = rendered.lyricLines;
  return {
    prompt: song.caption,
    lyrics: song.lyrics,
    caption: song.renderCaption,
    vocalLanguage: song.language,
    metas,
    generationInfo: summary(request, making, job),
    ditModel,
    ...(audioCodes && { audioCodes: [...audioCodes] }),
    ...(lines.length > 0 && { lrc: lrcOf(lines) }),
  };
}

function render(
  context: JobContext,
  song: PlannedComposition,
  { recordings, slot, preview }: SongParts,
): Promise<Rendering> {
  const { engine, request, signal, progress } = context;
  const { source: audio, reference } = recordings;
  const sourceSeconds = secondsOf(recordings);
  const hear = (part: DecodedAudio) => {
    preview?.add(part);
    progress.heard(preview?.seconds ?? 0);
  };
  const durationSeconds =
    sourceSeconds ?? codesSeconds(song) ?? song.metadata.durationSeconds ?? DEFAULT_DURATION_SECONDS;
  return engine.render(
    {
      slot,
      task: request.taskType,
      instruction: isOwnInstruction(request.instruction) ? request.instruction : "",
      trackName: request.trackName,
      trackClasses: request.trackClasses,
      globalCaption: request.globalCaption,
      caption: song.renderCaption,
      lyrics: song.lyrics,
      language: song.language,
      timesLyrics: request.timesLyrics,
      metadata: { ...song.metadata, durationSeconds },
      audioCodes: song.audioCodes,
      source: audio && { audio, window: repaintWindow(request, durationSeconds) },
      referenceAudio: reference,
      seeds: request.seeds,
      adapter: slot === 1 ? context.adapter : undefined,
      ...renderParametersOf(request),
    },
    { signal, onProgress: progress.enter("render"), ...(preview && { onEvent: hear }) },
  );
}

/** The length of the source; null without one. */
function secondsOf({ source }: Recordings): number | null {
  return source === null ? null : source.length / 2 / SAMPLE_RATE;
}

function codesSeconds({ audioCodes }: PlannedComposition): number | null {
  const length = audioCodes?.[0]?.length;
  return length === undefined ? null : length / CODES_PER_SECOND;
}

/** Clients send the default along with every task, each of which needs another: only words of their own count. */
function isOwnInstruction(instruction: string | null): instruction is string {
  return instruction !== null && instruction !== TEXT_TO_MUSIC_INSTRUCTION;
}
