/** Runs one task in steps: read recordings, prepare models, compose, render, finish. Each step uses the previous ones. */
import { access, constants, rm } from "node:fs/promises";
import { dirname } from "node:path";
import type { MusicEngine, SongAdapter } from "../../engine/types.js";
import { EncodeError } from "../audio/encode.js";
import type { SongResult } from "../queue/store.js";
import type { GenerationRequest } from "../request/generation-request.js";
import { analyze, writesFiles } from "./analysis.js";
import { compose } from "./compose.js";
import type { PlannedComposition } from "./composition.js";
import { type Destination, finishSong } from "./finish-song.js";
import { prepare } from "./prepare.js";
import type { Preview } from "./preview.js";
import { SongProgress, type TaskProgress } from "./progress.js";
import { readRecordings } from "./recordings.js";
import { renderSongs } from "./render-songs.js";
import type { PlanSongs, SongContext } from "./song-context.js";
import { type FinishedSong, songsResult } from "./task-result.js";

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
  const progress = new SongProgress(request.songs.length, onProgress);
  const warnings = [...request.warnings];
  const options = { maxSourceSeconds, usesLmByDefault, adapters, planSongs };
  const context: SongContext = { engine, request, signal, progress, ...options, warnings };
  const makesSongs = request.analysis === null;
  if (makesSongs || writesFiles(request)) await assertWritable(dirname(destination(0, "audio").path));

  const recordings = await readRecordings(context);
  const models = await prepare(context);
  if (!makesSongs || models.slot === null) return analyze(context, recordings, models, destination);
  const { lm, slot } = models;
  const finished: FinishedSong[] = [];
  try {
    const songs = await compose(context, lm, recordings.source?.seconds ?? null);
    for await (const rendered of renderSongs(context, songs, recordings, slot, preview)) {
      const index = finished.length;
      const song = songs[index] as PlannedComposition;
      const parts = { index, recordings, lm, slot, song, rendered, writesTags, destination };
      finished.push(await finishSong(context, parts));
    }
  } catch (error) {
    for (const index of finished.keys()) {
      await rm(destination(index, "audio").path, { force: true });
      await rm(destination(index, "latents").path, { force: true });
    }
    throw error;
  }
  return songsResult(context, lm, finished, (performance.now() - startedMs) / 1000);
}

async function assertWritable(folder: string): Promise<void> {
  await access(folder, constants.W_OK).catch((cause: Error) => {
    throw new EncodeError("ENCODE_FAILED", `the folder ${folder} is not writable: ${cause.message}`, {
      cause,
    });
  });
}
