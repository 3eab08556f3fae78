/** The way of one task: read recordings, compose, render, encode, record. Each step takes the output of the one before. */
import { rm } from "node:fs/promises";
import { textToMusicInstruction } from "../engine/instructions.js";
import type { MusicEngine, Rendering } from "../engine/types.js";
import { analyze } from "./analysis.js";
import { compose, type PlannedComposition } from "./compose.js";
import { encodeAudio } from "./encode.js";
import {
  type JobContext,
  type Recordings,
  readRecordings,
  readySlot,
  withinModelLimits,
} from "./job-context.js";
import { provideLanguageModel } from "./lm-policy.js";
import { JobProgress, type TaskProgress } from "./progress.js";
import { repaintWindow } from "./repaint-window.js";
import type { GenerationRequest } from "./request/schema.js";
import { metasOf, summary } from "./song-record.js";
import type { SongResult } from "./store.js";

/** What the addon renders at, and what recordings are decoded to. */
const SAMPLE_RATE = 48_000;
const CODES_PER_SECOND = 5;
/** Where neither the client nor the language model sets a length. */
const DEFAULT_DURATION_SECONDS = 30;

/** Where the audio of item `index` goes: a file's name for the record, and its path. */
export type Destination = (index: number) => { name: string; path: string };

export interface JobOptions {
  destination: Destination;
  /** Source and reference audio that lasts longer is refused. */
  maxSourceSeconds: number;
  signal: AbortSignal;
  report(progress: TaskProgress): void;
}

/**
 * Makes all items of a request and writes their files; makes none where the request asks for an analysis.
 * @throws NativeError, EngineError, DecodeError, EncodeError, RequestError for a window beyond the source, or the
 * signal's reason; no file is left then
 */
export async function makeSongs(
  engine: MusicEngine,
  request: GenerationRequest,
  { destination, maxSourceSeconds, signal, report }: JobOptions,
): Promise<SongResult> {
  const startedMs = performance.now();
  const progress = new JobProgress(request.batchSize, report);
  const warnings = [...request.warnings];
  const context: JobContext = { engine, request, signal, progress, maxSourceSeconds, warnings };
  if (request.analysis !== null) return analyze(context, request.analysis);

  const lmModel = await provideLanguageModel(context);
  const recordings = await readRecordings(context);
  const song = await compose(context, lmModel !== null, secondsOf(recordings));
  const { slot, model, isTurbo } = await readySlot(context);
  const allowed = withinModelLimits(context, isTurbo);
  const rendered = await render({ ...context, request: allowed }, song, recordings, slot);
  progress.enter("encode");
  const audioFiles = await encodeAll(rendered, request, destination, signal);

  const metas = metasOf(request, song.metadata, rendered.samplesPerChannel / SAMPLE_RATE);
  return {
    prompt: song.caption,
    lyrics: song.lyrics,
    metas,
    generationInfo: summary(allowed, song, rendered, metas, (performance.now() - startedMs) / 1000),
    seeds: request.seeds,
    lmModel: lmModel ?? "",
    ditModel: model,
    audioFiles,
    analysis: null,
    warnings,
  };
}

function render(
  context: JobContext,
  song: PlannedComposition,
  recordings: Recordings,
  slot: number,
): Promise<Rendering> {
  const { engine, request, signal, progress } = context;
  const sourceSeconds = secondsOf(recordings);
  const durationSeconds = sourceSeconds ?? codesSeconds(song) ?? song.metadata.durationSeconds;
  const knownSeconds = durationSeconds ?? DEFAULT_DURATION_SECONDS;
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
      metadata: { ...song.metadata, durationSeconds: knownSeconds },
      durationSeconds: knownSeconds,
      audioCodes: song.audioCodes,
      sourceAudio: recordings.source,
      referenceAudio: recordings.reference,
      window: sourceSeconds === null ? null : repaintWindow(request, sourceSeconds),
      repaint: { mode: request.repaintMode, strength: request.repaintStrength },
      chunkMask: request.chunkMaskMode,
      coverStrength: request.audioCoverStrength,
      coverNoiseStrength: request.coverNoiseStrength,
      seeds: request.seeds,
      inferenceSteps: request.inferenceSteps,
      shift: request.shift,
      timesteps: request.timesteps,
      inferMethod: request.inferMethod,
      guidanceScale: request.guidanceScale,
      useAdg: request.useAdg,
      cfgIntervalStart: request.cfgIntervalStart,
      cfgIntervalEnd: request.cfgIntervalEnd,
    },
    { signal, onProgress: progress.enter("render") },
  );
}

/** Of the source; null without one. */
function secondsOf({ source }: Recordings): number | null {
  return source === null ? null : source.length / 2 / SAMPLE_RATE;
}

function codesSeconds({ audioCodes }: PlannedComposition): number | null {
  const length = audioCodes?.[0]?.length;
  return length === undefined ? null : length / CODES_PER_SECOND;
}

/** Clients send the default along with every task, each of which needs another: only words of their own count. */
function isOwnInstruction(instruction: string | null): instruction is string {
  return instruction !== null && instruction !== textToMusicInstruction;
}

/** All files or none. */
async function encodeAll(
  rendered: Rendering,
  request: GenerationRequest,
  destination: Destination,
  signal: AbortSignal,
): Promise<SongResult["audioFiles"]> {
  const written: { name: string; path: string; bytes: number }[] = [];
  try {
    for (const [index, audio] of rendered.audio.entries()) {
      const { name, path } = destination(index);
      const { samplesPerChannel } = rendered;
      const format = request.audioFormat;
      const bytes = await encodeAudio({
        audio,
        samplesPerChannel,
        sampleRate: SAMPLE_RATE,
        format,
        path,
        signal,
      });
      written.push({ name, path, bytes });
    }
  } catch (error) {
    for (const { path } of written) await rm(path, { force: true });
    throw error;
  }
  return written.map(({ name, bytes }) => ({ name, bytes }));
}
