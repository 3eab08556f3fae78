/** What the language model does for a song: expand a wish, rewrite, plan (reference/lm.md 6). */
import { performance } from "node:perf_hooks";
import type { CallOptions, Segment } from "./addon.js";
import { EngineError } from "./errors.js";
import type { LanguageModel } from "./language-model.js";
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

/** Expands a wish into a song sheet. */
export async function createSample(
  lm: LanguageModel,
  request: SampleRequest,
  call: CallOptions,
): Promise<SongSheet> {
  const output = await writeSheet(lm, samplePrompt(request.query, request.instrumental), request, call);
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
): Promise<SongSheet> {
  const output = await writeSheet(lm, formatPrompt(request.caption, request.lyrics), request, call);
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
): Promise<SongSheet> {
  const prompt = understandPrompt(request.audioCodes);
  const output = await writeSheet(lm, prompt, { ...request, language: null }, call);
  return {
    ...mergeMetadata(request.metadata, output.fields),
    caption: output.fields.caption ?? "",
    lyrics: output.lyrics ?? "",
    language: output.fields.language ?? unknownLanguage,
  };
}

/** Fills metadata, once for the whole batch, and writes each item's audio codes. */
export async function plan(lm: LanguageModel, request: PlanRequest, call: CallOptions): Promise<Plan> {
  const known = toThinkFields(request.metadata, null);
  const begun = performance.now();
  const written =
    request.fillMetadata && !isComplete(request.metadata) ? await writeMetadata(lm, request, call) : {};
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

async function writeSheet(
  lm: LanguageModel,
  prompt: PromptPart[],
  request: Pick<SampleRequest, "language" | "metadata" | "sampling" | "seed">,
  call: CallOptions,
): Promise<ParsedOutput> {
  const language = request.language === unknownLanguage ? null : request.language;
  const program = segmentsOf(lm, request.sampling.constrained, {
    forced: toThinkFields(request.metadata, language),
    writeCaption: true,
    writeLanguage: true,
    textAfterwards: true,
  });
  const { sampling, seed } = request;
  const text = await lm.writeText(
    { prompt, program, maxNewTokens: maxSheetTokens, sampling, seed, stage: "text" },
    call,
  );
  return parseOutput(text);
}

async function writeMetadata(
  lm: LanguageModel,
  request: PlanRequest,
  call: CallOptions,
): Promise<ThinkFields> {
  const program = segmentsOf(lm, request.sampling.constrained, {
    forced: toThinkFields(request.metadata, null),
    writeCaption: request.rewriteCaption,
    writeLanguage: request.detectLanguage,
    textAfterwards: false,
  });
  const prompt = metadataPrompt(request.caption, request.lyrics);
  const text = await lm.writeText(
    {
      prompt,
      program,
      maxNewTokens: maxMetadataTokens,
      sampling: request.sampling,
      seed: request.seeds[0] ?? 0,
      stage: "metadata",
    },
    call,
  );
  const { fields } = parseOutput(text);
  if (Object.keys(withoutAbsent(fields)).length === 0) throw noSheet(lm, "metadata");
  return {
    ...fields,
    caption: request.rewriteCaption ? fields.caption : undefined,
    language: request.detectLanguage ? fields.language : undefined,
  };
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

function segmentsOf(lm: LanguageModel, constrained: boolean, program: ThinkProgram): Segment[] {
  return constrained ? thinkProgram(lm.tokenizer, program) : [{ kind: "free" }];
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
