/**
 * Song planning with the language model: expand a query, rewrite, plan, describe. The model's text replaces the
 * client's text only after a check (answer-check.ts).
 */
import { performance } from "node:perf_hooks";
import type { CallOptions } from "./addon.js";
import { captionRejectionReason, lyricsRejectionReason } from "./answer-check.js";
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
  codesPrompt,
  formatPrompt,
  INSTRUMENTAL_LYRICS,
  isInstrumentalTag,
  metadataPrompt,
  NO_USER_INPUT,
  samplePrompt,
  type ThinkProgram,
  thinkProgram,
  unconditionalCodesPrompt,
  understandPrompt,
} from "./prompts.js";
import { scoreSong } from "./song-score.js";
import { type ParsedOutput, parseOutput, serializeThinkFields } from "./think-block.js";
import type { PromptPart } from "./tokenizer.js";
import {
  CODES_PER_SECOND,
  type FormatRequest,
  type Metadata,
  type Plan,
  type PlanRequest,
  type SampleRequest,
  type ScoreRequest,
  type SongScores,
  type SongSheet,
  type UnderstandRequest,
} from "./types.js";

const MAX_METADATA_TOKENS = 1024;
/** Approximate number of tokens of a song's metadata, without the caption. */
const MIN_TOKENS = 64;
const MAX_SHEET_TOKENS = 2560;

interface Words {
  written: ThinkFields;
  warnings: string[];
}

const NOTHING_WRITTEN: Words = { written: {}, warnings: [] };

export type Log = (message: string) => void;

export class Planner {
  constructor(
    private readonly lm: LanguageModel,
    private readonly call: CallOptions,
    private readonly log: Log,
  ) {}

  /**
   * Expands a query into a song sheet. If the model's text is rejected, the query becomes the caption and the model
   * plans only metadata.
   */
  async createSample(request: SampleRequest): Promise<SongSheet> {
    const { query, instrumental, language, metadata } = request;
    const plain = (why: string) =>
      this.#sheetWithMetadata({ ...request, caption: query, lyrics: INSTRUMENTAL_LYRICS }, why);
    await this.lm.text.checkTextLength({ sample_query: query }, MIN_TOKENS);
    if (!this.lm.writesText)
      return plain(`${this.#writesNoText()}: the query is the caption, and there are no lyrics`);
    const output = await this.#writeSheet(samplePrompt(query, instrumental), request);
    const { caption } = output.fields;
    const lyrics = output.lyrics || (instrumental ? INSTRUMENTAL_LYRICS : "");
    if (caption === undefined) throw this.#missingOutput("caption");
    const fault =
      (await captionRejectionReason(caption, query)) ?? (await newLyricsFault(lyrics, instrumental));
    if (fault !== null)
      return plain(`${this.#rejectedText(fault)}: the query is the caption, and there are no lyrics`);
    return {
      ...mergeMetadata(metadata, output.fields),
      caption,
      lyrics,
      language: output.fields.language ?? language ?? UNKNOWN_LANGUAGE,
      warnings: [],
    };
  }

  /** Rewrites a caption and lyrics. Missing or rejected text keeps the original. */
  async formatInput(request: FormatRequest): Promise<SongSheet> {
    const { caption, lyrics, language, metadata } = request;
    await this.lm.text.checkTextLength({ prompt: caption, lyrics }, MIN_TOKENS);
    if (!this.lm.writesText) {
      return this.#sheetWithMetadata(request, `${this.#writesNoText()}: caption and lyrics are unchanged`);
    }
    const { fields, lyrics: written } = await this.#writeSheet(formatPrompt(caption, lyrics), request);
    const warnings: string[] = [];
    const checked = (what: string, own: string, text: string, fault: string | null) => {
      if (fault === null) return text;
      warnings.push(
        `the ${what} ${what === "lyrics" ? "are" : "is"} unchanged: ${this.#rejectedText(fault)}`,
      );
      return own;
    };
    const newCaption = fields.caption ?? caption;
    const newLyrics = isInstrumentalTag(lyrics) ? lyrics : (written ?? "");
    const lyricsAreOwn =
      newLyrics === lyrics || (lyrics.trim() === "" && (newLyrics === "" || isInstrumentalTag(newLyrics)));
    return {
      ...mergeMetadata(metadata, fields),
      caption: checked(
        "caption",
        caption,
        newCaption,
        newCaption === caption ? null : await captionRejectionReason(newCaption, caption),
      ),
      lyrics: checked(
        "lyrics",
        lyrics,
        newLyrics,
        lyricsAreOwn ? null : await lyricsRejectionReason(newLyrics, lyrics),
      ),
      language: fields.language ?? language ?? UNKNOWN_LANGUAGE,
      warnings,
    };
  }

  /** Describes a recording; fields that the model omits are "". */
  async understand(request: UnderstandRequest): Promise<SongSheet> {
    const prompt = understandPrompt(request.audioCodes);
    const program = {
      ...sheetProgram({ ...request, language: null }),
      ...(this.lm.writesText ? {} : FACTS_ONLY),
    };
    const { fields, lyrics } = await this.#writeThinking(sheetJob(prompt, request), program);
    const metadata = mergeMetadata(request.metadata, fields);
    const { caption = "", language = UNKNOWN_LANGUAGE } = fields;
    if (this.lm.writesText) return { ...metadata, caption, lyrics: lyrics ?? "", language, warnings: [] };
    const warnings = [`${this.#writesNoText()}: the recording has no caption and no lyrics`];
    return { ...metadata, caption: "", lyrics: "", language: UNKNOWN_LANGUAGE, warnings };
  }

  score(request: ScoreRequest): Promise<SongScores | null> {
    return scoreSong(this.lm, request, this.call);
  }

  /**
   * Plans songs as one batch: fills the metadata of each, then writes the audio codes of all. The requests must have
   * equal sampling options and guidance.
   */
  async plan(requests: readonly PlanRequest[]): Promise<Plan[]> {
    const begun = performance.now();
    for (const { caption, lyrics, writeCodes, metadata } of requests) {
      const seconds = writeCodes ? (metadata.durationSeconds ?? 0) : null;
      await this.lm.text.checkTextLength({ prompt: caption, lyrics }, outputTokensToReserve(seconds));
    }
    const words = await this.#planWords(requests);
    const songs = requests.map((request, index) => {
      const { written, warnings } = words[index] ?? NOTHING_WRITTEN;
      const metadata = mergeMetadata(request.metadata, written);
      const fields = { ...written, ...withoutAbsent(toThinkFields(request.metadata, null)) };
      return { request, written, warnings, metadata, fields };
    });
    const planned = performance.now();
    const codes = await this.#writeCodes(songs.filter(({ request }) => request.writeCodes));
    const share = 1000 * requests.length;
    const seconds = {
      metadata: (planned - begun) / share,
      codes: (performance.now() - planned) / share,
    };
    return songs.map(({ request, written, warnings, metadata }) => ({
      metadata,
      caption: written.caption ?? null,
      language: written.language ?? null,
      audioCodes: codes.get(request) ?? null,
      warnings,
      seconds,
    }));
  }

  /** Metadata for each request. Includes caption and language if they are requested and the model writes text. */
  async #planWords(requests: readonly PlanRequest[]): Promise<Words[]> {
    const open = requests.filter(({ fillMetadata, metadata }) => fillMetadata && !isComplete(metadata));
    const written = await this.#writeMetadata(
      open.map((request) => ({
        ...request,
        rewriteCaption: request.rewriteCaption && this.lm.writesText,
        detectLanguage: request.detectLanguage && this.lm.writesText,
      })),
    );
    const checked = await Promise.all(
      open.map((request, index) => this.#checkedWords(request, written[index] ?? {})),
    );
    return requests.map((request) => checked[open.indexOf(request)] ?? NOTHING_WRITTEN);
  }

  async #checkedWords({ caption, rewriteCaption }: PlanRequest, written: ThinkFields): Promise<Words> {
    if (rewriteCaption && !this.lm.writesText) {
      return { written, warnings: [`${this.#writesNoText()}: the caption is unchanged`] };
    }
    const fault =
      written.caption === undefined ? null : await captionRejectionReason(written.caption, caption);
    if (fault === null) return { written, warnings: [] };
    const warning = `the caption is unchanged: ${this.#rejectedText(fault)}`;
    return { written: { ...written, caption: undefined }, warnings: [warning] };
  }

  /** Song sheet with the client's text and the model's metadata. */
  async #sheetWithMetadata(request: FormatRequest, warning: string): Promise<SongSheet> {
    const { caption, lyrics, language, metadata } = request;
    const wish = { ...request, rewriteCaption: false, detectLanguage: false };
    const [written = {}] = isComplete(metadata) ? [] : await this.#writeMetadata([wish]);
    return {
      ...mergeMetadata(metadata, written),
      caption,
      lyrics,
      language: language ?? UNKNOWN_LANGUAGE,
      warnings: [warning],
    };
  }

  async #writeSheet(prompt: PromptPart[], request: SheetRequest): Promise<ParsedOutput> {
    return this.#writeThinking(sheetJob(prompt, request), sheetProgram(request));
  }

  /** Metadata of each request, written as one batch. */
  async #writeMetadata(
    requests: readonly (Pick<FormatRequest, "caption" | "lyrics" | "metadata" | "sampling" | "seed"> &
      Pick<PlanRequest, "rewriteCaption" | "detectLanguage">)[],
  ): Promise<ThinkFields[]> {
    if (requests.length === 0) return [];
    const jobs = requests.map(
      ({ caption, lyrics, metadata, sampling, seed, rewriteCaption, detectLanguage }) => ({
        prompt: metadataPrompt(caption, lyrics),
        maxNewTokens: MAX_METADATA_TOKENS,
        sampling,
        seed,
        stage: "metadata" as const,
        thinking: {
          forced: toThinkFields(metadata, null),
          writeCaption: rewriteCaption,
          writeLanguage: detectLanguage,
          textAfterwards: false,
        },
      }),
    );
    const outputs = await this.#writeAllThinking(jobs);
    return requests.map(({ rewriteCaption, detectLanguage }, index) => {
      const { fields = {} } = outputs[index] ?? {};
      if (Object.keys(withoutAbsent(fields)).length === 0) throw this.#missingOutput("metadata");
      return {
        ...fields,
        caption: rewriteCaption ? fields.caption : undefined,
        language: detectLanguage ? fields.language : undefined,
      };
    });
  }

  async #writeThinking(job: Omit<TextJob, "program">, thinking: ThinkProgram): Promise<ParsedOutput> {
    const [output] = await this.#writeAllThinking([{ ...job, thinking }]);
    return output as ParsedOutput;
  }

  /**
   * Writes a think block and the text after it for each job. With constrained decoding, the program of `thinking`
   * determines the form of the output.
   */
  async #writeAllThinking(
    jobs: readonly (Omit<TextJob, "program"> & { thinking: ThinkProgram })[],
  ): Promise<ParsedOutput[]> {
    const programmed = jobs.map(async (job) => ({
      ...job,
      program: job.sampling.constrained
        ? await thinkProgram(this.lm.tokenizer, job.thinking)
        : [{ kind: "free" as const }],
    }));
    const texts = await this.lm.writeTexts(await Promise.all(programmed), this.call);
    for (const [index, { sampling, stage, thinking }] of jobs.entries()) {
      if (!sampling.debug) continue;
      const forced = sampling.constrained ? `forced ${JSON.stringify(thinking.forced)}` : "unconstrained";
      this.log(`constrained decoding, ${stage}: ${forced}, wrote ${JSON.stringify(texts[index])}`);
    }
    return texts.map(parseOutput);
  }

  async #writeCodes(
    songs: readonly { request: PlanRequest; fields: ThinkFields; metadata: Metadata }[],
  ): Promise<Map<PlanRequest, Int32Array>> {
    if (songs.length === 0) return new Map();
    const maxCount = CODES_PER_SECOND * DURATION_SECONDS_RANGE.max;
    const jobs = songs.map(({ request, fields, metadata: { durationSeconds } }) => {
      const negative = request.negativePrompt.trim() === NO_USER_INPUT ? "" : request.negativePrompt;
      return {
        prompt: codesPrompt(request.caption, request.lyrics, serializeThinkFields(fields)),
        negativePrompt: unconditionalCodesPrompt(negative),
        count: durationSeconds === null ? null : codeCount(durationSeconds),
        maxCount,
        cfgScale: request.cfgScale,
        sampling: request.sampling,
        seed: request.seed,
      };
    });
    const codes = await this.lm.writeCodes(jobs, this.call);
    if (codes.some(({ length }) => length === 0)) throw this.#missingOutput("audio codes");
    return new Map(songs.map(({ request }, index) => [request, codes[index] as Int32Array]));
  }

  #writesNoText(): string {
    return `the language model ${this.lm.name} does not write text`;
  }

  #rejectedText(fault: string): string {
    return `the text of the language model ${this.lm.name} was rejected: ${fault}`;
  }

  #missingOutput(missing: string): EngineError {
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

/** Program options for models that can write metadata but no readable text. */
const FACTS_ONLY = { writeCaption: false, writeLanguage: false, textAfterwards: false };

/** Tokens to reserve for the output. `codesSeconds`: length of the song; null if no audio codes are written. */
export function outputTokensToReserve(codesSeconds: number | null): number {
  return Math.max(MIN_TOKENS, codesSeconds === null ? 0 : codeCount(codesSeconds));
}

function codeCount(durationSeconds: number): number {
  const maxCount = CODES_PER_SECOND * DURATION_SECONDS_RANGE.max;
  // Without the 1e-6, a floating-point error could round up to one more code.
  return Math.max(1, Math.min(maxCount, Math.ceil(CODES_PER_SECOND * durationSeconds - 1e-6)));
}

async function newLyricsFault(lyrics: string, instrumental: boolean): Promise<string | null> {
  if (isInstrumentalTag(lyrics)) return null;
  if (lyrics === "" && !instrumental) return "it has no lyrics";
  return lyricsRejectionReason(lyrics, "");
}

function withoutAbsent(fields: ThinkFields): ThinkFields {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}
