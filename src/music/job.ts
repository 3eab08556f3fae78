/** The way of one song: compose, render, encode, record. Each step takes the output of the one before. */
import { rm } from "node:fs/promises";
import type { RenderResult } from "../engine/addon.js";
import { textToMusicInstruction } from "../engine/instructions.js";
import type { MusicEngine } from "../engine/types.js";
import { type Composition, compose, type PlannedComposition } from "./compose.js";
import { encodeAudio } from "./encode.js";
import { provideLanguageModel } from "./lm-policy.js";
import { selectSlot } from "./model-selection.js";
import { JobProgress, type TaskProgress } from "./progress.js";
import type { GenerationRequest } from "./request/schema.js";
import type { SongMetas, SongResult } from "./store.js";

/** What the addon renders at. */
const SAMPLE_RATE = 48_000;
const CODES_PER_SECOND = 5;
/** Where neither the client nor the language model sets a length. */
const DEFAULT_DURATION_SECONDS = 30;

/** Where the audio of item `index` goes: a file's name for the record, and its path. */
export type Destination = (index: number) => { name: string; path: string };

export interface JobOptions {
  destination: Destination;
  signal: AbortSignal;
  report(progress: TaskProgress): void;
}

/**
 * Makes all items of a request and writes their files.
 * @throws NativeError, EngineError, EncodeError, or the signal's reason; no file is left then
 */
export async function makeSongs(
  engine: MusicEngine,
  request: GenerationRequest,
  { destination, signal, report }: JobOptions,
): Promise<SongResult> {
  const startedMs = performance.now();
  const progress = new JobProgress(request.batchSize, report);
  const warnings = [...request.warnings];
  const context = { engine, request, signal, progress, warnings };

  const call = { signal, onProgress: progress.enter("load") };
  const lmModel = await provideLanguageModel(engine, request, call, warnings);
  const song = await compose(context, lmModel !== null);

  const selected = selectSlot(engine.slots(), request.model);
  const { slot, model } =
    selected.model === null ? await engine.loadSlot(selected.slot, null, call) : selected;
  const ditModel = model ?? "";
  if (request.model !== null && request.model !== ditModel) {
    warnings.push(`model ${JSON.stringify(request.model)} is not loaded; ${ditModel} was used`);
  }
  const rendered = await render(context, song, slot);
  progress.enter("encode");
  const audioFiles = await encodeAll(rendered, request, destination, signal);

  const metas = metasOf(request, song, rendered.samplesPerChannel / SAMPLE_RATE);
  return {
    prompt: song.caption,
    lyrics: song.lyrics,
    metas,
    generationInfo: summary(request, song, rendered, metas, (performance.now() - startedMs) / 1000),
    seeds: request.seeds,
    lmModel: lmModel ?? "",
    ditModel,
    audioFiles,
    warnings,
  };
}

interface RenderContext {
  engine: MusicEngine;
  request: GenerationRequest;
  signal: AbortSignal;
  progress: JobProgress;
}

function render(context: RenderContext, song: PlannedComposition, slot: number): Promise<RenderResult> {
  const { engine, request, signal, progress } = context;
  const codesLength = song.audioCodes?.[0]?.length;
  const durationSeconds =
    codesLength === undefined
      ? (song.metadata.durationSeconds ?? DEFAULT_DURATION_SECONDS)
      : codesLength / CODES_PER_SECOND;
  return engine.render(
    {
      slot,
      task: "text2music",
      trackName: "",
      trackClasses: [],
      globalCaption: "",
      sourceAudio: null,
      referenceAudio: null,
      window: null,
      repaint: { mode: "balanced", strength: 0.5 },
      chunkMask: "explicit",
      coverStrength: 1,
      coverNoiseStrength: 0,
      instruction: isOwnInstruction(request.instruction) ? request.instruction : "",
      caption: song.renderCaption,
      lyrics: song.lyrics,
      language: song.language,
      metadata: { ...song.metadata, durationSeconds },
      durationSeconds,
      audioCodes: song.audioCodes,
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

/** Clients send the default along with audio codes, which need another: only words of their own count. */
function isOwnInstruction(instruction: string | null): instruction is string {
  return instruction !== null && instruction !== textToMusicInstruction;
}

/** All files or none. */
async function encodeAll(
  rendered: RenderResult,
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

function metasOf(request: GenerationRequest, song: Composition, seconds: number): SongMetas {
  return {
    bpm: song.metadata.bpm,
    duration: Math.round(seconds * 100) / 100,
    genres: "",
    keyscale: song.metadata.keyScale,
    timesignature: song.metadata.timeSignature,
    prompt: request.prompt,
    lyrics: request.lyrics,
  };
}

/** Text for people; older clients read the "Name: value" lines. */
function summary(
  request: GenerationRequest,
  song: PlannedComposition,
  rendered: RenderResult,
  metas: SongMetas,
  totalSeconds: number,
): string {
  const count = rendered.audio.length;
  const songs = `${count} song${count === 1 ? "" : "s"}`;
  const { conditions, denoise, decode } = rendered.timings;
  const lines = [
    `**🎵 Total generation time (${songs}): ${totalSeconds.toFixed(2)}s**`,
    `- ${(totalSeconds / count).toFixed(2)}s per song`,
    `- LM: metadata ${song.seconds.metadata.toFixed(2)}s, audio codes ${song.seconds.codes.toFixed(2)}s`,
    `- DiT: conditions ${conditions.toFixed(2)}s, diffusion ${denoise.toFixed(2)}s, decoding ${decode.toFixed(2)}s`,
    `Steps: ${request.timesteps === null ? request.inferenceSteps : request.timesteps.length - 1}`,
    ...(metas.bpm === null ? [] : [`BPM: ${metas.bpm}`]),
    `Duration: ${metas.duration}`,
    ...(metas.keyscale === "" ? [] : [`Key: ${metas.keyscale}`]),
    ...(metas.timesignature === "" ? [] : [`Time Signature: ${metas.timesignature}`]),
  ];
  return lines.join("\n");
}
