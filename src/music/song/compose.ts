/**
 * Prepares songs for the renderer with the language model. The functions `sample` and `format` write caption,
 * lyrics and metadata; `plan` adds missing metadata and audio codes.
 */
import type { CallOptions } from "../../engine/addon.js";
import { EngineError } from "../../engine/errors.js";
import { detectLanguage, parseQueryHints } from "../../engine/language.js";
import { isComplete, UNKNOWN_LANGUAGE } from "../../engine/metadata.js";
import { INSTRUMENTAL_LYRICS, isInstrumentalTag } from "../../engine/prompts.js";
import type {
  LanguageModelInfo,
  Metadata,
  Plan,
  PlanRequest,
  SamplingOptions,
  Seed,
} from "../../engine/types.js";
import type { LmOutput } from "../request/effects.js";
import { DEFAULT_LANGUAGE, type GenerationRequest } from "../request/schema.js";
import { RandomSamples } from "../words/random-samples.js";
import { requestForItem, type SongContext, writesTextBeforePlanning } from "./song-context.js";
import { NOTHING_STATED, statedFacts, withStatedFacts } from "./stated-facts.js";

/** Caption, lyrics and metadata of a song before it is rendered. */
interface Composition {
  caption: string;
  lyrics: string;
  /** Language of the lyrics; null if not known yet. */
  language: string | null;
  metadata: Metadata;
  /** Whether the language model has already written the metadata, so that planning adds none. */
  isPlanned: boolean;
  written: ReadonlySet<LmOutput>;
}

export interface PlannedComposition extends Composition {
  language: string;
  /** Whether the language of the lyrics was known before planning. */
  isLanguageNamed: boolean;
  /** Caption for the renderer: as written by the language model, or `caption` if the language model wrote none. */
  renderCaption: string;
  /** Audio codes of the song; null: none. */
  audioCodes: Int32Array[] | null;
  seconds: { metadata: number; codes: number };
}

/**
 * Runs the requested steps for the songs of one task: first writes the song sheets (caption, lyrics, metadata) one
 * after another, then plans all songs together.
 * @param contexts one per song
 * @param lm language model of the task, or null
 * @param sourceSeconds length of the source recording, or null
 */
export async function compose(
  contexts: readonly SongContext[],
  lm: LanguageModelInfo | null,
  sourceSeconds: number | null,
): Promise<PlannedComposition[]> {
  const songs: Composition[] = [];
  for (const [index, context] of contexts.entries()) {
    context.progress.beginSongs(index, 1);
    songs.push(await draft(context, lm, sourceSeconds));
  }
  const planned = await plan(contexts, lm, songs);
  return Promise.all(
    planned.map(async (song, index) => ({
      ...song,
      isLanguageNamed: songs[index]?.language != null,
      language: song.language ?? (await detectLanguage(song.lyrics)) ?? DEFAULT_LANGUAGE,
    })),
  );
}

/** Returns caption, lyrics and known metadata of a song before planning. */
async function draft(
  context: SongContext,
  lm: LanguageModelInfo | null,
  sourceSeconds: number | null,
): Promise<Composition> {
  const { request } = context;
  let song = clientComposition(request, lm, sourceSeconds);
  if (lm !== null && (request.sampleMode || request.sampleQuery !== ""))
    song = await sample(context, lm, song);
  const hasWords = song.caption.trim() !== "" || song.lyrics.trim() !== "";
  if (lm !== null && request.useFormat && hasWords) song = await format(context, lm, song);
  return withInstrumentalTag(song);
}

/** Caption, lyrics and metadata that the request contains. */
function clientComposition(
  request: GenerationRequest,
  lm: LanguageModelInfo | null,
  sourceSeconds: number | null,
): Composition {
  const seed = lm === null ? (request.seeds[0] as Seed) : planningSeed(request);
  return {
    caption: request.prompt,
    lyrics: request.lyrics,
    language: namedLanguage(request.vocalLanguage),
    metadata: knownMetadata(request, seed, sourceSeconds),
    isPlanned: false,
    written: new Set(),
  };
}

function withInstrumentalTag(song: Composition): Composition {
  return isInstrumental(song.lyrics) ? { ...song, lyrics: INSTRUMENTAL_LYRICS } : song;
}

/**
 * Returns the plan requests that `compose` will make for the songs of a text2music task. Null for other tasks, for
 * tasks that write text before planning, and for requests that forbid planning songs together.
 */
export function planRequestsOf(request: GenerationRequest, lm: LanguageModelInfo): PlanRequest[] | null {
  const isText = request.analysis === null && request.taskType === "text2music";
  if (!isText || !request.allowLmBatch || writesTextBeforePlanning(request)) return null;
  return request.seeds.map((_, item) => {
    const own = requestForItem(request, item);
    return planRequestOf(lm, own, withInstrumentalTag(clientComposition(own, lm, null)));
  });
}

async function sample(context: SongContext, lm: LanguageModelInfo, song: Composition): Promise<Composition> {
  const { engine, request, warnings } = context;
  const example = lm.writesText || request.sampleQuery !== "" ? null : exampleFor(request, song);
  const query = example?.caption ?? request.sampleQuery;
  const seed = planningSeed(request);
  const hints = parseQueryHints(query);
  // Parse the facts of the query here. The facts of the request do not include them if the query is a built-in
  // example.
  const known = withStatedFacts(song.metadata, statedFacts(query, song.metadata, true, warnings), seed);
  // "en" counts as no preference here, because clients send it by default.
  const preference = song.language === DEFAULT_LANGUAGE ? null : song.language;
  const sheet = await engine.planner.createSample(
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
    lyrics: song.lyrics.trim() === "" ? (example?.lyrics ?? lyrics) : song.lyrics,
    language: namedLanguage(language),
    metadata,
    isPlanned: true,
    written: withSheet(song.written, lm, known),
  };
}

/**
 * Caption and lyrics for `sample_mode` if the language model does not write text. They come from the client, or
 * from an example picked by the seed if the client sent no prompt.
 */
function exampleFor(request: GenerationRequest, { caption }: Composition) {
  if (caption.trim() !== "") return { caption, lyrics: request.lyrics };
  return RandomSamples.load().ofSeed(planningSeed(request));
}

/** Formats caption and lyrics. A failure leaves the song unchanged and adds a warning. */
async function format(context: SongContext, lm: LanguageModelInfo, song: Composition): Promise<Composition> {
  const { engine, request, warnings } = context;
  try {
    const sheet = await engine.planner.formatInput(
      {
        languageModel: lm.name,
        caption: song.caption,
        lyrics: song.lyrics,
        language: song.language,
        metadata: song.metadata,
        sampling: samplingOf(request),
        seed: planningSeed(request),
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
      written: withSheet(song.written, lm, song.metadata),
    };
  } catch (error) {
    context.signal.throwIfAborted();
    warnings.push(`use_format had no effect: ${error instanceof Error ? error.message : error}`);
    return song;
  }
}

/** Adds to `written` what the language model wrote: a song sheet, or only metadata if the model writes no text. */
function withSheet(
  written: ReadonlySet<LmOutput>,
  lm: LanguageModelInfo,
  known: Metadata,
): ReadonlySet<LmOutput> {
  if (lm.writesText) return new Set([...written, "song sheet"]);
  return isComplete(known) ? written : new Set([...written, "metadata"]);
}

type Planned = Omit<PlannedComposition, "language" | "isLanguageNamed"> & { language: string | null };

/** Plans all songs together, or one after another if the request forbids batches. */
async function plan(
  contexts: readonly SongContext[],
  lm: LanguageModelInfo | null,
  songs: readonly Composition[],
): Promise<Planned[]> {
  const drafts = songs.map((song, index) => draftOf(contexts[index] as SongContext, song));
  const open = drafts.filter(({ writeCodes, song }) => lm !== null && (writeCodes || !song.isPlanned));
  if (lm === null || open.length === 0) return drafts.map(unplanned);
  const isTogether = contexts[0]?.request.allowLmBatch ?? true;
  const groups = isTogether ? [open] : open.map((one) => [one]);
  const planned = new Map<Draft, Planned>();
  for (const group of groups) {
    const [first] = group as [Draft];
    first.context.progress.beginSongs(drafts.indexOf(first), isTogether ? drafts.length : 1);
    const plans = await planGroup(lm, group);
    for (const [index, draft] of group.entries()) planned.set(draft, plans[index] as Planned);
  }
  return drafts.map((draft) => planned.get(draft) ?? unplanned(draft));
}

interface Draft {
  context: SongContext;
  song: Composition;
  clientCodes: Int32Array[] | null;
  writeCodes: boolean;
}

function draftOf(context: SongContext, song: Composition): Draft {
  const { request } = context;
  const clientCodes = request.audioCodes?.map((codes) => Int32Array.from(codes)) ?? null;
  return { context, song, clientCodes, writeCodes: writesCodes(request) };
}

/** Codes are written for text2music only: in other tasks they would replace the source audio. */
function writesCodes({ thinking, taskType, audioCodes }: GenerationRequest): boolean {
  return thinking && taskType === "text2music" && audioCodes === null;
}

function unplanned({ song, clientCodes }: Draft): Planned {
  return {
    ...song,
    renderCaption: song.caption,
    audioCodes: clientCodes,
    seconds: { metadata: 0, codes: 0 },
  };
}

async function planGroup(lm: LanguageModelInfo, drafts: readonly Draft[]): Promise<Planned[]> {
  const [first] = drafts as [Draft];
  const { planSongs, warnings } = first.context;
  try {
    const requests = drafts.map(({ context, song }) => planRequestOf(lm, context.request, song));
    const plans = await planSongs(lm, requests, callOf(first.context, "plan"));
    return plans.map((plan, index) => plannedOf(drafts[index] as Draft, plan));
  } catch (error) {
    // Do without a plan: the renderer may accept a text that is too long for the language model.
    if (first.writeCodes || !(error instanceof EngineError) || error.code !== "PROMPT_TOO_LONG") throw error;
    if (drafts.length > 1) {
      const alone: Planned[] = [];
      for (const draft of drafts) alone.push(...(await planGroup(lm, [draft])));
      return alone;
    }
    warnings.push(`the metadata were not planned: ${error.message}`);
    return [unplanned(first)];
  }
}

function planRequestOf(lm: LanguageModelInfo, request: GenerationRequest, song: Composition): PlanRequest {
  return {
    languageModel: lm.name,
    caption: song.caption,
    lyrics: song.lyrics,
    metadata: song.metadata,
    fillMetadata: !song.isPlanned,
    rewriteCaption: (request.useCotCaption ?? lm.writesText) && request.taskType === "text2music",
    detectLanguage: request.useCotLanguage && song.language === null,
    writeCodes: writesCodes(request),
    cfgScale: request.lmCfgScale,
    negativePrompt: request.lmNegativePrompt,
    sampling: samplingOf(request),
    seeds: [planningSeed(request)],
  };
}

function plannedOf({ context, song, clientCodes, writeCodes }: Draft, plan: Plan): Planned {
  context.warnings.push(...plan.warnings.map((remark) => `use_cot_caption: ${remark}`));
  return {
    ...song,
    metadata: plan.metadata,
    language: song.language ?? namedLanguage(plan.language),
    renderCaption: plan.caption || song.caption,
    audioCodes: plan.audioCodes ?? clientCodes,
    written: new Set([
      ...song.written,
      ...(song.isPlanned || isComplete(song.metadata) ? [] : (["metadata"] as const)),
      ...(writeCodes ? (["audio codes"] as const) : []),
    ]),
    seconds: plan.seconds,
  };
}

function callOf(context: SongContext, step: "sample" | "format" | "plan"): CallOptions {
  return { signal: context.signal, onProgress: context.progress.enter(step) };
}

/** Metadata set by the client, completed with facts stated in the client's text. */
function knownMetadata(request: GenerationRequest, seed: Seed, sourceSeconds: number | null): Metadata {
  const { bpm, keyScale, timeSignature, stated = NOTHING_STATED } = request;
  const durationSeconds = sourceSeconds ?? request.audioDurationSeconds;
  return withStatedFacts({ bpm, keyScale, timeSignature, durationSeconds }, stated, seed);
}

/** Seed for the language model. Songs of a task that have the same planning seed share a plan. */
export function planningSeed({ lmSeeds, seeds }: GenerationRequest): Seed {
  return lmSeeds?.[0] ?? (seeds[0] as Seed);
}

export function samplingOf(request: GenerationRequest): SamplingOptions {
  return {
    temperature: request.lmTemperature,
    topK: request.lmTopK,
    topP: request.lmTopP,
    minP: request.lmMinP ?? 0,
    repetitionPenalty: request.lmRepetitionPenalty,
    constrained: request.constrainedDecoding,
    debug: request.constrainedDecodingDebug,
    sharesBatch: request.allowLmBatch,
  };
}

function namedLanguage(language: string | null): string | null {
  return language === null || language === UNKNOWN_LANGUAGE ? null : language;
}

/** Whether the lyrics are blank, `[inst]` or `[instrumental]` in any letter case. */
export function isInstrumental(lyrics: string): boolean {
  return lyrics.trim() === "" || isInstrumentalTag(lyrics);
}
