/** Makes the songs of a task in steps: read recordings, prepare models, compose, render, finish. Each step uses the previous ones. */
import { rm } from "node:fs/promises";
import { availableParallelism } from "node:os";
import type { MusicEngine } from "../../engine/types.js";
import { findFfmpeg } from "../audio/ffmpeg.js";
import { AUDIO_PROFILES } from "../audio/formats.js";
import type { SongResult } from "../queue/store.js";
import type { GenerationRequest } from "../request/generation-request.js";
import { compose } from "./compose.js";
import type { PlannedComposition } from "./composition.js";
import { finishSong } from "./finish-song.js";
import { prepareSlot, provideLanguageModel } from "./prepare.js";
import type { Preview } from "./preview.js";
import { readRecordings } from "./recordings.js";
import { renderSongs } from "./render-songs.js";
import { assertWritable, type JobOptions, type SongContext, startJob } from "./song-context.js";
import { type FinishedSong, songsResult } from "./song-record.js";

export interface SongOptions extends JobOptions {
  /** Whether to write title, prompt, lyrics, tempo, key and seed into the files; default false. */
  writesTags?: boolean;
  /** Receives the audio of the first song while it is decoded. */
  preview?: Preview;
  /** Called when all songs are rendered. What is left, such as encoding, leaves the device free for other jobs. */
  onRendered?(): void;
}

/** Most songs that are finished at once. An encoder takes one core. */
const MAX_FINISHING = availableParallelism();

/**
 * Makes all songs of a request and writes their files. The songs are planned together and rendered in batches (see
 * `SongRenderer.render` of the engine). A song is finished while the next ones are rendered. Each song has its own seed,
 * which also determines its metadata. On the CPU, a seed gives the same song alone and in a batch. After an error, all
 * written files are deleted. An exception of `onProgress`, or its rejection, ends the job. For the request of an
 * analysis, call `analyze` instead.
 * @throws NativeError, EngineError, DecodeError, EncodeError (before anything is made if the folder of the first song is
 * not writable), RequestError for a window beyond the source, the reason of the signal, or the exception of `onProgress`
 */
export async function makeSongs(
  engine: MusicEngine,
  request: GenerationRequest,
  options: SongOptions,
): Promise<SongResult> {
  const startedMs = performance.now();
  if (request.analysis !== null) throw new TypeError("the request is an analysis: call analyze");
  const { destination, preview, writesTags = false } = options;
  const job = startJob(engine, request, options);
  const stop = new AbortController();
  const signal = AbortSignal.any([job.signal, stop.signal]);
  const context: SongContext = { engine, request, ...job, signal };
  const finishing: Promise<FinishedSong>[] = [];
  try {
    await assertWritable(destination);
    // Found while the song is rendered: the search starts processes. The encoder reports a failure.
    if (!("sample" in AUDIO_PROFILES[request.output.audioFormat])) void findFfmpeg().catch(() => {});
    const recordings = await readRecordings(context);
    const lm = await provideLanguageModel(context);
    const slot = await prepareSlot(context);
    const songs = await compose(context, lm, recordings.source?.seconds ?? null);
    for await (const rendered of renderSongs(context, songs, recordings, slot, preview)) {
      const index = finishing.length;
      const song = songs[index] as PlannedComposition;
      const parts = { index, recordings, lm, slot, song, rendered, writesTags, destination };
      await finishing[index - MAX_FINISHING];
      const ending = finishSong(context, parts);
      ending.catch((error: unknown) => stop.abort(error));
      finishing.push(ending);
    }
    options.onRendered?.();
    context.progress.beginSongs(0, songs.length);
    context.progress.enter("encode");
    const finished = await Promise.all(finishing);
    context.stages.learn(context.progress.end());
    return songsResult(context, lm, finished, (performance.now() - startedMs) / 1000);
  } catch (error) {
    stop.abort(error); // has no effect if a song that could not be finished has ended the job
    await Promise.allSettled(finishing);
    for (const index of finishing.keys()) {
      await rm(destination(index, "audio").path, { force: true });
      await rm(destination(index, "latents").path, { force: true });
    }
    context.failed.throwIfAborted();
    throw stop.signal.reason;
  }
}
