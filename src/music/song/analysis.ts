/** Tasks that make no music: they tell what a recording holds, or what would suit some words. */

import { writtenLanguage } from "../../engine/language.js";
import { NOTHING_KNOWN } from "../../engine/metadata.js";
import { audioCodeToken } from "../../engine/tokenizer.js";
import { SAMPLE_RATE } from "../../engine/types.js";
import type { SongResult } from "../queue/store.js";
import type { Analysis } from "../request/schema.js";
import { samplingOf } from "./compose.js";
import { type JobContext, provideLanguageModel, readRecordings, readySlot } from "./job-context.js";
import { metasOf } from "./song-record.js";
import { NOTHING_STATED, withStatedFacts } from "./stated-facts.js";

/** Facts are to be recognised, not varied. */
const UNDERSTANDING = { temperature: 0.3, topK: 0, topP: 1, repetitionPenalty: 1 };

/** @throws NativeError, EngineError, DecodeError, or the signal's reason */
export function analyze(context: JobContext, analysis: Analysis): Promise<SongResult> {
  switch (analysis) {
    case "codes":
      return extractCodes(context);
    case "full":
      return describeRecording(context);
    case "metadata":
      return describeWords(context);
  }
}

async function extractCodes(context: JobContext): Promise<SongResult> {
  const { codes, model } = await encodeSource(context);
  return {
    ...withoutSongs(context),
    metas: {},
    ditModel: model,
    analysis: {
      status_message: "Audio Codes Extraction Success",
      audio_codes: spell(codes),
      audio_paths: [],
      raw_audio_paths: [],
      first_audio_path: null,
    },
  };
}

async function describeRecording(context: JobContext): Promise<SongResult> {
  const { engine, request, signal, progress } = context;
  const lm = await provideLanguageModel(context);
  const { codes, seconds, model } = await encodeSource(context);
  const { caption, lyrics, language, warnings, ...metadata } = await engine.understand(
    {
      languageModel: lm?.name ?? null,
      audioCodes: codes,
      metadata: { ...NOTHING_KNOWN, durationSeconds: seconds },
      sampling: {
        ...UNDERSTANDING,
        constrained: request.constrainedDecoding,
        debug: request.constrainedDecodingDebug,
      },
      seed: request.seeds[0] as number,
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
      bpm: metas.bpm,
      keyscale: metas.keyscale,
      timesignature: metas.timesignature,
      duration: metas.duration,
      genre: "",
      language,
      audio_codes: spell(codes),
      audio_paths: [],
    },
  };
}

/** Metadata for caption and lyrics, held to what the caption states; what the client set takes no part. */
async function describeWords(context: JobContext): Promise<SongResult> {
  const { engine, request, signal, progress } = context;
  const lm = await provideLanguageModel(context);
  const plan = await engine.plan(
    {
      languageModel: lm?.name ?? null,
      caption: request.prompt,
      lyrics: request.lyrics,
      metadata: withStatedFacts(NOTHING_KNOWN, request.stated ?? NOTHING_STATED, request.seeds[0] as number),
      fillMetadata: true,
      rewriteCaption: false,
      detectLanguage: request.useCotLanguage,
      writeCodes: false,
      cfgScale: 1,
      negativePrompt: "",
      sampling: samplingOf(request),
      seeds: request.seeds,
    },
    { signal, onProgress: progress.enter("plan") },
  );
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
      language: plan.language ?? (await writtenLanguage(request.lyrics)) ?? "unknown",
    },
  };
}

async function encodeSource(
  context: JobContext,
): Promise<{ codes: Int32Array; seconds: number; model: string }> {
  const { engine, signal, progress } = context;
  const { source } = await readRecordings(context);
  // Parsing lets no such task through without a source.
  if (source === null) throw new Error("src_audio is missing");
  const { slot, model } = await readySlot(context);
  const call = { signal, onProgress: progress.enter("codes") };
  return {
    codes: await engine.encodeCodes(slot, source, call),
    seconds: source.length / 2 / SAMPLE_RATE,
    model,
  };
}

function withoutSongs({ request, warnings }: JobContext) {
  const { prompt, lyrics } = request;
  const nothing = { caption: "", vocalLanguage: "", generationInfo: "", lmModel: "" };
  return { prompt, lyrics, ...nothing, seeds: [], audioFiles: [], warnings };
}

/** As requests take codes. */
function spell(codes: Int32Array): string {
  return Array.from(codes, audioCodeToken).join("");
}
