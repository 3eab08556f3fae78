/** Words that the language model writes for requests that are no tasks. */
import type { z } from "zod";
import type { CallOptions } from "../../engine/addon.js";
import { EngineError } from "../../engine/errors.js";
import { parseQueryHints, writtenLanguage } from "../../engine/language.js";
import { NOTHING_KNOWN, UNKNOWN_LANGUAGE } from "../../engine/metadata.js";
import type { Metadata, MusicEngine, SamplingOptions, SongSheet } from "../../engine/types.js";
import { type Caller, ConcurrencyLimit } from "../concurrency-limit.js";
import { RequestError } from "../errors.js";
import { readyLanguageModel } from "../models.js";
import type { songSheet } from "../openapi/answers.js";
import { DEFAULT_LANGUAGE } from "../request/schema.js";
import type { FormatInput, SampleWish } from "../request/service-bodies.js";
import { drawSeed } from "../song/seeds.js";
import { statedFacts, withStatedFacts } from "../song/stated-facts.js";

/** One text at a time: a job that needs the language model too then waits for one at most. */
const TURNS = { places: 1, placesPerAddress: 1, waitingPerAddress: 64, retryAfterSeconds: 10 };

/** As clients read it. */
export type WrittenText = z.output<typeof songSheet>;

type Writing = { sampling: SamplingOptions; seed: number };

/** Both calls load the language model if need be, and stop when the caller has gone or `stopping` fires. */
export class TextWriter {
  readonly #turns = new ConcurrencyLimit(TURNS);

  constructor(
    private readonly engine: MusicEngine,
    private readonly stopping: AbortSignal,
  ) {}

  /**
   * Rewrites caption and lyrics.
   * @throws HttpError 429 where too many of the caller wait, 400 for words that are too long, 500 where the language
   * model cannot be loaded; the reason of the caller's signal; else what the engine throws
   */
  formatInput(input: FormatInput, caller: Caller): Promise<WrittenText> {
    const { prompt: caption, lyrics, bpm, keyScale, timeSignature, durationSeconds } = input;
    const language = input.language === UNKNOWN_LANGUAGE ? null : input.language;
    const fields = { bpm, keyScale, timeSignature, durationSeconds };
    return this.#write(input, caption, fields, caller, (metadata, writing, call) =>
      this.engine.formatInput({ caption, lyrics, language, metadata, ...writing }, call),
    );
  }

  /**
   * Describes the song of a wish.
   * @throws as `formatInput`
   */
  createSample(wish: SampleWish, caller: Caller): Promise<WrittenText> {
    const hints = parseQueryHints(wish.query);
    // Clients send "en" without meaning it; in a wish it counts as no preference.
    const isPreference = wish.language !== UNKNOWN_LANGUAGE && wish.language !== DEFAULT_LANGUAGE;
    const language = (isPreference ? wish.language : null) ?? hints.language;
    const instrumental = wish.instrumental || hints.instrumental;
    return this.#write(wish, wish.query, NOTHING_KNOWN, caller, (metadata, writing, call) =>
      this.engine.createSample({ query: wish.query, instrumental, language, metadata, ...writing }, call),
    );
  }

  /** @param words that may state what `fields` leave open */
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
    const sampling = { temperature, topK: 0, topP: 1, repetitionPenalty: 1, constrained: true };
    const call = { signal: AbortSignal.any([caller.signal, this.stopping]) };
    return this.#turns.run({ ...caller, ...call }, async () => {
      await readyLanguageModel(this.engine, call);
      const sheet = await write(metadata, { sampling, seed }, call).catch((error: unknown) => {
        throw refusalOf(error);
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
    vocal_language: isNamed ? language : ((await writtenLanguage(lyrics)) ?? UNKNOWN_LANGUAGE),
    warnings: [...warnings, ...sheet.warnings],
  };
}

/** What a failure of the language model means to the client: words that are too long are its own mistake. */
export function refusalOf(error: unknown): unknown {
  const isTooLong = error instanceof EngineError && error.code === "PROMPT_TOO_LONG";
  return isTooLong ? new RequestError(error.message) : error;
}
