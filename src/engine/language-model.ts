/** A loaded language model with its tokenizer: prompts and programs in, text and audio codes out. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type {
  CallOptions,
  LanguageJob,
  LanguageResult,
  NativeAddon,
  NativeLanguageModel,
  PlacementOptions,
  Segment,
} from "./addon.js";
import type { Checkpoint } from "./checkpoints.js";
import { EngineError } from "./errors.js";
import { type PromptPart, Tokenizer } from "./tokenizer.js";
import type { LanguageModelInfo, SamplingOptions } from "./types.js";

/** Room for the longest song's 3000 codes and long lyrics; the models could address more. */
const MAX_CONTEXT_TOKENS = 8192;
/** What stands around the words in any prompt, the think block before audio codes included. */
const FRAME_TOKENS = 128;

export interface TextJob {
  prompt: PromptPart[];
  program: Segment[];
  /** The most tokens to write; fewer where the context ends earlier. */
  maxNewTokens: number;
  sampling: SamplingOptions;
  seed: number;
  stage: "metadata" | "text";
}

export interface CodesJob {
  prompt: PromptPart[];
  negativePrompt: PromptPart[];
  /** Exactly so many codes, or null: until the model ends. */
  count: number | null;
  maxCount: number;
  /** 1 or below: no guidance. */
  cfgScale: number;
  sampling: SamplingOptions;
  /** One per row. */
  seeds: number[];
}

/** How much text a language model holds; known without its weights. */
export class TextContext {
  private constructor(
    readonly name: string,
    readonly tokenizer: Tokenizer,
    readonly maxTokens: number,
    readonly config: LanguageModelConfig,
  ) {}

  static async load(checkpoint: Checkpoint): Promise<TextContext> {
    const config = await readConfig(checkpoint);
    const tokenizer = await Tokenizer.load(checkpoint.directory);
    const maxTokens = Math.min(MAX_CONTEXT_TOKENS, config.max_position_embeddings ?? MAX_CONTEXT_TOKENS);
    return new TextContext(checkpoint.name, tokenizer, maxTokens, config);
  }

  /**
   * @param fields the words of the prompt, by the names that clients know them by
   * @throws EngineError PROMPT_TOO_LONG naming the longest field
   */
  async checkWords(fields: Readonly<Record<string, string>>, newTokens: number): Promise<void> {
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
        `${this.maxTokens} tokens, of which ${newTokens} must stay free to write in. Shorten ${longest.field}.`,
    );
  }

  /** Ends the tokenizer's thread. */
  close(): Promise<void> {
    return this.tokenizer.close();
  }
}

export class LanguageModel {
  private constructor(
    private readonly native: NativeLanguageModel,
    readonly text: TextContext,
  ) {}

  /** @param codebookSize codes that the renderer understands; the model is held to them */
  static async load(
    addon: NativeAddon,
    checkpoint: Checkpoint,
    placement: PlacementOptions,
    codebookSize: number,
    call: CallOptions,
  ): Promise<LanguageModel> {
    const text = await TextContext.load(checkpoint);
    const { tokenizer, config } = text;
    try {
      const native = await addon.loadLanguageModel(
        {
          ...placement,
          modelDirectory: checkpoint.directory,
          maxContextTokens: text.maxTokens,
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

  /** False where its configuration says `"writes_text": false`: it is too small for words that a person should read. */
  get writesText(): boolean {
    return this.text.config.writes_text ?? true;
  }

  get info(): LanguageModelInfo {
    return { name: this.name, writesText: this.writesText };
  }

  /** Tensors of its checkpoint that nothing reads. */
  get unusedTensors(): readonly string[] {
    return this.native.info.unusedTensors;
  }

  /** One row of text, forced tokens included. */
  async writeText(job: TextJob, call: CallOptions): Promise<string> {
    const promptTokenIds = await this.tokenizer.encode(job.prompt);
    const result = await this.#generate(
      {
        promptTokenIds,
        program: job.program,
        seeds: [job.seed],
        maxNewTokens: Math.min(job.maxNewTokens, this.text.maxTokens - promptTokenIds.length),
        cfgScale: 1,
        stage: job.stage,
      },
      job.sampling,
      call,
    );
    return this.tokenizer.decode(result.tokenIds[0] ?? []);
  }

  /** Audio codes, one array a seed; without a count they may differ in length. */
  async writeCodes(job: CodesJob, call: CallOptions): Promise<Int32Array[]> {
    const guided = job.cfgScale > 1;
    const promptTokenIds = await this.tokenizer.encode(job.prompt);
    const result = await this.#generate(
      {
        promptTokenIds,
        negativePromptTokenIds: guided ? await this.tokenizer.encode(job.negativePrompt) : undefined,
        program: [{ kind: "codes", count: job.count ?? undefined }],
        seeds: job.seeds,
        maxNewTokens: job.count ?? Math.min(job.maxCount, this.text.maxTokens - promptTokenIds.length),
        cfgScale: guided ? job.cfgScale : 1,
        stage: "codes",
      },
      job.sampling,
      call,
    );
    return result.tokenIds.map((ids) => this.tokenizer.audioCodes(ids));
  }

  async close(): Promise<void> {
    await this.native.close();
    await this.text.close();
  }

  #generate(
    job: Omit<LanguageJob, "temperature" | "topK" | "topP" | "repetitionPenalty">,
    sampling: SamplingOptions,
    call: CallOptions,
  ): Promise<LanguageResult> {
    this.#checkContext(job);
    const { temperature, topK, topP, repetitionPenalty } = sampling;
    return this.native.generate({ ...job, temperature, topK, topP, repetitionPenalty }, call);
  }

  #checkContext(job: Pick<LanguageJob, "promptTokenIds" | "negativePromptTokenIds" | "maxNewTokens">): void {
    const { promptTokenIds, negativePromptTokenIds, maxNewTokens } = job;
    const promptTokens = Math.max(promptTokenIds.length, negativePromptTokenIds?.length ?? 0);
    if (maxNewTokens < 1 || promptTokens + maxNewTokens > this.text.maxTokens) {
      throw new EngineError(
        "PROMPT_TOO_LONG",
        `Caption and lyrics take ${promptTokens} of the language model's ${this.text.maxTokens} tokens and leave no ` +
          `room for the ${Math.max(1, maxNewTokens)} it has to write. Shorten the lyrics or the song.`,
      );
    }
  }
}

interface LanguageModelConfig {
  vocab_size?: number;
  max_position_embeddings?: number;
  writes_text?: boolean;
}

async function readConfig(checkpoint: Checkpoint): Promise<LanguageModelConfig> {
  const path = join(checkpoint.directory, "config.json");
  try {
    return JSON.parse(await readFile(path, "utf8")) as LanguageModelConfig;
  } catch (error) {
    throw new EngineError(
      "MODEL_NOT_FOUND",
      `${path} cannot be read, so ${checkpoint.name} is no language model.`,
      {
        cause: error,
      },
    );
  }
}
