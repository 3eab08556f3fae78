/** Makes the songs of a task in steps: read recordings, prepare models, compose, render, finish. Each step uses the previous ones. */
import { rm } from "node:fs/promises";
import type { MusicEngine } from "../../engine/types.js";
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
}

/**
 * Makes all songs of a request and writes their files. The songs are planned together and rendered in batches (see
 * `SongRenderer.render` of the engine). Each song has its own seed, which also determines its metadata. On the CPU, a
 * seed gives the same song alone and in a batch. After an error, all written files are deleted. An exception of
 * `onProgress`, or its rejection, ends the job. For the request of an analysis, call `analyze` instead.
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
  const context: SongContext = { engine, request, ...job };
  const finished: FinishedSong[] = [];
  try {
    await assertWritable(destination);
    const recordings = await readRecordings(context);
    const lm = await provideLanguageModel(context);
    const slot = await prepareSlot(context);
    const songs = await compose(context, lm, recordings.source?.seconds ?? null);
    for await (const rendered of renderSongs(context, songs, recordings, slot, preview)) {
      const index = finished.length;
      const song = songs[index] as PlannedComposition;
      const parts = { index, recordings, lm, slot, song, rendered, writesTags, destination };
      finished.push(await finishSong(context, parts));
    }
    context.stages.learn(context.progress.end());
    return songsResult(context, lm, finished, (performance.now() - startedMs) / 1000);
  } catch (error) {
    for (const index of finished.keys()) {
      await rm(destination(index, "audio").path, { force: true });
      await rm(destination(index, "latents").path, { force: true });
    }
    context.failed.throwIfAborted();
    throw error;
  }
}
