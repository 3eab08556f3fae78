/** A loaded DiT with the tokenizer of its text encoder: songs in musical terms in, audio out. */
import { AdapterSet } from "./adapters.js";
import type {
  CallOptions,
  ModelSource,
  NativeAddon,
  NativeRenderer,
  PlacementOptions,
  RenderCall,
  RenderJob,
} from "./addon.js";
import type { Checkpoint, RendererCheckpoint } from "./checkpoints.js";
import {
  encodeLyricPrompt,
  encodeTextPrompt,
  instructionOf,
  type LyricSpan,
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
  /** Location of the DiT. */
  readonly model: ModelSource;
  readonly adapters: AdapterSet;
  readonly #native: NativeRenderer;
  readonly #tokenizer: Tokenizer;
  /** Calls in progress. They encode text before the native call, so the model closes only after them. */
  readonly #work = new Set<Promise<unknown>>();

  private constructor({ name, model }: Checkpoint, native: NativeRenderer, tokenizer: Tokenizer) {
    this.name = name;
    this.model = model;
    this.adapters = new AdapterSet(native);
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

  /** Checkpoint tensors that are not used, as "directory: name". */
  get unusedTensors(): readonly string[] {
    return this.#native.info.unusedTensors;
  }

  get isTurbo(): boolean {
    return this.#native.info.isTurbo;
  }

  get isLegoSft(): boolean {
    return this.#native.info.isLegoSft;
  }

  /** No call is running and no adapter is loaded. */
  get isIdle(): boolean {
    return this.#work.size === 0 && this.adapters.state.adapters.length === 0;
  }

  /** Audio codes are 0 to codebookSize - 1. */
  get codebookSize(): number {
    return this.#native.info.codebookSize;
  }

  render(request: RenderRequest, call: RenderCall): Promise<Rendering> {
    return this.#track(this.#render(request, call));
  }

  async #render(request: RenderRequest, call: RenderCall): Promise<Rendering> {
    const { task, source, referenceAudio, referenceLatents = null, seeds, denoise, guidance, edit } = request;
    this.#assertOwnSpace("src_latents", source?.latents);
    this.#assertOwnSpace("ref_latents", referenceLatents);
    const warnings: string[] = [];
    const prompts = await this.#promptsOf(request, warnings);
    const timedLyrics = request.timesLyrics
      ? await lyricSpan(this.#tokenizer, request, prompts.lyrics)
      : null;
    const parts =
      request.adapters === undefined
        ? this.adapters.active
        : await this.adapters.loadForSong(request.adapters, call);
    const job: RenderJob = {
      ...{ task, source, referenceAudio, referenceLatents, denoise, guidance, edit, prompts, timedLyrics },
      seeds: seeds.map(BigInt),
      ...this.#lengthOf(request, warnings),
      adapters: parts.map(({ adapter, scale }) => ({ adapter, scale })),
    };
    const { lyricSeconds, latents, ...rendered } = await this.#native.render(job, call);
    const adapters = parts.map(({ name, scale }) => ({ name, scale }));
    const lyricLines = timedLyrics === null ? [] : this.#linesOf(prompts.lyrics, timedLyrics, lyricSeconds);
    const songLatents = latents.map((values) => this.#songLatents(values, rendered.samplesPerChannel));
    return { ...rendered, latents: songLatents, lyricLines, model: this.name, adapters, warnings };
  }

  #songLatents(values: Float32Array, samples: number): SongLatents {
    const { silentFrame } = this.#native.info;
    return { values, frames: values.length / silentFrame.length, samples, silentFrame };
  }

  /** The addon checks the number of channels. */
  #assertOwnSpace(name: string, latents: SongLatents | null | undefined): void {
    const own = this.#native.info.silentFrame;
    const other = latents?.silentFrame ?? own;
    if (other.length !== own.length) return;
    const tolerance = FRAME_TOLERANCE * own.reduce((peak, value) => Math.max(peak, Math.abs(value)), 0);
    if (own.every((value, i) => Math.abs(value - (other[i] as number)) <= tolerance)) return;
    throw new EngineError(
      "OTHER_LATENTS",
      `${name} was made with another VAE than that of ${this.name}: send the song as audio`,
    );
  }

  #linesOf(prompt: Int32Array, { first, count }: LyricSpan, lyricSeconds: Float32Array[]): LyricLine[][] {
    const words = prompt.subarray(first, first + count);
    return lyricSeconds.map((seconds) =>
      seconds.length === 0 ? [] : sungLines(this.#tokenizer, words, seconds),
    );
  }

  /** Audio codes of a recording, five a second. */
  encodeCodes(audio: PlanarAudio, call: CallOptions): Promise<Int32Array> {
    return this.#track(this.#native.encodeCodes(audio, call));
  }

  /** Writes a training sample of a recording to `path`. */
  prepareSample(request: TrainingSampleRequest, path: string, call: CallOptions): Promise<void> {
    return this.#track(this.#prepareSample(request, path, call));
  }

  async #prepareSample(request: TrainingSampleRequest, path: string, call: CallOptions): Promise<void> {
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

  /** Frees the weights after running renders. */
  async close(): Promise<void> {
    await Promise.allSettled(this.#work);
    await this.#native.close();
    await this.#tokenizer.close();
  }

  async #track<T>(work: Promise<T>): Promise<T> {
    this.#work.add(work);
    try {
      return await work;
    } finally {
      this.#work.delete(work);
    }
  }

  async #promptsOf(request: RenderRequest, warnings: string[]): Promise<RenderJob["prompts"]> {
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
    return {
      text: await encodeTextPrompt(this.#tokenizer, own, warnings),
      lyrics: await encodeLyricPrompt(this.#tokenizer, own, warnings),
      plainText: hasPlainSteps ? await encodeTextPrompt(this.#tokenizer, plain) : null,
    };
  }

  /**
   * Samples and codes to render. A batch has one length: its shortest codes, limited to the longest song of the
   * checkpoint.
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
