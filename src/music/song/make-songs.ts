/**
 * Runs one task in steps: read recordings, compose, render, encode, record. Each step uses the output of the
 * previous one.
 */
import { access, constants, rm } from "node:fs/promises";
import { dirname } from "node:path";
import {
  type LanguageModelInfo,
  type MusicEngine,
  type Rendering,
  SAMPLE_RATE,
  type SongAdapter,
  type SongLatents,
} from "../../engine/types.js";
import { EncodeError, encodeAudio } from "../audio/encode.js";
import { writeLatents } from "../audio/latents-file.js";
import { peaksOf } from "../audio/peaks.js";
import { type RepaintWindow, repaintWindows } from "../audio/repaint-windows.js";
import type { SongTags } from "../audio/tags.js";
import type { SongDescription, SongMetas, SongResult } from "../queue/store.js";
import { type SongFacts, unusedInSongs, warningsOf } from "../request/effects.js";
import { type OutputParameters, outputParametersOf } from "../request/output-parameters.js";
import type { GenerationRequest } from "../request/schema.js";
import { makesStems } from "../request/stems.js";
import { analyze } from "./analysis.js";
import { compose, isInstrumental, type PlannedComposition } from "./compose.js";
import type { Preview } from "./preview.js";
import { SongProgress, type TaskProgress } from "./progress.js";
import { renderSongs, secondsOf } from "./render-songs.js";
import { scoreSong } from "./scoring.js";
import {
  clampToModelLimits,
  type PlanSongs,
  prepareSlot,
  provideLanguageModel,
  type ReadySlot,
  type Recordings,
  readRecordings,
  requestForItem,
  type SongContext,
} from "./song-context.js";
import { factsOf } from "./song-facts.js";
import { generationInfo, lrcOf, metasOf, type SongInputs } from "./song-record.js";
import { titleOf } from "./title.js";

/** Output file of song `index`: its name in the record, and its path. */
export type Destination = (index: number, kind: "audio" | "latents") => { name: string; path: string };

export interface SongOptions {
  destination: Destination;
  /** Maximum length of source and reference audio. */
  maxSourceSeconds: number;
  /** Whether the language model also plans songs that do not require it; default false. */
  usesLmByDefault?: boolean;
  /** Adapters for the songs; absent: none. */
  adapters?: readonly SongAdapter[] | undefined;
  signal: AbortSignal;
  onProgress(progress: TaskProgress): void;
  /** Whether to write title, prompt, lyrics, tempo, key and seed into the files; default false. */
  writesTags?: boolean;
  /** Receives the audio of the first song while it is decoded. */
  preview?: Preview;
  /** Function that plans the songs; default: `planSongs` of the engine. */
  planSongs?: PlanSongs;
}

/**
 * Makes all songs of a request and writes their files, or runs an analysis. The songs are planned together
 * and rendered in batches (see `SongRenderer.render` of the engine). Each song has its own seed, which also
 * determines its metadata. On the CPU, a seed gives the same song alone and in a batch. After an error, all
 * written files are deleted. An exception of `onProgress`, or its rejection, ends the job.
 * @throws NativeError, EngineError, DecodeError, EncodeError (before anything is made if the folder of the first song is
 * not writable), RequestError for a window beyond the source, the reason of the signal, or the exception of `onProgress`
 */
export async function makeSongs(
  engine: MusicEngine,
  request: GenerationRequest,
  options: SongOptions,
): Promise<SongResult> {
  // Some steps turn errors into warnings. They stop when the signal has fired.
  const failed = new AbortController();
  const onProgress = (progress: TaskProgress) => {
    try {
      const reported: unknown = options.onProgress(progress);
      if (reported instanceof Promise) reported.catch((error: unknown) => failed.abort(error));
    } catch (error) {
      failed.abort(error);
      throw error;
    }
  };
  const signal = AbortSignal.any([options.signal, failed.signal]);
  try {
    return await makeAll(engine, request, { ...options, onProgress, signal });
  } catch (error) {
    failed.signal.throwIfAborted();
    throw error;
  }
}

async function makeAll(
  engine: MusicEngine,
  request: GenerationRequest,
  {
    destination,
    maxSourceSeconds,
    usesLmByDefault = false,
    writesTags = false,
    adapters,
    signal,
    onProgress,
    preview,
    planSongs = (_lm, requests, call) => engine.planner.planSongs(requests, call),
  }: SongOptions,
): Promise<SongResult> {
  const startedMs = performance.now();
  const progress = new SongProgress(request.batchSize, onProgress);
  const warnings = [...request.warnings];
  const options = { maxSourceSeconds, usesLmByDefault, adapters, planSongs };
  const context: SongContext = { engine, request, signal, progress, ...options, warnings };
  if (request.analysis !== null) return analyze(context, request.analysis);

  await assertWritable(dirname(destination(0, "audio").path));
  const lm = await provideLanguageModel(context);
  const recordings = await readRecordings(context);
  const ready = await prepareSlot(context);
  const allowed = clampToModelLimits(context, ready.isTurbo);
  const songs: Awaited<ReturnType<typeof finishSong>>[] = [];
  try {
    const own = request.seeds.map((_, item) => ({ ...context, request: requestForItem(allowed, item) }));
    const composed = await compose(own, lm, secondsOf(recordings));
    for await (const rendered of renderSongs(own, composed, recordings, ready.slot, preview)) {
      const item = songs.length;
      progress.beginSongs(item, 1);
      const song = composed[item] as PlannedComposition;
      const files = { audioFile: destination(item, "audio"), latentsFile: destination(item, "latents") };
      const parts = { lm, recordings, ready, song, rendered, writesTags, ...files };
      songs.push(await finishSong(own[item] as SongContext, parts));
    }
  } catch (error) {
    for (const [item, { path }] of songs.entries()) {
      await rm(path, { force: true });
      await rm(destination(item, "latents").path, { force: true });
    }
    throw error;
  }

  const facts = songs.map((song) => song.facts);
  warnings.push(...warningsOf(unusedInSongs(request.chosen ?? [], facts)));

  const totalSeconds = (performance.now() - startedMs) / 1000;
  const audioFiles = songs.map(({ name, bytes, latents, inputs, model }, item) => {
    const job = { totalSeconds, count: songs.length };
    const description = describe(requestForItem(allowed, item), inputs, model, job);
    return { name, bytes, description, ...(latents !== null && { latents }) };
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

async function assertWritable(folder: string): Promise<void> {
  await access(folder, constants.W_OK).catch((cause: Error) => {
    throw new EncodeError("ENCODE_FAILED", `the folder ${folder} is not writable: ${cause.message}`, {
      cause,
    });
  });
}

interface SongParts {
  lm: LanguageModelInfo | null;
  recordings: Recordings;
  ready: ReadySlot;
  song: PlannedComposition;
  rendered: Rendering;
  writesTags: boolean;
  audioFile: ReturnType<Destination>;
  latentsFile: ReturnType<Destination>;
}

/** Scores and encodes a rendered song, and collects the data for its record. */
async function finishSong(context: SongContext, parts: SongParts) {
  const { request, progress, signal, warnings } = context;
  const { lm, recordings, ready, song, rendered, writesTags } = parts;
  const { name, path } = parts.audioFile;
  const sourceSeconds = secondsOf(recordings);
  warnings.push(...rendered.warnings);
  progress.enter("encode");
  const { audio, model, samplesPerChannel } = rendered;
  const seconds = samplesPerChannel / SAMPLE_RATE;
  const scoring = await scoreSong(context, { song, audio, seconds, slot: ready.slot, lm });
  const finish = outputParametersOf(request);
  warnOfLongFades(finish, seconds, warnings);
  const { source } = recordings;
  const { facts: musical, isTempoMeasured } = factsOf({
    ...{ request, composition: song, audio, source, sourceSeconds },
  });
  const metas = metasOf(request, { ...song.metadata, ...musical }, seconds);
  const bytes = await encodeAudio({
    audio,
    samplesPerChannel,
    sampleRate: SAMPLE_RATE,
    format: request.audioFormat,
    finish,
    ...(writesTags && { tags: tagsOf(request, song, metas) }),
    path,
    signal,
  });
  const latents = request.returnLatents
    ? await storeLatents(rendered.latents, parts.latentsFile, path)
    : null;
  const { scores, noScoresReason } = scoring;
  const facts: SongFacts = {
    request,
    ...ready,
    model,
    languageModel: lm,
    written: song.written,
    isLanguageNamed: song.isLanguageNamed,
    hasWords: !isInstrumental(song.lyrics),
    hasLyricTimes: rendered.lyricLines.length > 0,
    noScoresReason,
    isWholeWindow: sourceSeconds !== null && spansAll(repaintWindows(request, sourceSeconds), sourceSeconds),
  };
  return {
    name,
    path,
    bytes,
    latents,
    model,
    facts,
    inputs: { song, rendered, metas, isTempoMeasured, scores, peaks: peaksOf(audio) } satisfies SongInputs,
  };
}

/** Writes the latents of a song beside its audio file. If that fails, the audio file is deleted. */
async function storeLatents(
  latents: SongLatents,
  { name, path }: { name: string; path: string },
  songPath: string,
): Promise<{ name: string; bytes: number }> {
  try {
    return { name, bytes: await writeLatents(path, latents) };
  } catch (error) {
    await rm(songPath, { force: true });
    throw error;
  }
}

function tagsOf(
  request: GenerationRequest,
  { caption, lyrics }: PlannedComposition,
  metas: SongMetas,
): SongTags {
  const title = titleOf({ request, result: { prompt: caption } });
  return { title, prompt: caption, lyrics, bpm: metas.bpm, key: metas.keyscale, seed: request.seeds.join() };
}

function spansAll(windows: readonly RepaintWindow[], seconds: number): boolean {
  const isWhole = ({ startSeconds, endSeconds }: RepaintWindow) => startSeconds <= 0 && endSeconds >= seconds;
  return windows.length === 0 || windows.some(isWhole);
}

function describe(
  request: GenerationRequest,
  inputs: SongInputs,
  ditModel: string,
  job: { totalSeconds: number; count: number },
): SongDescription {
  const { song, metas, rendered, scores, peaks } = inputs;
  const [audioCodes] = song.audioCodes ?? [];
  return {
    prompt: song.caption,
    lyrics: song.lyrics,
    caption: song.renderCaption,
    vocalLanguage: song.language,
    metas,
    generationInfo: generationInfo(request, inputs, job),
    ditModel,
    peaks,
    ...(makesStems(request.taskType) && request.trackName !== "" && { trackName: request.trackName }),
    ...(audioCodes && { audioCodes: [...audioCodes] }),
    ...(rendered.lyricLines.length > 0 && { lrc: lrcOf(rendered.lyricLines) }),
    ...(scores !== null && { scores }),
  };
}

function warnOfLongFades(
  { fadeInSeconds, fadeOutSeconds }: OutputParameters,
  songSeconds: number,
  warnings: string[],
): void {
  for (const [name, seconds] of Object.entries({ fade_in: fadeInSeconds, fade_out: fadeOutSeconds })) {
    if (seconds > songSeconds) {
      warnings.push(
        `${name} of ${seconds} seconds was shortened to the length of the song, ${songSeconds.toFixed(2)}`,
      );
    }
  }
}
