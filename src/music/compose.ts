/** From a request to all that the renderer must know: sample, format, plan (reference/music-http.md 2.11). */
import type { CallOptions } from "../engine/addon.js";
import { parseQueryHints } from "../engine/query-hints.js";
import type { Metadata, SamplingOptions } from "../engine/types.js";
import type { JobContext } from "./job-context.js";
import { DEFAULT_LANGUAGE, type GenerationRequest } from "./request/schema.js";

const UNKNOWN_LANGUAGE = "unknown";
const INSTRUMENTAL = "[Instrumental]";

/** A song before it is rendered. */
export interface Composition {
  caption: string;
  lyrics: string;
  /** Null: nobody has named one. */
  language: string | null;
  metadata: Metadata;
  /** Whether the language model has already written the metadata. */
  isPlanned: boolean;
}

export interface PlannedComposition extends Composition {
  language: string;
  /** The caption for the renderer: the language model's, where it wrote one. */
  renderCaption: string;
  /** Per item, or null for none. */
  audioCodes: Int32Array[] | null;
  seconds: { metadata: number; codes: number };
}

/**
 * Runs the steps that the request asks for. `hasLanguageModel`: one is loaded for this task, and has a part in it.
 * `sourceSeconds`: the length of the recording that the task works on; null without one.
 */
export async function compose(
  context: JobContext,
  hasLanguageModel: boolean,
  sourceSeconds: number | null,
): Promise<PlannedComposition> {
  const { request } = context;
  let song: Composition = {
    caption: request.prompt,
    lyrics: request.lyrics,
    language: namedLanguage(request.vocalLanguage),
    metadata: clientMetadata(request, sourceSeconds),
    isPlanned: false,
  };
  if (hasLanguageModel && (request.sampleMode || request.sampleQuery !== "")) {
    song = await sample(context, song);
  }
  const hasWords = song.caption.trim() !== "" || song.lyrics.trim() !== "";
  if (hasLanguageModel && request.useFormat && hasWords) song = await format(context, song);
  if (isInstrumental(song.lyrics)) song = { ...song, lyrics: INSTRUMENTAL };
  return plan(context, song, hasLanguageModel);
}

async function sample(context: JobContext, song: Composition): Promise<Composition> {
  const { engine, request } = context;
  const hints = parseQueryHints(request.sampleQuery);
  // Clients send "en" without meaning it; in a wish it counts as no preference.
  const preference = song.language === DEFAULT_LANGUAGE ? null : song.language;
  const sheet = await engine.createSample(
    {
      query: request.sampleQuery,
      instrumental: hints.instrumental || (song.lyrics.trim() !== "" && isInstrumental(song.lyrics)),
      language: preference ?? hints.language,
      metadata: song.metadata,
      sampling: samplingOf(request),
      seed: request.seeds[0] as number,
    },
    callOf(context, "sample"),
  );
  const { caption, lyrics, language, ...metadata } = sheet;
  return { caption, lyrics, language: namedLanguage(language), metadata, isPlanned: true };
}

/** A failure leaves the song as it was: it is still a song. */
async function format(context: JobContext, song: Composition): Promise<Composition> {
  const { engine, request } = context;
  try {
    const sheet = await engine.formatInput(
      {
        caption: song.caption,
        lyrics: song.lyrics,
        language: song.language,
        metadata: song.metadata,
        sampling: samplingOf(request),
        seed: request.seeds[0] as number,
      },
      callOf(context, "format"),
    );
    const { caption, lyrics, language, ...metadata } = sheet;
    return {
      caption: caption || song.caption,
      lyrics: keepsLyrics(song.lyrics, lyrics) ? song.lyrics : lyrics,
      language: song.language ?? namedLanguage(language),
      metadata,
      isPlanned: song.isPlanned || metadata.durationSeconds !== null,
    };
  } catch (error) {
    context.signal.throwIfAborted();
    context.warnings.push(`use_format had no effect: ${error instanceof Error ? error.message : error}`);
    return song;
  }
}

async function plan(
  context: JobContext,
  song: Composition,
  hasLanguageModel: boolean,
): Promise<PlannedComposition> {
  const { engine, request } = context;
  const clientCodes = request.audioCodes?.map((codes) => Int32Array.from(codes)) ?? null;
  // Codes would take the place of a source, and a caption for one stem is not the song's.
  const isWholeSong = request.taskType === "text2music";
  const writeCodes = request.thinking && isWholeSong && clientCodes === null;
  const fillMetadata = hasLanguageModel && !song.isPlanned;
  if (!writeCodes && !fillMetadata) {
    return {
      ...song,
      language: song.language ?? DEFAULT_LANGUAGE,
      renderCaption: song.caption,
      audioCodes: clientCodes,
      seconds: { metadata: 0, codes: 0 },
    };
  }
  const made = await engine.plan(
    {
      caption: song.caption,
      lyrics: song.lyrics,
      metadata: song.metadata,
      fillMetadata,
      rewriteCaption: request.useCotCaption && isWholeSong,
      detectLanguage: request.useCotLanguage && song.language === null,
      writeCodes,
      cfgScale: request.lmCfgScale,
      negativePrompt: request.lmNegativePrompt,
      sampling: samplingOf(request),
      seeds: request.seeds,
    },
    callOf(context, "plan"),
  );
  return {
    ...song,
    metadata: made.metadata,
    language: song.language ?? made.language ?? DEFAULT_LANGUAGE,
    renderCaption: made.caption || song.caption,
    audioCodes: made.audioCodes ?? clientCodes,
    seconds: made.seconds,
  };
}

function callOf(context: JobContext, step: "sample" | "format" | "plan"): CallOptions {
  return { signal: context.signal, onProgress: context.progress.enter(step) };
}

function clientMetadata(request: GenerationRequest, sourceSeconds: number | null): Metadata {
  return {
    bpm: request.bpm,
    keyScale: request.keyScale,
    timeSignature: request.timeSignature,
    durationSeconds: sourceSeconds ?? request.audioDurationSeconds,
  };
}

export function samplingOf(request: GenerationRequest): SamplingOptions {
  return {
    temperature: request.lmTemperature,
    topK: request.lmTopK,
    topP: request.lmTopP,
    repetitionPenalty: request.lmRepetitionPenalty,
    constrained: request.constrainedDecoding,
    debug: request.constrainedDecodingDebug,
  };
}

function namedLanguage(language: string | null): string | null {
  return language === null || language === UNKNOWN_LANGUAGE ? null : language;
}

/** Blank lyrics, `[inst]` and `[instrumental]` in any case. */
export function isInstrumental(lyrics: string): boolean {
  return ["", "[inst]", "[instrumental]"].includes(lyrics.trim().toLowerCase());
}

/** The model tends to answer lyrics with "[Instrumental]"; words that were there are not dropped for that. */
export function keepsLyrics(before: string, after: string): boolean {
  return !isInstrumental(before) && isInstrumental(after);
}
