/** From a request to all that the renderer must know: sample, format, plan. */
import type { CallOptions } from "../../engine/addon.js";
import { EngineError } from "../../engine/errors.js";
import { parseQueryHints, writtenLanguage } from "../../engine/language.js";
import { UNKNOWN_LANGUAGE } from "../../engine/metadata.js";
import { asksForNoWords, INSTRUMENTAL_LYRICS } from "../../engine/prompts.js";
import type { LanguageModelInfo, Metadata, SamplingOptions } from "../../engine/types.js";
import { DEFAULT_LANGUAGE, type GenerationRequest } from "../request/schema.js";
import { RandomSamples } from "../words/random-samples.js";
import type { JobContext } from "./job-context.js";
import { NOTHING_STATED, statedFacts, withStatedFacts } from "./stated-facts.js";

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
 * Runs the steps that the request asks for.
 * @param lm that the task works with; null: none has a part in it
 * @param sourceSeconds the length of the recording that the task works on; null without one
 */
export async function compose(
  context: JobContext,
  lm: LanguageModelInfo | null,
  sourceSeconds: number | null,
): Promise<PlannedComposition> {
  const { request } = context;
  let song: Composition = {
    caption: request.prompt,
    lyrics: request.lyrics,
    language: namedLanguage(request.vocalLanguage),
    metadata: knownMetadata(request, sourceSeconds),
    isPlanned: false,
  };
  if (lm !== null && (request.sampleMode || request.sampleQuery !== ""))
    song = await sample(context, lm, song);
  const hasWords = song.caption.trim() !== "" || song.lyrics.trim() !== "";
  if (lm !== null && request.useFormat && hasWords) song = await format(context, lm, song);
  if (isInstrumental(song.lyrics)) song = { ...song, lyrics: INSTRUMENTAL_LYRICS };
  const planned = await plan(context, lm, song);
  return {
    ...planned,
    language: planned.language ?? (await writtenLanguage(song.lyrics)) ?? DEFAULT_LANGUAGE,
  };
}

async function sample(context: JobContext, lm: LanguageModelInfo, song: Composition): Promise<Composition> {
  const { engine, request, warnings } = context;
  const example = lm.writesText || request.sampleQuery !== "" ? null : exampleFor(request, song);
  const query = example?.caption ?? request.sampleQuery;
  const seed = request.seeds[0] as number;
  const hints = parseQueryHints(query);
  // Nobody has read the example yet.
  const known = withStatedFacts(song.metadata, statedFacts(query, song.metadata, true, warnings), seed);
  // Clients send "en" without meaning it; in a wish it counts as no preference.
  const preference = song.language === DEFAULT_LANGUAGE ? null : song.language;
  const sheet = await engine.createSample(
    {
      languageModel: lm.name,
      query,
      instrumental: hints.instrumental || (song.lyrics.trim() !== "" && isInstrumental(song.lyrics)),
      language: preference ?? hints.language,
      metadata: known,
      sampling: samplingOf(request),
      seed,
    },
    callOf(context, "sample"),
  );
  const { caption, lyrics, language, warnings: remarks, ...metadata } = sheet;
  const what = request.sampleQuery === "" ? "sample_mode" : "sample_query";
  warnings.push(...remarks.map((remark) => `${what}: ${remark}`));
  return {
    caption,
    lyrics: isInstrumental(song.lyrics) ? (example?.lyrics ?? lyrics) : song.lyrics,
    language: namedLanguage(language),
    metadata,
    isPlanned: true,
  };
}

/** What stands in for a wish that nobody made and no model can: the client's prompt, else one of our examples. */
function exampleFor({ seeds, lyrics }: GenerationRequest, { caption }: Composition) {
  if (caption.trim() !== "") return { caption, lyrics };
  return RandomSamples.load().ofSeed(seeds[0] as number);
}

/** A failure leaves the song as it was: it is still a song. */
async function format(context: JobContext, lm: LanguageModelInfo, song: Composition): Promise<Composition> {
  const { engine, request, warnings } = context;
  try {
    const sheet = await engine.formatInput(
      {
        languageModel: lm.name,
        caption: song.caption,
        lyrics: song.lyrics,
        language: song.language,
        metadata: song.metadata,
        sampling: samplingOf(request),
        seed: request.seeds[0] as number,
      },
      callOf(context, "format"),
    );
    const { caption, lyrics, language, warnings: remarks, ...metadata } = sheet;
    warnings.push(...remarks.map((remark) => `use_format: ${remark}`));
    return {
      caption,
      lyrics,
      language: song.language ?? namedLanguage(language),
      metadata,
      isPlanned: song.isPlanned || metadata.durationSeconds !== null,
    };
  } catch (error) {
    context.signal.throwIfAborted();
    warnings.push(`use_format had no effect: ${error instanceof Error ? error.message : error}`);
    return song;
  }
}

async function plan(
  context: JobContext,
  lm: LanguageModelInfo | null,
  song: Composition,
): Promise<Omit<PlannedComposition, "language"> & { language: string | null }> {
  const { engine, request, warnings } = context;
  const clientCodes = request.audioCodes?.map((codes) => Int32Array.from(codes)) ?? null;
  // Codes would take the place of a source, and a caption for one stem is not the song's.
  const isWholeSong = request.taskType === "text2music";
  const writeCodes = request.thinking && isWholeSong && clientCodes === null;
  const unplanned = {
    ...song,
    renderCaption: song.caption,
    audioCodes: clientCodes,
    seconds: { metadata: 0, codes: 0 },
  };
  if (lm === null || (!writeCodes && song.isPlanned)) return unplanned;
  try {
    const made = await engine.plan(
      {
        languageModel: lm.name,
        caption: song.caption,
        lyrics: song.lyrics,
        metadata: song.metadata,
        fillMetadata: !song.isPlanned,
        rewriteCaption: (request.useCotCaption ?? lm.writesText) && isWholeSong,
        detectLanguage: request.useCotLanguage && song.language === null,
        writeCodes,
        cfgScale: request.lmCfgScale,
        negativePrompt: request.lmNegativePrompt,
        sampling: samplingOf(request),
        seeds: request.seeds,
      },
      callOf(context, "plan"),
    );
    warnings.push(...made.warnings.map((remark) => `use_cot_caption: ${remark}`));
    return {
      ...song,
      metadata: made.metadata,
      language: song.language ?? namedLanguage(made.language),
      renderCaption: made.caption || song.caption,
      audioCodes: made.audioCodes ?? clientCodes,
      seconds: made.seconds,
    };
  } catch (error) {
    // Words that are too long for the language model need not be so for the renderer.
    if (writeCodes || !(error instanceof EngineError) || error.code !== "PROMPT_TOO_LONG") throw error;
    warnings.push(`the metadata were not planned: ${error.message}`);
    return unplanned;
  }
}

function callOf(context: JobContext, step: "sample" | "format" | "plan"): CallOptions {
  return { signal: context.signal, onProgress: context.progress.enter(step) };
}

/** The client's, completed by what the words say. */
function knownMetadata(request: GenerationRequest, sourceSeconds: number | null): Metadata {
  const { bpm, keyScale, timeSignature, stated = NOTHING_STATED, seeds } = request;
  const durationSeconds = sourceSeconds ?? request.audioDurationSeconds;
  return withStatedFacts({ bpm, keyScale, timeSignature, durationSeconds }, stated, seeds[0] as number);
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
function isInstrumental(lyrics: string): boolean {
  return lyrics.trim() === "" || asksForNoWords(lyrics);
}
