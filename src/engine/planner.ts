/** What the language model does for a song: expand a wish, rewrite, plan (reference/lm.md 6). */
import { performance } from "node:perf_hooks";
import type { CallOptions } from "./addon.js";
import { EngineError } from "./errors.js";
import type { LanguageModel, TextJob } from "./language-model.js";
import { isComplete, mergeMetadata, toThinkFields } from "./metadata.js";
import { type ParsedOutput, parseOutput } from "./output-parser.js";
import { type ThinkProgram, thinkProgram } from "./program.js";
import {
  codesPrompt,
  formatPrompt,
  instrumentalLyrics,
  metadataPrompt,
  noUserInput,
  samplePrompt,
  unconditionalCodesPrompt,
  understandPrompt,
} from "./prompts.js";
import { durationSecondsRange, type ThinkFields, unknownLanguage } from "./think-fields.js";
import type { PromptPart } from "./tokenizer.js";
import type {
  FormatRequest,
  Plan,
  PlanRequest,
  SampleRequest,
  SongSheet,
  UnderstandRequest,
} from "./types.js";
import { serializeThinkFields } from "./yaml.js";

const maxMetadataTokens = 1024;
const maxSheetTokens = 2560;
const codesPerSecond = 5;

/** Told of what a person should know. */
export type Log = (message: string) => void;

/** Expands a wish into a song sheet. */
export async function createSample(
  lm: LanguageModel,
  request: SampleRequest,
  call: CallOptions,
  log: Log,
): Promise<SongSheet> {
  const output = await writeSheet(lm, samplePrompt(request.query, request.instrumental), request, call, log);
  if (output.fields.caption === undefined) throw noSheet(lm, "caption");
  const lyrics = output.lyrics ?? "";
  return {
    ...mergeMetadata(request.metadata, output.fields),
    caption: output.fields.caption,
    lyrics: lyrics === "" && request.instrumental ? instrumentalLyrics : lyrics,
    language: output.fields.language ?? request.language ?? unknownLanguage,
  };
}

/** Rewrites a caption and lyrics; what the model leaves out stays as it was. */
export async function formatInput(
  lm: LanguageModel,
  request: FormatRequest,
  call: CallOptions,
  log: Log,
): Promise<SongSheet> {
  const output = await writeSheet(lm, formatPrompt(request.caption, request.lyrics), request, call, log);
  return {
    ...mergeMetadata(request.metadata, output.fields),
    caption: output.fields.caption ?? request.caption,
    lyrics: output.lyrics || request.lyrics,
    language: output.fields.language ?? request.language ?? unknownLanguage,
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
  const output = await writeSheet(lm, prompt, { ...request, language: null }, call, log);
  return {
    ...mergeMetadata(request.metadata, output.fields),
    caption: output.fields.caption ?? "",
    lyrics: output.lyrics ?? "",
    language: output.fields.language ?? unknownLanguage,
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
  const written =
    request.fillMetadata && !isComplete(request.metadata) ? await writeMetadata(lm, request, call, log) : {};
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
    seconds: { metadata: (planned - begun) / 1000, codes: (performance.now() - planned) / 1000 },
  };
}

function writeSheet(
  lm: LanguageModel,
  prompt: PromptPart[],
  { language, metadata, sampling, seed }: Pick<SampleRequest, "language" | "metadata" | "sampling" | "seed">,
  call: CallOptions,
  log: Log,
): Promise<ParsedOutput> {
  const program = {
    forced: toThinkFields(metadata, language === unknownLanguage ? null : language),
    writeCaption: true,
    writeLanguage: true,
    textAfterwards: true,
  };
  const job = { prompt, maxNewTokens: maxSheetTokens, sampling, seed, stage: "text" } as const;
  return writeThinking(lm, job, program, call, log);
}

async function writeMetadata(
  lm: LanguageModel,
  request: PlanRequest,
  call: CallOptions,
  log: Log,
): Promise<ThinkFields> {
  const { rewriteCaption, detectLanguage, sampling } = request;
  const program = {
    forced: toThinkFields(request.metadata, null),
    writeCaption: rewriteCaption,
    writeLanguage: detectLanguage,
    textAfterwards: false,
  };
  const prompt = metadataPrompt(request.caption, request.lyrics);
  const seed = request.seeds[0] ?? 0;
  const job = { prompt, maxNewTokens: maxMetadataTokens, sampling, seed, stage: "metadata" } as const;
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
  const maxCount = codesPerSecond * durationSecondsRange.max;
  const count =
    durationSeconds === null
      ? null
      : Math.max(1, Math.min(maxCount, Math.trunc(codesPerSecond * durationSeconds)));
  const negative = request.negativePrompt.trim() === noUserInput ? "" : request.negativePrompt;
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

function withoutAbsent(fields: ThinkFields): ThinkFields {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

function noSheet(lm: LanguageModel, missing: string): EngineError {
  return new EngineError(
    "LM_OUTPUT",
    `The language model ${lm.name} wrote no ${missing}. Try another seed, a lower temperature or constrained decoding.`,
  );
}
