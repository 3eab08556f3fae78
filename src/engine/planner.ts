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

/** One call's work with a loaded language model. */
export class Planner {
  constructor(
    private readonly lm: LanguageModel,
    private readonly call: CallOptions,
    private readonly log: Log,
  ) {}

  /**
   * Expands a wish into a song sheet. Where the model cannot put it in words, the wish itself is the caption, and the
   * model plans only the metadata.
   */
  async createSample(request: SampleRequest): Promise<SongSheet> {
    const { query, instrumental, language, metadata } = request;
    const plain = (why: string) =>
      this.#plainSheet({ ...request, caption: query, lyrics: INSTRUMENTAL_LYRICS }, why);
    await this.lm.text.checkWords({ sample_query: query }, MIN_TOKENS);
    if (!this.lm.writesText)
      return plain(`${this.#doesNotWrite()}: the wish is the caption, and no lyrics were written`);
    const output = await this.#writeSheet(samplePrompt(query, instrumental), request);
    const { caption } = output.fields;
    const lyrics = output.lyrics || (instrumental ? INSTRUMENTAL_LYRICS : "");
    if (caption === undefined) throw this.#noSheet("caption");
    const fault = (await captionFault(caption, query)) ?? (await newLyricsFault(lyrics, instrumental));
    if (fault !== null)
      return plain(`${this.#wroteInVain(fault)}: the wish is the caption, and no lyrics were written`);
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
  async formatInput(request: FormatRequest): Promise<SongSheet> {
    const { caption, lyrics, language, metadata } = request;
    await this.lm.text.checkWords({ prompt: caption, lyrics }, MIN_TOKENS);
    if (!this.lm.writesText) {
      return this.#plainSheet(request, `${this.#doesNotWrite()}: caption and lyrics are as they were sent`);
    }
    const { fields, lyrics: written } = await this.#writeSheet(formatPrompt(caption, lyrics), request);
    const warnings: string[] = [];
    const checked = (what: string, own: string, text: string, fault: string | null) => {
      if (fault === null) return text;
      warnings.push(
        `the ${what} ${what === "lyrics" ? "stay as they were" : "stays as it was"} sent: ${this.#wroteInVain(fault)}`,
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
      lyrics: checked(
        "lyrics",
        lyrics,
        newLyrics,
        lyricsAreOwn ? null : await lyricsFault(newLyrics, lyrics),
      ),
      language: fields.language ?? language ?? UNKNOWN_LANGUAGE,
      warnings,
    };
  }

  /** Describes a recording; what the model leaves out is "". */
  async understand(request: UnderstandRequest): Promise<SongSheet> {
    const prompt = understandPrompt(request.audioCodes);
    const program = {
      ...sheetProgram({ ...request, language: null }),
      ...(this.lm.writesText ? {} : FACTS_ONLY),
    };
    const output = await this.#writeThinking(sheetJob(prompt, request), program);
    return {
      ...mergeMetadata(request.metadata, output.fields),
      caption: this.lm.writesText ? (output.fields.caption ?? "") : "",
      lyrics: this.lm.writesText ? (output.lyrics ?? "") : "",
      language: (this.lm.writesText && output.fields.language) || UNKNOWN_LANGUAGE,
      warnings: this.lm.writesText
        ? []
        : [`${this.#doesNotWrite()}: the recording has no caption and no lyrics`],
    };
  }

  /** Fills metadata, once for the whole batch, and writes each item's audio codes. */
  async plan(request: PlanRequest): Promise<Plan> {
    const known = toThinkFields(request.metadata, null);
    const begun = performance.now();
    await this.lm.text.checkWords(
      { prompt: request.caption, lyrics: request.lyrics },
      tokensToWrite(request.writeCodes ? (request.metadata.durationSeconds ?? 0) : null),
    );
    const { written, warnings } =
      request.fillMetadata && !isComplete(request.metadata)
        ? await this.#planWords(request)
        : { written: {}, warnings: [] };
    const metadata = mergeMetadata(request.metadata, written);
    const planned = performance.now();
    const audioCodes = request.writeCodes
      ? await this.#writeCodes(request, { ...written, ...withoutAbsent(known) }, metadata.durationSeconds)
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
  async #planWords(request: PlanRequest): Promise<{ written: ThinkFields; warnings: string[] }> {
    const { caption, rewriteCaption, detectLanguage } = request;
    const wish = {
      ...request,
      rewriteCaption: rewriteCaption && this.lm.writesText,
      detectLanguage: detectLanguage && this.lm.writesText,
      seed: request.seeds[0] ?? 0,
    };
    const written = await this.#writeMetadata(wish);
    if (rewriteCaption && !this.lm.writesText) {
      return { written, warnings: [`${this.#doesNotWrite()}: the caption stays as it was sent`] };
    }
    const fault = written.caption === undefined ? null : await captionFault(written.caption, caption);
    if (fault === null) return { written, warnings: [] };
    const warning = `the caption stays as it was sent: ${this.#wroteInVain(fault)}`;
    return { written: { ...written, caption: undefined }, warnings: [warning] };
  }

  /** A song sheet of the client's own words, with the model's metadata. */
  async #plainSheet(request: FormatRequest, warning: string): Promise<SongSheet> {
    const { caption, lyrics, language, metadata } = request;
    const wish = { ...request, rewriteCaption: false, detectLanguage: false };
    const written = isComplete(metadata) ? {} : await this.#writeMetadata(wish);
    return {
      ...mergeMetadata(metadata, written),
      caption,
      lyrics,
      language: language ?? UNKNOWN_LANGUAGE,
      warnings: [warning],
    };
  }

  #writeSheet(prompt: PromptPart[], request: SheetRequest): Promise<ParsedOutput> {
    return this.#writeThinking(sheetJob(prompt, request), sheetProgram(request));
  }

  async #writeMetadata(
    request: Pick<FormatRequest, "caption" | "lyrics" | "metadata" | "sampling" | "seed"> &
      Pick<PlanRequest, "rewriteCaption" | "detectLanguage">,
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
    const { fields } = await this.#writeThinking(job, program);
    if (Object.keys(withoutAbsent(fields)).length === 0) throw this.#noSheet("metadata");
    return {
      ...fields,
      caption: rewriteCaption ? fields.caption : undefined,
      language: detectLanguage ? fields.language : undefined,
    };
  }

  /** A think block and what follows it, held to the program where decoding is constrained. */
  async #writeThinking(job: Omit<TextJob, "program">, program: ThinkProgram): Promise<ParsedOutput> {
    const { constrained, debug } = job.sampling;
    const segments = constrained
      ? await thinkProgram(this.lm.tokenizer, program)
      : [{ kind: "free" as const }];
    const text = await this.lm.writeText({ ...job, program: segments }, this.call);
    if (debug) {
      const forced = constrained ? `forced ${JSON.stringify(program.forced)}` : "unconstrained";
      this.log(`constrained decoding, ${job.stage}: ${forced}, wrote ${JSON.stringify(text)}`);
    }
    return parseOutput(text);
  }

  async #writeCodes(
    request: PlanRequest,
    fields: ThinkFields,
    durationSeconds: number | null,
  ): Promise<Int32Array[]> {
    const maxCount = CODES_PER_SECOND * DURATION_SECONDS_RANGE.max;
    const count = durationSeconds === null ? null : codeCount(durationSeconds);
    const negative = request.negativePrompt.trim() === NO_USER_INPUT ? "" : request.negativePrompt;
    const codes = await this.lm.writeCodes(
      {
        prompt: codesPrompt(request.caption, request.lyrics, serializeThinkFields(fields)),
        negativePrompt: unconditionalCodesPrompt(negative),
        count,
        maxCount,
        cfgScale: request.cfgScale,
        sampling: request.sampling,
        seeds: request.seeds,
      },
      this.call,
    );
    if (codes.some((row) => row.length === 0)) throw this.#noSheet("audio codes");
    return codes;
  }

  #doesNotWrite(): string {
    return `the language model ${this.lm.name} does not write text`;
  }

  #wroteInVain(fault: string): string {
    return `what the language model ${this.lm.name} wrote was not used, as ${fault}`;
  }

  #noSheet(missing: string): EngineError {
    return new EngineError(
      "LM_OUTPUT",
      `The language model ${this.lm.name} wrote no ${missing}. Try another seed, a lower temperature or constrained decoding.`,
    );
  }
}

type SheetRequest = Pick<SampleRequest, "language" | "metadata" | "sampling" | "seed">;

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

function withoutAbsent(fields: ThinkFields): ThinkFields {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}
