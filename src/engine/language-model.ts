/** A loaded language model with its tokenizer. Takes prompts and decoding programs, returns text and audio codes. */
import { join } from "node:path";
import type {
  CallOptions,
  LanguageJob,
  LanguageResult,
  NativeAddon,
  NativeLanguageModel,
  PlacementOptions,
  Segment,
  TokenScores,
} from "./addon.js";
import type { Checkpoint } from "./checkpoints.js";
import { EngineError } from "./errors.js";
import { configOf } from "./model-files.js";
import { type PromptPart, Tokenizer } from "./tokenizer.js";
import type { LanguageModelInfo, SamplingOptions, Seed } from "./types.js";

/** Maximum context length. It suffices for the 3000 audio codes of the longest song and for long lyrics. */
const MAX_CONTEXT_TOKENS = 8192;
/** Tokens reserved for the prompt template and the think block, in addition to the client's text. */
const FRAME_TOKENS = 128;

export interface TextJob {
  prompt: PromptPart[];
  program: Segment[];
  /** Maximum number of tokens to write; the context may end earlier. */
  maxNewTokens: number;
  sampling: SamplingOptions;
  seed: Seed;
  stage: "metadata" | "text";
}

export interface CodesJob {
  prompt: PromptPart[];
  negativePrompt: PromptPart[];
  /** Exact number of codes; null: until the model stops. */
  count: number | null;
  maxCount: number;
  /** Guidance scale; 1 or less: no guidance. */
  cfgScale: number;
  sampling: SamplingOptions;
  seed: Seed;
}

/** Tokenizer and context length of a language model. Checks the length of texts without loading the weights. */
export class LanguageModelContext {
  private constructor(
    readonly name: string,
    readonly tokenizer: Tokenizer,
    readonly maxTokens: number,
    readonly config: LanguageModelConfig,
  ) {}

  static async load(checkpoint: Checkpoint): Promise<LanguageModelContext> {
    const config = readConfig(checkpoint);
    const tokenizer = await Tokenizer.load(checkpoint.tokenizerDirectory);
    const maxTokens = Math.min(MAX_CONTEXT_TOKENS, config.max_position_embeddings ?? MAX_CONTEXT_TOKENS);
    return new LanguageModelContext(checkpoint.name, tokenizer, maxTokens, config);
  }

  /** @throws EngineError PROMPT_TOO_LONG naming the longest field */
  async checkTextLength(fields: Readonly<Record<string, string>>, newTokens: number): Promise<void> {
    const lengths = await Promise.all(
      Object.entries(fields).map(async ([field, words]) => ({
        field,
        tokens: (await this.tokenizer.encodeText(words)).length,
      })),
    );
    const total = lengths.reduce((sum, { tokens }) => sum + tokens, FRAME_TOKENS);
    const longest = lengths.sort((a, b) => b.tokens - a.tokens)[0];
    if (longest === undefined || total + newTokens <= this.maxTokens) return;
    throw new EngineError(
      "PROMPT_TOO_LONG",
      `${longest.field} is too long for the language model ${this.name}: it takes ${longest.tokens} of its ` +
        `${this.maxTokens} tokens, and ${newTokens} must stay free for the output. Shorten ${longest.field}.`,
    );
  }

  close(): Promise<void> {
    return this.tokenizer.close();
  }
}

export class LanguageModel {
  private constructor(
    private readonly native: NativeLanguageModel,
    readonly text: LanguageModelContext,
  ) {}

  /**
   * @param codebookSize number of codes that the renderer supports; limits the model's codes
   * @param maxSongs maximum number of songs in a batch that several calls share; Infinity: limited only by memory
   */
  static async load(
    addon: NativeAddon,
    checkpoint: Checkpoint,
    placement: PlacementOptions,
    codebookSize: number,
    maxSongs: number,
    call: CallOptions,
  ): Promise<LanguageModel> {
    const text = await LanguageModelContext.load(checkpoint);
    const { tokenizer, config } = text;
    try {
      const native = await addon.loadLanguageModel(
        {
          ...placement,
          model: checkpoint.model,
          maxContextTokens: text.maxTokens,
          maxSongs: Number.isFinite(maxSongs) ? maxSongs : undefined,
          vocabulary: tokenizer.vocabulary(config.vocab_size ?? tokenizer.size, codebookSize),
        },
        call,
      );
      return new LanguageModel(native, text);
    } catch (error) {
      await text.close();
      throw error;
    }
  }

  get name(): string {
    return this.text.name;
  }

  get tokenizer(): Tokenizer {
    return this.text.tokenizer;
  }

  /** Whether the model can write readable text; small models have `"writes_text": false` in their configuration. */
  get writesText(): boolean {
    return this.text.config.writes_text ?? true;
  }

  get info(): LanguageModelInfo {
    return { name: this.name, writesText: this.writesText };
  }

  get unusedTensors(): readonly string[] {
    return this.native.info.unusedTensors;
  }

  /**
   * Writes a text for each job. A text includes the tokens that the program forces. All jobs run as one batch, so
   * they must have the same stage and sampling options.
   */
  async writeTexts(jobs: readonly TextJob[], call: CallOptions): Promise<string[]> {
    const parts = jobs.map(async (job): Promise<LanguageJob> => {
      const promptTokenIds = await this.tokenizer.encode(job.prompt);
      return {
        ...job.sampling,
        promptTokenIds,
        program: job.program,
        seed: BigInt(job.seed),
        maxNewTokens: Math.min(job.maxNewTokens, this.text.maxTokens - promptTokenIds.length),
        cfgScale: 1,
        stage: job.stage,
      };
    });
    const results = await this.#generate(await Promise.all(parts), call);
    return Promise.all(results.map(({ tokenIds }) => this.tokenizer.decode(tokenIds)));
  }

  /**
   * Writes audio codes for each job. All jobs run as one batch, so they must have the same guidance and sampling
   * options.
   */
  async writeCodes(jobs: readonly CodesJob[], call: CallOptions): Promise<Int32Array[]> {
    const parts = jobs.map(async (job): Promise<LanguageJob> => {
      const guided = job.cfgScale > 1;
      const promptTokenIds = await this.tokenizer.encode(job.prompt);
      return {
        ...job.sampling,
        promptTokenIds,
        negativePromptTokenIds: guided ? await this.tokenizer.encode(job.negativePrompt) : undefined,
        program: [{ kind: "codes", count: job.count ?? undefined }],
        seed: BigInt(job.seed),
        maxNewTokens: job.count ?? Math.min(job.maxCount, this.text.maxTokens - promptTokenIds.length),
        cfgScale: guided ? job.cfgScale : 1,
        stage: "codes",
      };
    });
    const results = await this.#generate(await Promise.all(parts), call);
    return results.map(({ tokenIds }) => this.tokenizer.audioCodes(tokenIds));
  }

  /** Likelihood of each text as a continuation of the prompt, by teacher forcing. */
  async score(prompt: PromptPart[], texts: PromptPart[][], call: CallOptions): Promise<TokenScores[]> {
    const promptTokenIds = await this.tokenizer.encode(prompt);
    const targets = await Promise.all(texts.map((text) => this.tokenizer.encode(text)));
    for (const { length } of targets) this.#checkContext({ promptTokenIds, maxNewTokens: length });
    return this.native.score({ promptTokenIds, targets }, call);
  }

  async close(): Promise<void> {
    await this.native.close();
    await this.text.close();
  }

  #generate(jobs: readonly LanguageJob[], call: CallOptions): Promise<LanguageResult[]> {
    for (const job of jobs) this.#checkContext(job);
    return this.native.generate(jobs, call);
  }

  #checkContext(job: Pick<LanguageJob, "promptTokenIds" | "negativePromptTokenIds" | "maxNewTokens">): void {
    const { promptTokenIds, negativePromptTokenIds, maxNewTokens } = job;
    const promptTokens = Math.max(promptTokenIds.length, negativePromptTokenIds?.length ?? 0);
    if (maxNewTokens < 1 || promptTokens + maxNewTokens > this.text.maxTokens) {
      throw new EngineError(
        "PROMPT_TOO_LONG",
        `Caption and lyrics take ${promptTokens} of the language model's ${this.text.maxTokens} tokens and leave no ` +
          `room for the ${Math.max(1, maxNewTokens)} that it has to write. Shorten the lyrics or the song.`,
      );
    }
  }
}

interface LanguageModelConfig {
  vocab_size?: number;
  max_position_embeddings?: number;
  writes_text?: boolean;
}

/** @throws EngineError MODEL_NOT_FOUND if config.json is missing, damaged or belongs to another model */
function readConfig({ name, model }: Checkpoint): LanguageModelConfig {
  const config = configOf(model);
  if (typeof config.hidden_size === "number") return config as LanguageModelConfig;
  const path = join(model.path, "config.json");
  throw new EngineError("MODEL_NOT_FOUND", `${path} cannot be read, so ${name} is not a language model.`);
}
