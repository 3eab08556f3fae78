/**
 * Prepares songs for the renderer with the language model. The functions `sample` and `format` write caption,
 * lyrics and metadata; `plan` adds missing metadata and audio codes.
 */

import type { CallOptions } from "../../engine/addon.js";
import { EngineError } from "../../engine/errors.js";
import { detectLanguage, parseQueryHints } from "../../engine/language.js";
import { isComplete, UNKNOWN_LANGUAGE } from "../../engine/metadata.js";
import { INSTRUMENTAL_LYRICS, isInstrumentalTag } from "../../engine/prompts.js";
import type { LanguageModelInfo, Metadata, Plan, PlanRequest, Seed } from "../../engine/types.js";
import type { GenerationRequest, RequestedSong } from "../request/generation-request.js";
import { DEFAULT_LANGUAGE } from "../request/schema.js";
import type { LmOutput } from "../request/uses.js";
import { RandomSamples } from "../words/random-samples.js";
import { writesCodes, writesTextBeforePlanning } from "./language-model.js";
import type { SongContext } from "./song-context.js";
import { knownMetadata, statedFacts, withStatedFacts } from "./stated-facts.js";

/** Caption, lyrics and metadata of a song before it is rendered. */
interface Composition {
  requested: RequestedSong;
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
  codes: Int32Array | null;
  seconds: { metadata: number; codes: number };
}

/**
 * Runs the requested steps for the songs of one task: first writes the song sheets (caption, lyrics, metadata) one
 * after another, then plans all songs together.
 * @param lm language model of the task, or null
 * @param sourceSeconds length of the source recording, or null
 */
export async function compose(
  context: SongContext,
  lm: LanguageModelInfo | null,
  sourceSeconds: number | null,
): Promise<PlannedComposition[]> {
  const songs: Composition[] = [];
  for (const [index, requested] of context.request.songs.entries()) {
    context.progress.beginSongs(index, 1);
    songs.push(await draft(context, requested, lm, sourceSeconds));
  }
  const planned = await plan(context, lm, songs);
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
  requested: RequestedSong,
  lm: LanguageModelInfo | null,
  sourceSeconds: number | null,
): Promise<Composition> {
  const { words } = context.request;
  let song = clientComposition(context.request, requested, lm, sourceSeconds);
  if (lm !== null && (words.sampleMode || words.sampleQuery !== "")) song = await sample(context, lm, song);
  const hasWords = song.caption.trim() !== "" || song.lyrics.trim() !== "";
  if (lm !== null && words.useFormat && hasWords) song = await format(context, lm, song);
  return withInstrumentalTag(song);
}

/** Caption, lyrics and metadata that the request contains. */
function clientComposition(
  { words, facts }: GenerationRequest,
  requested: RequestedSong,
  lm: LanguageModelInfo | null,
  sourceSeconds: number | null,
): Composition {
  const seed = lm === null ? requested.seed : planningSeed(requested);
  return {
    requested,
    caption: words.prompt,
    lyrics: words.lyrics,
    language: namedLanguage(words.vocalLanguage),
    metadata: knownMetadata(facts, seed, sourceSeconds),
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
  if (!isText || !request.sampling.sharesBatch || writesTextBeforePlanning(request)) return null;
  return request.songs.map((requested) =>
    planRequestOf(request, lm, withInstrumentalTag(clientComposition(request, requested, lm, null))),
  );
}

async function sample(context: SongContext, lm: LanguageModelInfo, song: Composition): Promise<Composition> {
  const { engine, request, warnings } = context;
  const { sampleQuery } = request.words;
  const example = lm.writesText || sampleQuery !== "" ? null : exampleFor(request, song);
  const query = example?.caption ?? sampleQuery;
  const seed = planningSeed(song.requested);
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
      sampling: request.sampling,
      seed,
    },
    callOf(context, "sample"),
  );
  const { caption, lyrics, language, warnings: remarks, ...metadata } = sheet;
  const what = sampleQuery === "" ? "sample_mode" : "sample_query";
  warnings.push(...remarks.map((remark) => `${what}: ${remark}`));
  return {
    ...song,
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
function exampleFor({ words }: GenerationRequest, { caption, requested }: Composition) {
  if (caption.trim() !== "") return { caption, lyrics: words.lyrics };
  return RandomSamples.load().ofSeed(planningSeed(requested));
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
        sampling: request.sampling,
        seed: planningSeed(song.requested),
      },
      callOf(context, "format"),
    );
    const { caption, lyrics, language, warnings: remarks, ...metadata } = sheet;
    warnings.push(...remarks.map((remark) => `use_format: ${remark}`));
    return {
      ...song,
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
  context: SongContext,
  lm: LanguageModelInfo | null,
  songs: readonly Composition[],
): Promise<Planned[]> {
  const { request, progress } = context;
  const open = songs.filter(({ isPlanned }) => lm !== null && (writesCodes(request) || !isPlanned));
  if (lm === null || open.length === 0) return songs.map(unplanned);
  const isTogether = request.sampling.sharesBatch;
  const groups = isTogether ? [open] : open.map((one) => [one]);
  const planned = new Map<Composition, Planned>();
  for (const group of groups) {
    const [first] = group as [Composition];
    progress.beginSongs(songs.indexOf(first), isTogether ? songs.length : 1);
    const plans = await planGroup(context, lm, group);
    for (const [index, song] of group.entries()) planned.set(song, plans[index] as Planned);
  }
  return songs.map((song) => planned.get(song) ?? unplanned(song));
}

function unplanned(song: Composition): Planned {
  const { codes } = song.requested;
  return {
    ...song,
    renderCaption: song.caption,
    codes: codes && Int32Array.from(codes),
    seconds: { metadata: 0, codes: 0 },
  };
}

async function planGroup(
  context: SongContext,
  lm: LanguageModelInfo,
  songs: readonly Composition[],
): Promise<Planned[]> {
  const { request, planSongs, warnings } = context;
  try {
    const requests = songs.map((song) => planRequestOf(request, lm, song));
    const plans = await planSongs(lm, requests, callOf(context, "plan"));
    return plans.map((plan, index) => plannedOf(context, songs[index] as Composition, plan));
  } catch (error) {
    // Do without a plan: the renderer may accept a text that is too long for the language model.
    const isTooLong = error instanceof EngineError && error.code === "PROMPT_TOO_LONG";
    if (writesCodes(request) || !isTooLong) throw error;
    const [first, ...others] = songs as [Composition, ...Composition[]];
    if (others.length > 0) {
      const alone: Planned[] = [];
      for (const song of songs) alone.push(...(await planGroup(context, lm, [song])));
      return alone;
    }
    warnings.push(`the metadata were not planned: ${error.message}`);
    return [unplanned(first)];
  }
}

function planRequestOf(request: GenerationRequest, lm: LanguageModelInfo, song: Composition): PlanRequest {
  const { planning, taskType, sampling } = request;
  return {
    languageModel: lm.name,
    caption: song.caption,
    lyrics: song.lyrics,
    metadata: song.metadata,
    fillMetadata: !song.isPlanned,
    rewriteCaption: (planning.useCotCaption ?? lm.writesText) && taskType === "text2music",
    detectLanguage: planning.useCotLanguage && song.language === null,
    writeCodes: writesCodes(request),
    cfgScale: planning.cfgScale,
    negativePrompt: planning.negativePrompt,
    sampling,
    seeds: [planningSeed(song.requested)],
  };
}

function plannedOf({ request, warnings }: SongContext, song: Composition, plan: Plan): Planned {
  warnings.push(...plan.warnings.map((remark) => `use_cot_caption: ${remark}`));
  const plain = unplanned(song);
  return {
    ...plain,
    metadata: plan.metadata,
    language: song.language ?? namedLanguage(plan.language),
    renderCaption: plan.caption || song.caption,
    codes: plan.audioCodes?.[0] ?? plain.codes,
    written: new Set([
      ...song.written,
      ...(song.isPlanned || isComplete(song.metadata) ? [] : (["metadata"] as const)),
      ...(writesCodes(request) ? (["audio codes"] as const) : []),
    ]),
    seconds: plan.seconds,
  };
}

function callOf(context: SongContext, step: "sample" | "format" | "plan"): CallOptions {
  return { signal: context.signal, onProgress: context.progress.enter(step) };
}

/** Seed for the language model. Songs of a task that have the same planning seed share a plan. */
export function planningSeed({ lmSeed, seed }: RequestedSong): Seed {
  return lmSeed ?? seed;
}

function namedLanguage(language: string | null): string | null {
  return language === null || language === UNKNOWN_LANGUAGE ? null : language;
}

/** Whether the lyrics are blank, `[inst]` or `[instrumental]` in any letter case. */
export function isInstrumental(lyrics: string): boolean {
  return lyrics.trim() === "" || isInstrumentalTag(lyrics);
}
