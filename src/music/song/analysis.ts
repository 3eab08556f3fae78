/**
 * Analysis tasks. They return audio codes of a recording, a description of a recording, or metadata that suits caption
 * and lyrics.
 */

import { audioCodeText } from "../../engine/audio-code-text.js";
import { detectLanguage } from "../../engine/language.js";
import { UNKNOWN_METADATA } from "../../engine/metadata.js";
import { type Plan, SAMPLE_RATE } from "../../engine/types.js";
import type { SongResult } from "../queue/store.js";
import type { Analysis } from "../request/schema.js";
import { planningSeed, samplingOf } from "./compose.js";
import { prepareSlot, provideLanguageModel, readRecordings, type SongContext } from "./song-context.js";
import { metasOf } from "./song-record.js";
import { NOTHING_STATED, withStatedFacts } from "./stated-facts.js";

/** Sampling options for describing a recording. The temperature is low, so that descriptions hardly vary. */
const UNDERSTANDING = { temperature: 0.3, topK: 0, topP: 1, minP: 0, repetitionPenalty: 1 };

/** @throws NativeError, EngineError, DecodeError, or the reason of `context.signal` if aborted */
export function analyze(context: SongContext, analysis: Analysis): Promise<SongResult> {
  switch (analysis) {
    case "codes":
      return extractCodes(context);
    case "full":
      return describeRecording(context);
    case "metadata":
      return describeWords(context);
  }
}

async function extractCodes(context: SongContext): Promise<SongResult> {
  const { codes, model } = await encodeSource(context);
  return {
    ...withoutSongs(context),
    metas: {},
    ditModel: model,
    analysis: {
      status_message: "Audio Codes Extraction Success",
      audio_codes: audioCodeText(codes),
      audio_paths: [],
      raw_audio_paths: [],
      first_audio_path: null,
    },
  };
}

async function describeRecording(context: SongContext): Promise<SongResult> {
  const { engine, request, signal, progress } = context;
  const lm = await provideLanguageModel(context);
  const { codes, seconds, model } = await encodeSource(context);
  const { caption, lyrics, language, warnings, ...metadata } = await engine.planner.understand(
    {
      languageModel: lm?.name ?? null,
      audioCodes: codes,
      metadata: { ...UNKNOWN_METADATA, durationSeconds: seconds },
      sampling: {
        ...UNDERSTANDING,
        constrained: request.constrainedDecoding,
        debug: request.constrainedDecodingDebug,
      },
      seed: planningSeed(request),
    },
    { signal, onProgress: progress.enter("understand") },
  );
  context.warnings.push(...warnings);
  const metas = metasOf(request, metadata, seconds);
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
async function describeWords(context: SongContext): Promise<SongResult> {
  const { engine, request, signal, progress } = context;
  const lm = await provideLanguageModel(context);
  const planRequest = {
    languageModel: lm?.name ?? null,
    caption: request.prompt,
    lyrics: request.lyrics,
    metadata: withStatedFacts(UNKNOWN_METADATA, request.stated ?? NOTHING_STATED, planningSeed(request)),
    fillMetadata: true,
    rewriteCaption: false,
    detectLanguage: request.useCotLanguage,
    writeCodes: false,
    cfgScale: 1,
    negativePrompt: "",
    sampling: samplingOf(request),
    seeds: [planningSeed(request)],
  };
  const call = { signal, onProgress: progress.enter("plan") };
  const [plan] = (await engine.planner.planSongs([planRequest], call)) as [Plan];
  const metas = metasOf(request, plan.metadata, plan.metadata.durationSeconds);
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
      language: plan.language ?? (await detectLanguage(request.lyrics)) ?? "unknown",
    },
  };
}

async function encodeSource(
  context: SongContext,
): Promise<{ codes: Int32Array; seconds: number; model: string }> {
  const { engine, signal, progress } = context;
  const { source } = await readRecordings(context);
  // Cannot happen: the parser refuses an analysis without a source.
  if (source === null) throw new Error("src_audio is missing");
  const { slot, model } = await prepareSlot(context);
  const call = { signal, onProgress: progress.enter("codes") };
  return {
    codes: await engine.renderer.encodeCodes(slot, source, call),
    seconds: source.length / 2 / SAMPLE_RATE,
    model,
  };
}

function withoutSongs({ request, warnings }: SongContext) {
  const { prompt, lyrics } = request;
  const nothing = { caption: "", vocalLanguage: "", generationInfo: "", lmModel: "" };
  return { prompt, lyrics, ...nothing, seeds: [], audioFiles: [], warnings };
}
