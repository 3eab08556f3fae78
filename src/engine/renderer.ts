/** A loaded DiT with the tokenizer of its text encoder. Renders songs, described in musical terms, to audio. */
import { AdapterCache, adapterWarnings } from "./adapters.js";
import type {
  CallOptions,
  ModelSource,
  NativeAddon,
  NativeRenderer,
  PlacementOptions,
  PromptIds,
  RenderCall,
  RenderJob,
} from "./addon.js";
import type { Checkpoint, RendererCheckpoint } from "./checkpoints.js";
import {
  encodeLyricPrompt,
  encodeTextPrompt,
  instructionOf,
  legoCaption,
  lyricSpan,
  sungLines,
  TEXT_TO_MUSIC_INSTRUCTION,
  type TextConditions,
} from "./conditioning.js";
import { EngineError } from "./errors.js";
import { Tokenizer } from "./tokenizer.js";
import type {
  LyricLine,
  PlanarAudio,
  Rendering,
  RenderRequest,
  SongLatents,
  TrainingSampleRequest,
} from "./types.js";

/** Tolerance for bfloat16 rounding, as a share of the largest value of a frame. */
const FRAME_TOLERANCE = 0.05;

export class Renderer {
  readonly name: string;
  readonly model: ModelSource;
  readonly adapters: AdapterCache;
  readonly #native: NativeRenderer;
  readonly #tokenizer: Tokenizer;

  private constructor({ name, model }: Checkpoint, native: NativeRenderer, tokenizer: Tokenizer) {
    this.name = name;
    this.model = model;
    this.adapters = new AdapterCache(native);
    this.#native = native;
    this.#tokenizer = tokenizer;
  }

  static async load(
    addon: NativeAddon,
    checkpoint: RendererCheckpoint,
    { device, dtype, quantization, offload, offloadModel }: PlacementOptions & { offloadModel: boolean },
    call: CallOptions,
  ): Promise<Renderer> {
    const tokenizer = await Tokenizer.load(checkpoint.tokenizerDirectory);
    const placement = { device, dtype, quantization, offload, offloadModel };
    const { model, vae, textEncoder } = checkpoint;
    try {
      const native = await addon.loadRenderer({ ...placement, model, vae, textEncoder }, call);
      return new Renderer(checkpoint, native, tokenizer);
    } catch (error) {
      await tokenizer.close();
      throw error;
    }
  }

  get unusedTensors(): readonly string[] {
    return this.#native.info.unusedTensors;
  }

  get isTurbo(): boolean {
    return this.#native.info.isTurbo;
  }

  get isLegoSft(): boolean {
    return this.#native.info.isLegoSft;
  }

  get codebookSize(): number {
    return this.#native.info.codebookSize;
  }

  async render(request: RenderRequest, call: RenderCall): Promise<Rendering> {
    const [prompt, warnings] = await this.#promptOf(request);
    return this.#renderBatch(request, [prompt], warnings, call);
  }

  /** Renders songs of equal length as one batch, each with its own seed, words and codes. */
  async renderSongs(requests: readonly RenderRequest[], call: RenderCall): Promise<Rendering[]> {
    const [first] = requests;
    if (first === undefined) return [];
    const prompts = await Promise.all(requests.map((request) => this.#promptOf(request)));
    const seeds = requests.flatMap((request) => request.seeds);
    if (seeds.length !== requests.length) throw new Error("a song of a batch must have one seed");
    const audioCodes = first.audioCodes && requests.flatMap((request) => request.audioCodes ?? []);
    const own = prompts.map(([prompt]) => prompt);
    const rendered = await this.#renderBatch({ ...first, seeds, audioCodes }, own, [], call);
    return prompts.map(([, warnings], item) => songOf(rendered, item, warnings));
  }

  /** @param prompts one for all items, or one per item */
  async #renderBatch(
    request: RenderRequest,
    prompts: PromptIds[],
    promptWarnings: readonly string[],
    call: RenderCall,
  ): Promise<Rendering> {
    const { task, source, referenceAudio, referenceLatents = null, seeds, denoise, guidance, edit } = request;
    this.#assertOwnSpace("src_latents", source?.latents);
    this.#assertOwnSpace("ref_latents", referenceLatents);
    const warnings = [...promptWarnings];
    const parts = await this.adapters.load(request.adapters ?? [], call);
    for (const { name, adapter } of parts) {
      warnings.push(...adapterWarnings(adapter.info).map((warning) => `adapter ${name}: ${warning}`));
    }
    const job: RenderJob = {
      ...{ task, source, referenceAudio, referenceLatents, denoise, guidance, edit, prompts },
      seeds: seeds.map(BigInt),
      ...this.#lengthOf(request, warnings),
      adapters: parts.map(({ adapter, scale }) => ({ adapter, scale })),
    };
    const { lyricSeconds, latents, latentGains, ...rendered } = await this.#native.render(job, call);
    const adapters = parts.map(({ name, scale }) => ({ name, scale }));
    const lyricLines = lyricSeconds.map((seconds, item) =>
      this.#linesOf((prompts.length === 1 ? prompts[0] : prompts[item]) as PromptIds, seconds),
    );
    const songLatents = latents.map((values, item) =>
      this.#songLatents(values, rendered.samplesPerChannel, latentGains[item] as number),
    );
    return { ...rendered, latents: songLatents, lyricLines, model: this.name, adapters, warnings };
  }

  #songLatents(values: Float32Array, samples: number, gain: number): SongLatents {
    const { silentFrame } = this.#native.info;
    return { values, frames: values.length / silentFrame.length, samples, silentFrame, gain };
  }

  /** Checks that latents belong to this model's VAE. The addon checks the number of channels. */
  #assertOwnSpace(name: string, latents: SongLatents | null | undefined): void {
    const own = this.#native.info.silentFrame;
    const other = latents?.silentFrame ?? own;
    if (other.length !== own.length) return;
    const tolerance = FRAME_TOLERANCE * own.reduce((peak, value) => Math.max(peak, Math.abs(value)), 0);
    if (own.every((value, i) => Math.abs(value - (other[i] as number)) <= tolerance)) return;
    throw new EngineError(
      "OTHER_LATENTS",
      `${name} was made with a different VAE than ${this.name} uses: send the song as audio`,
    );
  }

  #linesOf({ lyrics, timedLyrics }: PromptIds, seconds: Float32Array): LyricLine[] {
    if (timedLyrics === null || seconds.length === 0) return [];
    const { first, count } = timedLyrics;
    return sungLines(this.#tokenizer, lyrics.subarray(first, first + count), seconds);
  }

  encodeCodes(audio: PlanarAudio, call: CallOptions): Promise<Int32Array> {
    return this.#native.encodeCodes(audio, call);
  }

  async prepareSample(request: TrainingSampleRequest, path: string, call: CallOptions): Promise<void> {
    const { audio, notes, ...description } = request;
    const conditions = { ...description, instruction: TEXT_TO_MUSIC_INSTRUCTION };
    const sample = {
      textTokenIds: await encodeTextPrompt(this.#tokenizer, conditions),
      lyricTokenIds: await encodeLyricPrompt(this.#tokenizer, conditions),
      audio,
      metadata: JSON.stringify(notes),
    };
    return this.#native.prepareSample(sample, path, call);
  }

  /** Frees the weights. The caller waits for running calls first. */
  async close(): Promise<void> {
    await this.#native.close();
    await this.#tokenizer.close();
  }

  /** Prompt of a song, and warnings about text that was cut. */
  async #promptOf(request: RenderRequest): Promise<[PromptIds, string[]]> {
    const warnings: string[] = [];
    const { caption, globalCaption, lyrics, language, metadata } = request;
    const plain: TextConditions = {
      instruction: TEXT_TO_MUSIC_INSTRUCTION,
      caption,
      lyrics,
      language,
      metadata,
    };
    const instruction = instructionOf({ ...request, hasAudioCodes: request.audioCodes !== null });
    const own = {
      ...plain,
      instruction,
      caption: this.#native.info.isLegoSft
        ? legoCaption(caption, globalCaption, instruction, request.edit.chunkMaskMode)
        : caption,
    };
    const hasPlainSteps = request.denoise.audioCoverStrength < 1;
    const text = await encodeTextPrompt(this.#tokenizer, own, warnings);
    const lyricIds = await encodeLyricPrompt(this.#tokenizer, own, warnings);
    const prompt: PromptIds = {
      text,
      lyrics: lyricIds,
      plainText: hasPlainSteps ? await encodeTextPrompt(this.#tokenizer, plain) : null,
      timedLyrics: request.timesLyrics ? await lyricSpan(this.#tokenizer, request, lyricIds) : null,
    };
    return [prompt, warnings];
  }

  /**
   * Returns the number of samples to render, and the audio codes. If there are codes, the shortest ones of the batch
   * and the checkpoint's maximum song length limit both.
   */
  #lengthOf(
    { audioCodes, metadata, source }: RenderRequest,
    warnings: string[],
  ): Pick<RenderJob, "samples" | "audioCodes"> {
    const { sampleRate, samplesPerFrame, maxFrames, framesPerCode } = this.#native.info;
    const planned = Math.max(samplesPerFrame, Math.round(sampleRate * metadata.durationSeconds));
    const samples = source?.latents?.samples ?? planned;
    if (audioCodes === null) return { samples, audioCodes };
    const shortest = Math.min(...audioCodes.map((codes) => codes.length));
    const count = Math.min(shortest, Math.floor(maxFrames / framesPerCode));
    const samplesPerCode = framesPerCode * samplesPerFrame;
    if (count < shortest) {
      const seconds = (count * samplesPerCode) / sampleRate;
      warnings.push(`audio codes beyond ${seconds} s were dropped: that is the longest song of ${this.name}`);
    }
    return {
      samples: Math.min(samples, count * samplesPerCode),
      audioCodes: audioCodes.map((codes) => codes.subarray(0, count)),
    };
  }
}

/** Returns the first songs, up to the first with another length. All songs of a batch must be equally long. */
export function firstOfEqualLength(requests: readonly RenderRequest[]): readonly RenderRequest[] {
  const lengthOf = ({ metadata, audioCodes }: RenderRequest) =>
    `${metadata.durationSeconds} ${audioCodes?.[0]?.length}`;
  const end = requests.findIndex((request) => lengthOf(request) !== lengthOf(requests[0] as RenderRequest));
  return end < 0 ? requests : requests.slice(0, end);
}

/** Result of one song of a batch. Its timings are its share of the batch's timings. */
function songOf(batch: Rendering, item: number, promptWarnings: readonly string[]): Rendering {
  const of = <T>(items: readonly T[]) => items.slice(item, item + 1);
  const share = (seconds: number) => seconds / batch.audio.length;
  const { conditions, denoise, decode } = batch.timings;
  return {
    ...batch,
    audio: of(batch.audio),
    latents: of(batch.latents),
    lyricLines: of(batch.lyricLines),
    timings: { conditions: share(conditions), denoise: share(denoise), decode: share(decode) },
    warnings: [...promptWarnings, ...batch.warnings],
  };
}
