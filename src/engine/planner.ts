/**
 * What the language model does for a song: expand a wish, rewrite, plan. What it writes takes the
 * place of a person's words only where it is no worse (answer-check.ts).
 */
import { performance } from "node:perf_hooks";
import type { CallOptions } from "./addon.js";
import { captionFault, lyricsFault } from "./answer-check.js";
import { EngineError } from "./errors.js";
import type { LanguageModel, TextJob } from "./language-model.js";
import {
  DURATION_SECONDS_RANGE,
  isComplete,
  mergeMetadata,
  type ThinkFields,
  toThinkFields,
  UNKNOWN_LANGUAGE,
} from "./metadata.js";
import {
  asksForNoWords,
  codesPrompt,
  formatPrompt,
  INSTRUMENTAL_LYRICS,
  metadataPrompt,
  NO_USER_INPUT,
  samplePrompt,
  type ThinkProgram,
  thinkProgram,
  unconditionalCodesPrompt,
  understandPrompt,
} from "./prompts.js";
import { type ParsedOutput, parseOutput, serializeThinkFields } from "./think-block.js";
import type { PromptPart } from "./tokenizer.js";
import {
  CODES_PER_SECOND,
  type FormatRequest,
  type Plan,
  type PlanRequest,
  type SampleRequest,
  type SongSheet,
  type UnderstandRequest,
} from "./types.js";

const MAX_METADATA_TOKENS = 1024;
/** The fields of a song without its caption take about so many. */
const MIN_TOKENS = 64;
const MAX_SHEET_TOKENS = 2560;

/** Told of what a person should know. */
export type Log = (message: string) => void;

/**
 * Expands a wish into a song sheet. Where the model cannot put it in words, the wish itself is the caption, and the
 * model plans only the metadata.
 */
export async function createSample(
  lm: LanguageModel,
  request: SampleRequest,
  call: CallOptions,
  log: Log,
): Promise<SongSheet> {
  const { query, instrumental, language, metadata } = request;
  const plain = (why: string) =>
    plainSheet(lm, { ...request, caption: query, lyrics: INSTRUMENTAL_LYRICS }, why, call, log);
  await lm.text.checkWords({ sample_query: query }, MIN_TOKENS);
  if (!lm.writesText)
    return plain(`${doesNotWrite(lm)}: the wish is the caption, and no lyrics were written`);
  const output = await writeSheet(lm, samplePrompt(query, instrumental), request, call, log);
  const { caption } = output.fields;
  const lyrics = output.lyrics || (instrumental ? INSTRUMENTAL_LYRICS : "");
  if (caption === undefined) throw noSheet(lm, "caption");
  const fault = (await captionFault(caption, query)) ?? (await newLyricsFault(lyrics, instrumental));
  if (fault !== null)
    return plain(`${wroteInVain(lm, fault)}: the wish is the caption, and no lyrics were written`);
  return {
    ...mergeMetadata(metadata, output.fields),
    caption,
    lyrics,
    language: output.fields.language ?? language ?? UNKNOWN_LANGUAGE,
    warnings: [],
  };
}

/**
 * Rewrites a caption and lyrics. What the model leaves out or writes worse stays as it was, and with a model that
 * cannot write everything does: it then plans only the metadata.
 */
export async function formatInput(
  lm: LanguageModel,
  request: FormatRequest,
  call: CallOptions,
  log: Log,
): Promise<SongSheet> {
  const { caption, lyrics, language, metadata } = request;
  await lm.text.checkWords({ prompt: caption, lyrics }, MIN_TOKENS);
  if (!lm.writesText) {
    return plainSheet(
      lm,
      request,
      `${doesNotWrite(lm)}: caption and lyrics are as they were sent`,
      call,
      log,
    );
  }
  const { fields, lyrics: written } = await writeSheet(lm, formatPrompt(caption, lyrics), request, call, log);
  const warnings: string[] = [];
  const checked = (what: string, own: string, text: string, fault: string | null) => {
    if (fault === null) return text;
    warnings.push(
      `the ${what} ${what === "lyrics" ? "stay as they were" : "stays as it was"} sent: ${wroteInVain(lm, fault)}`,
    );
    return own;
  };
  const newCaption = fields.caption ?? caption;
  const newLyrics = asksForNoWords(lyrics) ? lyrics : (written ?? "");
  const lyricsAreOwn =
    newLyrics === lyrics || (lyrics.trim() === "" && (newLyrics === "" || asksForNoWords(newLyrics)));
  return {
    ...mergeMetadata(metadata, fields),
    caption: checked(
      "caption",
      caption,
      newCaption,
      newCaption === caption ? null : await captionFault(newCaption, caption),
    ),
    lyrics: checked("lyrics", lyrics, newLyrics, lyricsAreOwn ? null : await lyricsFault(newLyrics, lyrics)),
    language: fields.language ?? language ?? UNKNOWN_LANGUAGE,
    warnings,
  };
}

/** Describes a recording; what the model leaves out is "". */
export async function understand(
  lm: LanguageModel,
  request: UnderstandRequest,
  call: CallOptions,
  log: Log,
): Promise<SongSheet> {
  const prompt = understandPrompt(request.audioCodes);
  const program = { ...sheetProgram({ ...request, language: null }), ...(lm.writesText ? {} : FACTS_ONLY) };
  const output = await writeThinking(lm, sheetJob(prompt, request), program, call, log);
  return {
    ...mergeMetadata(request.metadata, output.fields),
    caption: lm.writesText ? (output.fields.caption ?? "") : "",
    lyrics: lm.writesText ? (output.lyrics ?? "") : "",
    language: (lm.writesText && output.fields.language) || UNKNOWN_LANGUAGE,
    warnings: lm.writesText ? [] : [`${doesNotWrite(lm)}: the recording has no caption and no lyrics`],
  };
}

/** Fills metadata, once for the whole batch, and writes each item's audio codes. */
export async function plan(
  lm: LanguageModel,
  request: PlanRequest,
  call: CallOptions,
  log: Log,
): Promise<Plan> {
  const known = toThinkFields(request.metadata, null);
  const begun = performance.now();
  await lm.text.checkWords(
    { prompt: request.caption, lyrics: request.lyrics },
    tokensToWrite(request.writeCodes ? (request.metadata.durationSeconds ?? 0) : null),
  );
  const { written, warnings } =
    request.fillMetadata && !isComplete(request.metadata)
      ? await planWords(lm, request, call, log)
      : { written: {}, warnings: [] };
  const metadata = mergeMetadata(request.metadata, written);
  const planned = performance.now();
  const audioCodes = request.writeCodes
    ? await writeCodes(lm, request, { ...written, ...withoutAbsent(known) }, metadata.durationSeconds, call)
    : null;
  return {
    metadata,
    caption: written.caption ?? null,
    language: written.language ?? null,
    audioCodes,
    warnings,
    seconds: { metadata: (planned - begun) / 1000, codes: (performance.now() - planned) / 1000 },
  };
}

/** Metadata, and the caption and the language where they are asked for and the model is able to. */
async function planWords(
  lm: LanguageModel,
  request: PlanRequest,
  call: CallOptions,
  log: Log,
): Promise<{ written: ThinkFields; warnings: string[] }> {
  const { caption, rewriteCaption, detectLanguage } = request;
  const wish = {
    ...request,
    rewriteCaption: rewriteCaption && lm.writesText,
    detectLanguage: detectLanguage && lm.writesText,
    seed: request.seeds[0] ?? 0,
  };
  const written = await writeMetadata(lm, wish, call, log);
  if (rewriteCaption && !lm.writesText) {
    return { written, warnings: [`${doesNotWrite(lm)}: the caption stays as it was sent`] };
  }
  const fault = written.caption === undefined ? null : await captionFault(written.caption, caption);
  if (fault === null) return { written, warnings: [] };
  const warning = `the caption stays as it was sent: ${wroteInVain(lm, fault)}`;
  return { written: { ...written, caption: undefined }, warnings: [warning] };
}

/** A song sheet of the client's own words, with the model's metadata. */
async function plainSheet(
  lm: LanguageModel,
  request: FormatRequest,
  warning: string,
  call: CallOptions,
  log: Log,
): Promise<SongSheet> {
  const { caption, lyrics, language, metadata } = request;
  const wish = { ...request, rewriteCaption: false, detectLanguage: false };
  const written = isComplete(metadata) ? {} : await writeMetadata(lm, wish, call, log);
  return {
    ...mergeMetadata(metadata, written),
    caption,
    lyrics,
    language: language ?? UNKNOWN_LANGUAGE,
    warnings: [warning],
  };
}

type SheetRequest = Pick<SampleRequest, "language" | "metadata" | "sampling" | "seed">;

function writeSheet(
  lm: LanguageModel,
  prompt: PromptPart[],
  request: SheetRequest,
  call: CallOptions,
  log: Log,
): Promise<ParsedOutput> {
  return writeThinking(lm, sheetJob(prompt, request), sheetProgram(request), call, log);
}

function sheetJob(prompt: PromptPart[], { sampling, seed }: Pick<SheetRequest, "sampling" | "seed">) {
  return { prompt, maxNewTokens: MAX_SHEET_TOKENS, sampling, seed, stage: "text" } as const;
}

function sheetProgram({ language, metadata }: Pick<SheetRequest, "language" | "metadata">): ThinkProgram {
  return {
    forced: toThinkFields(metadata, language === UNKNOWN_LANGUAGE ? null : language),
    writeCaption: true,
    writeLanguage: true,
    textAfterwards: true,
  };
}

/** What is asked of a model that does not write. */
const FACTS_ONLY = { writeCaption: false, writeLanguage: false, textAfterwards: false };

async function writeMetadata(
  lm: LanguageModel,
  request: Pick<FormatRequest, "caption" | "lyrics" | "metadata" | "sampling" | "seed"> &
    Pick<PlanRequest, "rewriteCaption" | "detectLanguage">,
  call: CallOptions,
  log: Log,
): Promise<ThinkFields> {
  const { rewriteCaption, detectLanguage, sampling, seed } = request;
  const program = {
    forced: toThinkFields(request.metadata, null),
    writeCaption: rewriteCaption,
    writeLanguage: detectLanguage,
    textAfterwards: false,
  };
  const prompt = metadataPrompt(request.caption, request.lyrics);
  const job = { prompt, maxNewTokens: MAX_METADATA_TOKENS, sampling, seed, stage: "metadata" } as const;
  const { fields } = await writeThinking(lm, job, program, call, log);
  if (Object.keys(withoutAbsent(fields)).length === 0) throw noSheet(lm, "metadata");
  return {
    ...fields,
    caption: rewriteCaption ? fields.caption : undefined,
    language: detectLanguage ? fields.language : undefined,
  };
}

/** A think block and what follows it, held to the program where decoding is constrained. */
async function writeThinking(
  lm: LanguageModel,
  job: Omit<TextJob, "program">,
  program: ThinkProgram,
  call: CallOptions,
  log: Log,
): Promise<ParsedOutput> {
  const { constrained, debug } = job.sampling;
  const segments = constrained ? await thinkProgram(lm.tokenizer, program) : [{ kind: "free" as const }];
  const text = await lm.writeText({ ...job, program: segments }, call);
  if (debug) {
    const forced = constrained ? `forced ${JSON.stringify(program.forced)}` : "unconstrained";
    log(`constrained decoding, ${job.stage}: ${forced}, wrote ${JSON.stringify(text)}`);
  }
  return parseOutput(text);
}

async function writeCodes(
  lm: LanguageModel,
  request: PlanRequest,
  fields: ThinkFields,
  durationSeconds: number | null,
  call: CallOptions,
): Promise<Int32Array[]> {
  const maxCount = CODES_PER_SECOND * DURATION_SECONDS_RANGE.max;
  const count = durationSeconds === null ? null : codeCount(durationSeconds);
  const negative = request.negativePrompt.trim() === NO_USER_INPUT ? "" : request.negativePrompt;
  const codes = await lm.writeCodes(
    {
      prompt: codesPrompt(request.caption, request.lyrics, serializeThinkFields(fields)),
      negativePrompt: unconditionalCodesPrompt(negative),
      count,
      maxCount,
      cfgScale: request.cfgScale,
      sampling: request.sampling,
      seeds: request.seeds,
    },
    call,
  );
  if (codes.some((row) => row.length === 0)) throw noSheet(lm, "audio codes");
  return codes;
}

/** What must stay free for an answer. `codesSeconds`: of the song whose audio codes it is to hold; null for none. */
export function tokensToWrite(codesSeconds: number | null): number {
  return Math.max(MIN_TOKENS, codesSeconds === null ? 0 : codeCount(codesSeconds));
}

function codeCount(durationSeconds: number): number {
  const maxCount = CODES_PER_SECOND * DURATION_SECONDS_RANGE.max;
  return Math.max(1, Math.min(maxCount, Math.trunc(CODES_PER_SECOND * durationSeconds)));
}

async function newLyricsFault(lyrics: string, instrumental: boolean): Promise<string | null> {
  if (asksForNoWords(lyrics)) return null;
  if (lyrics === "" && !instrumental) return "it holds no lyrics";
  return lyricsFault(lyrics, "");
}

function doesNotWrite(lm: LanguageModel): string {
  return `the language model ${lm.name} does not write text`;
}

function wroteInVain(lm: LanguageModel, fault: string): string {
  return `what the language model ${lm.name} wrote was not used, as ${fault}`;
}

function withoutAbsent(fields: ThinkFields): ThinkFields {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

function noSheet(lm: LanguageModel, missing: string): EngineError {
  return new EngineError(
    "LM_OUTPUT",
    `The language model ${lm.name} wrote no ${missing}. Try another seed, a lower temperature or constrained decoding.`,
  );
}
