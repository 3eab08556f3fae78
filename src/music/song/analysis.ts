/**
 * Tasks that render nothing. They encode, decode or describe a recording, or write what the language model plans or
 * suggests for words.
 */

import type { z } from "zod";
import { audioCodeText } from "../../engine/audio-code-text.js";
import { detectLanguage } from "../../engine/language.js";
import { UNKNOWN_METADATA } from "../../engine/metadata.js";
import {
  type LanguageModelInfo,
  type MusicEngine,
  type Plan,
  type PlanarAudio,
  SAMPLE_RATE,
  type SongLatents,
} from "../../engine/types.js";
import { peakOf } from "../audio/decode.js";
import { encodeAudio } from "../audio/encode.js";
import { writeLatents } from "../audio/latents-file.js";
import { describeLevel } from "../audio/loudness.js";
import { peaksOf } from "../audio/peaks.js";
import type { songSheet } from "../openapi/answers.js";
import type { SongResult, StoredFile } from "../queue/store.js";
import type { GenerationRequest, RequestedSong } from "../request/generation-request.js";
import { compose } from "./compose.js";
import { planningSeed } from "./composition.js";
import { prepareSlot, provideLanguageModel, type ReadySlot } from "./prepare.js";
import { type Recording, readRecordings } from "./recordings.js";
import {
  assertWritable,
  type Destination,
  type JobOptions,
  type SongContext,
  startJob,
} from "./song-context.js";
import { metasOf } from "./song-record.js";
import { withStatedFacts } from "./stated-facts.js";

/** Sampling options for describing a recording. The temperature is low, so that descriptions hardly vary. */
const UNDERSTANDING = { temperature: 0.3, topK: 0, topP: 1, minP: 0, repetitionPenalty: 1 };

/** Options that the client may choose, by a value other than the default or with `verbatim`. */
const UNDERSTANDING_KEYS = ["temperature", "topK", "topP"] as const;

/** Whether an analysis writes a file. */
function writesFiles({ analysis, output }: GenerationRequest): boolean {
  return analysis === "latents" || analysis === "audio" || (analysis === "full" && output.returnLatents);
}

/**
 * Runs the analysis of a request. An exception of `onProgress`, or its rejection, ends the job.
 * @throws NativeError, EngineError, DecodeError, EncodeError, the reason of the signal, or the exception of `onProgress`
 */
export async function analyze(
  engine: MusicEngine,
  request: GenerationRequest,
  options: JobOptions,
): Promise<SongResult> {
  const job = startJob(engine, request, options);
  const context: SongContext = { engine, request, ...job };
  try {
    if (writesFiles(request)) await assertWritable(options.destination);
    const { source } = await readRecordings(context);
    const lm = await provideLanguageModel(context);
    if (request.analysis === "plan") return await planSongs(context, lm);
    if (request.analysis === "metadata") return await describeWords(context, lm);
    // Cannot happen: the parser refuses these analyses without a source.
    if (source === null) throw new Error("the source is missing");
    return await analyzeSource(context, source, lm, options.destination);
  } catch (error) {
    context.failed.throwIfAborted();
    throw error;
  }
}

async function analyzeSource(
  context: SongContext,
  source: Recording,
  lm: LanguageModelInfo | null,
  destination: Destination,
): Promise<SongResult> {
  const { analysis, output } = context.request;
  const slot = await prepareSlot(context);
  if (analysis === "audio") return decodeSource(context, source, slot, destination);
  const call = { signal: context.signal, onProgress: context.progress.enter("codes") };
  const { renderer } = context.engine;
  const isEncoded = analysis === "latents" || output.returnLatents;
  const latents =
    source.latents ?? (isEncoded ? await renderer.encodeLatents(slot.slot, source.audio, call) : null);
  const file = writesFiles(context.request) && latents !== null && (await store(latents, destination));
  if (analysis === "latents") {
    return { ...withoutSongs(context), ...file, metas: {}, ditModel: slot.model, analysis: {} };
  }
  const recording = latents ?? (source.audio as PlanarAudio);
  const codes = await renderer.encodeCodes(slot.slot, recording, call);
  if (analysis === "codes") {
    const paths = { audio_paths: [], raw_audio_paths: [], first_audio_path: null };
    const found = { status_message: "Audio Codes Extraction Success", audio_codes: audioCodeText(codes) };
    return { ...withoutSongs(context), metas: {}, ditModel: slot.model, analysis: { ...found, ...paths } };
  }
  return { ...(await describeRecording(context, lm, codes, source, slot)), ...file };
}

async function store(latents: SongLatents, destination: Destination): Promise<{ latents: StoredFile }> {
  const { name, path } = destination(0, "latents");
  return { latents: { name, bytes: await writeLatents(path, latents) } };
}

/** Makes a song of latents. It has the level that they state; otherwise it is only kept from clipping. */
async function decodeSource(
  context: SongContext,
  { latents }: Recording,
  { slot, model }: ReadySlot,
  destination: Destination,
): Promise<SongResult> {
  const { engine, request, signal, progress } = context;
  if (latents === null) throw new Error("src_latents is missing");
  const call = { signal, onProgress: progress.enter("render") };
  const audio = await engine.renderer.decodeLatents(slot, latents, call);
  const { output } = request;
  const isRaw = output.audioFormat === "wav32" || !output.normalizes;
  const stated = output.normalizes ? latents.gain : null;
  const gain = stated ?? (isRaw ? 1 : 1 / Math.max(1, peakOf(audio)));
  progress.enter("encode");
  const { name, path } = destination(0, "audio");
  const { bytes, ...level } = await encodeAudio({
    audio,
    samplesPerChannel: audio.length / 2,
    sampleRate: SAMPLE_RATE,
    format: output.audioFormat,
    finish: output,
    gain,
    path,
    signal,
  });
  const { prompt, lyrics, caption, vocalLanguage, generationInfo, ...rest } = withoutSongs(context);
  const description = {
    ...{ prompt, lyrics, caption, vocalLanguage, generationInfo, ditModel: model },
    metas: metasOf(request.words, UNKNOWN_METADATA, audio.length / 2 / SAMPLE_RATE),
    peaks: peaksOf(audio),
    ...describeLevel(level),
  };
  return {
    ...{ ...rest, ...description },
    seeds: request.songs.slice(0, 1).map(({ seed }) => seed),
    audioFiles: [{ name, bytes, description }],
    analysis: null,
  };
}

/** A plan of a song, with the field names of the HTTP API. */
export type SongPlan = Omit<z.output<typeof songSheet>, "warnings"> & { audio_codes: string };

async function planSongs(context: SongContext, lm: LanguageModelInfo | null): Promise<SongResult> {
  const plans = (await compose(context, lm, null)).map(
    ({ renderCaption, lyrics, metadata, language, codes }): SongPlan => ({
      caption: renderCaption,
      lyrics,
      bpm: metadata.bpm,
      duration: metadata.durationSeconds,
      key_scale: metadata.keyScale,
      time_signature: metadata.timeSignature,
      vocal_language: language,
      audio_codes: codes?.join() ?? "",
    }),
  );
  return {
    ...withoutSongs(context),
    seeds: context.request.songs.map(({ seed }) => seed),
    metas: {},
    lmModel: lm?.name ?? "",
    ditModel: "",
    analysis: { plans },
  };
}

async function describeRecording(
  context: SongContext,
  lm: LanguageModelInfo | null,
  codes: Int32Array,
  { seconds }: Recording,
  { model }: ReadySlot,
): Promise<SongResult> {
  const { engine, request, signal, progress } = context;
  const { constrained, debug } = request.sampling;
  const chosen = UNDERSTANDING_KEYS.filter(
    (key) => request.planning.verbatim || request.chosen.includes(key),
  );
  const sampling = Object.fromEntries(chosen.map((key) => [key, request.sampling[key]]));
  const { caption, lyrics, language, warnings, ...metadata } = await engine.planner.understand(
    {
      languageModel: lm?.name ?? null,
      audioCodes: codes,
      metadata: { ...UNKNOWN_METADATA, durationSeconds: seconds },
      sampling: { ...UNDERSTANDING, ...sampling, constrained, debug },
      seed: planningSeed(request.songs[0] as RequestedSong),
    },
    { signal, onProgress: progress.enter("understand") },
  );
  context.warnings.push(...warnings);
  const metas = metasOf(request.words, metadata, seconds);
  return {
    ...withoutSongs(context),
    prompt: caption,
    lyrics,
    metas,
    lmModel: lm?.name ?? "",
    ditModel: model,
    analysis: {
      status_message: "Full Hardware Analysis Success",
      prompt: caption,
      lyrics,
      bpm: metas.bpm,
      keyscale: metas.keyscale,
      timesignature: metas.timesignature,
      duration: metas.duration,
      genre: "",
      language,
      audio_codes: audioCodeText(codes),
      audio_paths: [],
    },
  };
}

/**
 * Returns metadata that suits caption and lyrics. Keeps facts that the caption states. Ignores metadata that the
 * client set.
 */
async function describeWords(context: SongContext, lm: LanguageModelInfo | null): Promise<SongResult> {
  const { engine, request, signal, progress } = context;
  const { words, facts, planning, sampling } = request;
  const seed = planningSeed(request.songs[0] as RequestedSong);
  const planRequest = {
    languageModel: lm?.name ?? null,
    caption: words.prompt,
    lyrics: words.lyrics,
    metadata: withStatedFacts(UNKNOWN_METADATA, facts.stated, seed),
    fillMetadata: true,
    rewriteCaption: false,
    detectLanguage: planning.useCotLanguage,
    writeCodes: false,
    cfgScale: 1,
    negativePrompt: "",
    sampling,
    seed,
  };
  const call = { signal, onProgress: progress.enter("plan") };
  const [plan] = (await engine.planner.planSongs([planRequest], call)) as [Plan];
  const metas = metasOf(words, plan.metadata, plan.metadata.durationSeconds);
  return {
    ...withoutSongs(context),
    metas,
    lmModel: lm?.name ?? "",
    ditModel: "None (Analysis Only)",
    analysis: {
      bpm: metas.bpm,
      keyscale: metas.keyscale,
      timesignature: metas.timesignature,
      duration: metas.duration,
      language: plan.language ?? (await detectLanguage(words.lyrics)) ?? "unknown",
    },
  };
}

function withoutSongs({ request, warnings }: SongContext) {
  const { prompt, lyrics } = request.words;
  const nothing = { caption: "", vocalLanguage: "", generationInfo: "", lmModel: "" };
  return { prompt, lyrics, ...nothing, seeds: [], audioFiles: [], warnings };
}
