/** Writes caption, lyrics and metadata of a song with the language model (`sample_mode`, `sample_query`, `use_format`). */
import { parseQueryHints } from "../../engine/language.js";
import { isComplete } from "../../engine/metadata.js";
import type { LanguageModelInfo, Metadata } from "../../engine/types.js";
import type { GenerationRequest } from "../request/generation-request.js";
import { DEFAULT_LANGUAGE } from "../request/schema.js";
import type { LmOutput } from "../request/uses.js";
import { RandomSamples } from "../words/random-samples.js";
import { type Composition, isInstrumental, namedLanguage, planningSeed } from "./composition.js";
import type { SongContext } from "./song-context.js";
import { statedFacts, withStatedFacts } from "./stated-facts.js";

/** Runs the steps that the request asks for. */
export async function writeSheet(
  context: SongContext,
  lm: LanguageModelInfo,
  song: Composition,
): Promise<Composition> {
  const { sampleMode, sampleQuery, useFormat } = context.request.words;
  const sampled = sampleMode || sampleQuery !== "" ? await sample(context, lm, song) : song;
  const hasWords = `${sampled.caption}${sampled.lyrics}`.trim() !== "";
  return useFormat && hasWords ? format(context, lm, sampled) : sampled;
}

async function sample(context: SongContext, lm: LanguageModelInfo, song: Composition): Promise<Composition> {
  const { engine, request, signal, progress, warnings } = context;
  const { sampleQuery } = request.words;
  const example = lm.writesText || sampleQuery !== "" ? null : exampleFor(request, song);
  const query = example?.caption ?? sampleQuery;
  const seed = planningSeed(song.requested);
  const hints = parseQueryHints(query);
  // Parse the facts of the query here. The facts of the request do not include them if the query is a built-in
  // example.
  const known = withStatedFacts(song.metadata, statedFacts(query, song.metadata, true, warnings), seed);
  const written = withSheet(song.written, lm, known);
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
    { signal, onProgress: progress.enter("sample") },
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
    written,
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
  const { engine, request, signal, progress, warnings } = context;
  const written = withSheet(song.written, lm, song.metadata);
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
      { signal, onProgress: progress.enter("format") },
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
      written,
    };
  } catch (error) {
    signal.throwIfAborted();
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
