/** Texts outside of tasks: writes them for /format_input and /v1/create_sample, and checks those of new tasks. */
import type { z } from "zod";
import type { CallOptions } from "../../engine/addon.js";
import { EngineError } from "../../engine/errors.js";
import { detectLanguage, parseQueryHints } from "../../engine/language.js";
import { UNKNOWN_LANGUAGE, UNKNOWN_METADATA } from "../../engine/metadata.js";
import type {
  LanguageModelInfo,
  Metadata,
  ModelCatalog,
  SamplingOptions,
  SheetWriter,
  SongSheet,
} from "../../engine/types.js";
import { type Caller, ConcurrencyLimit } from "../access/concurrency-limit.js";
import { RequestError } from "../errors.js";
import { ensureLanguageModel } from "../models/models.js";
import type { songSheet } from "../openapi/answers.js";
import type { GenerationRequest } from "../request/generation-request.js";
import { DEFAULT_LANGUAGE } from "../request/schema.js";
import type { FormatInput, SampleRequest } from "../request/service-bodies.js";
import { checkTextLength } from "../song/language-model.js";
import { drawSeed } from "../song/seeds.js";
import { statedFacts, withStatedFacts } from "../song/stated-facts.js";

/** Limits for requests that write text. Only one is written at a time, so a song waits for at most one text. */
const TURNS = { places: 1, placesPerAddress: 1, waitingPerAddress: 64, retryAfterSeconds: 10 };

/** Response of /format_input and /v1/create_sample. */
export type WrittenText = z.output<typeof songSheet>;

type Writing = { sampling: SamplingOptions; seed: number };

/** Writes texts. Loads the language model if needed, and stops when the client disconnects or `stopping` fires. */
export class TextWriter {
  readonly #turns = new ConcurrencyLimit(TURNS);

  constructor(
    private readonly catalog: ModelCatalog,
    private readonly writer: SheetWriter,
    private readonly stopping: AbortSignal,
  ) {}

  /**
   * Checks that the texts of a task fit the language model that it requires. Other errors are ignored here: the task will
   * report them.
   * @throws RequestError
   */
  async checkTextLength(request: GenerationRequest): Promise<void> {
    await checkTextLength(this.catalog, this.writer, request).catch((error: unknown) => {
      const refusal = toRequestErrorIfPromptTooLong(error);
      if (refusal instanceof RequestError) throw refusal;
    });
  }

  /**
   * Rewrites caption and lyrics.
   * @throws HttpError 429 if too many requests of the caller wait, 400 if the text is too long, 500 if the
   * language model cannot be loaded. Also throws the abort reason of the caller's signal, and engine errors.
   */
  formatInput(input: FormatInput, caller: Caller): Promise<WrittenText> {
    const { prompt: caption, lyrics, bpm, keyScale, timeSignature, durationSeconds } = input;
    const language = input.language === UNKNOWN_LANGUAGE ? null : input.language;
    const fields = { bpm, keyScale, timeSignature, durationSeconds };
    return this.#write(input, caption, fields, caller, (metadata, writing, call) =>
      this.writer.formatInput({ caption, lyrics, language, metadata, ...writing }, call),
    );
  }

  /** Writes caption, lyrics and metadata for a short description. @throws as `formatInput` */
  createSample(input: SampleRequest, caller: Caller): Promise<WrittenText> {
    const hints = parseQueryHints(input.query);
    // "en" counts as no preference, because clients send it by default.
    const isPreference = input.language !== UNKNOWN_LANGUAGE && input.language !== DEFAULT_LANGUAGE;
    const language = (isPreference ? input.language : null) ?? hints.language;
    const instrumental = input.instrumental || hints.instrumental;
    return this.#write(input, input.query, UNKNOWN_METADATA, caller, (metadata, writing, call) =>
      this.writer.createSample({ query: input.query, instrumental, language, metadata, ...writing }, call),
    );
  }

  /** Loads a language model, or the default. @throws HttpError 400 for an unknown name, 500 if loading fails */
  languageModel(name: string | null): Promise<LanguageModelInfo> {
    return ensureLanguageModel(this.catalog, this.writer, { signal: this.stopping }, name);
  }

  /** @param words text of the client; facts stated in it fill empty values in `fields` */
  #write(
    { temperature, warnings }: { temperature: number; warnings: string[] },
    words: string,
    fields: Metadata,
    caller: Caller,
    write: (metadata: Metadata, writing: Writing, call: CallOptions) => Promise<SongSheet>,
  ): Promise<WrittenText> {
    const remarks: string[] = [];
    const stated = statedFacts(words, fields, true, remarks);
    const seed = drawSeed();
    const metadata = withStatedFacts(fields, stated, seed);
    const sampling = { temperature, topK: 0, topP: 1, minP: 0, repetitionPenalty: 1, constrained: true };
    const call = { signal: AbortSignal.any([caller.signal, this.stopping]) };
    return this.#turns.run({ ...caller, ...call }, async () => {
      await ensureLanguageModel(this.catalog, this.writer, call);
      const sheet = await write(metadata, { sampling, seed }, call).catch((error: unknown) => {
        throw toRequestErrorIfPromptTooLong(error);
      });
      return answerOf(sheet, [...warnings, ...remarks]);
    });
  }
}

async function answerOf(sheet: SongSheet, warnings: string[]): Promise<WrittenText> {
  const { caption, lyrics, bpm, keyScale, timeSignature, durationSeconds, language } = sheet;
  const isNamed = language !== UNKNOWN_LANGUAGE;
  return {
    caption,
    lyrics,
    bpm,
    key_scale: keyScale,
    time_signature: timeSignature,
    duration: durationSeconds,
    vocal_language: isNamed ? language : ((await detectLanguage(lyrics)) ?? UNKNOWN_LANGUAGE),
    warnings: [...warnings, ...sheet.warnings],
  };
}

/** Turns PROMPT_TOO_LONG into an HTTP 400; returns other errors unchanged. */
function toRequestErrorIfPromptTooLong(error: unknown): unknown {
  const isTooLong = error instanceof EngineError && error.code === "PROMPT_TOO_LONG";
  return isTooLong ? new RequestError(error.message) : error;
}
