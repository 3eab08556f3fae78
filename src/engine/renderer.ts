/** A loaded DiT with the tokenizer of its text encoder: songs in musical terms in, audio out. */
import { AdapterSet } from "./adapters.js";
import type {
  CallOptions,
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
import { Tokenizer } from "./tokenizer.js";
import type { LyricLine, PlanarAudio, Rendering, RenderRequest, TrainingSampleRequest } from "./types.js";

export class Renderer {
  readonly name: string;
  /** Where its checkpoint lies. */
  readonly directory: string;
  readonly adapters: AdapterSet;
  readonly #native: NativeRenderer;
  readonly #tokenizer: Tokenizer;
  /** Calls in progress: texts are encoded before the native call is made, so the model closes only afterwards. */
  readonly #work = new Set<Promise<unknown>>();

  private constructor({ name, directory }: Checkpoint, native: NativeRenderer, tokenizer: Tokenizer) {
    this.name = name;
    this.directory = directory;
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
    const { directory: modelDirectory, vaeDirectory, textEncoderDirectory } = checkpoint;
    try {
      const directories = { modelDirectory, vaeDirectory, textEncoderDirectory };
      const native = await addon.loadRenderer({ ...placement, ...directories }, call);
      return new Renderer(checkpoint, native, tokenizer);
    } catch (error) {
      await tokenizer.close();
      throw error;
    }
  }

  /** Tensors of its checkpoints that nothing reads, as "directory: name". */
  get unusedTensors(): readonly string[] {
    return this.#native.info.unusedTensors;
  }

  get isTurbo(): boolean {
    return this.#native.info.isTurbo;
  }

  /** Nobody waits for it, and it holds nothing that its checkpoint does not. */
  get isIdle(): boolean {
    return this.#work.size === 0 && this.adapters.state.adapters.length === 0;
  }

  /** Audio codes are 0 .. codebookSize - 1. */
  get codebookSize(): number {
    return this.#native.info.codebookSize;
  }

  render(request: RenderRequest, call: RenderCall): Promise<Rendering> {
    return this.#underWay(this.#render(request, call));
  }

  async #render(request: RenderRequest, call: RenderCall): Promise<Rendering> {
    const { task, source, referenceAudio, seeds, denoise, guidance, edit } = request;
    const warnings: string[] = [];
    const prompts = await this.#promptsOf(request, warnings);
    const timedLyrics = request.timesLyrics
      ? await lyricSpan(this.#tokenizer, request, prompts.lyrics)
      : null;
    const job: RenderJob = {
      ...{ task, source, referenceAudio, seeds, denoise, guidance, edit, prompts, timedLyrics },
      frames: this.#framesOf(request.metadata.durationSeconds),
      audioCodes: request.audioCodes === null ? null : this.#fitCodes(request.audioCodes),
    };
    const own = request.adapter && (await this.adapters.bring(request.adapter, call));
    // From here to the render nobody else's turn may come: the addon takes both in the order of these calls.
    const applied = own === undefined ? null : this.adapters.apply(request.adapter ?? null, own, call);
    const { acting: adapter } = this.adapters;
    const [{ lyricSeconds, ...rendered }] = await Promise.all([this.#native.render(job, call), applied]);
    const lyricLines = timedLyrics === null ? [] : this.#linesOf(prompts.lyrics, timedLyrics, lyricSeconds);
    if (timedLyrics !== null && !lyricLines.some((lines) => lines.length > 0)) {
      warnings.push(`${this.name} cannot tell when these lyrics are sung: the song has no lrc`);
    }
    return { ...rendered, lyricLines, model: this.name, adapter, warnings };
  }

  #linesOf(prompt: Int32Array, { first, count }: LyricSpan, lyricSeconds: Float32Array[]): LyricLine[][] {
    const words = prompt.subarray(first, first + count);
    return lyricSeconds.map((seconds) =>
      seconds.length === 0 ? [] : sungLines(this.#tokenizer, words, seconds),
    );
  }

  /** Audio codes of a recording, five a second. */
  encodeCodes(audio: PlanarAudio, call: CallOptions): Promise<Int32Array> {
    return this.#underWay(this.#native.encodeCodes(audio, call));
  }

  /** Writes what adapter training reads of a piece of music to `path`. */
  prepareSample(request: TrainingSampleRequest, path: string, call: CallOptions): Promise<void> {
    return this.#underWay(this.#prepareSample(request, path, call));
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

  /** Frees the weights after the renders already asked for. */
  async close(): Promise<void> {
    await Promise.allSettled(this.#work);
    await this.#native.close();
    await this.#tokenizer.close();
  }

  async #underWay<T>(work: Promise<T>): Promise<T> {
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

  #framesOf(seconds: number): number {
    const { sampleRate, samplesPerFrame } = this.#native.info;
    return Math.max(1, Math.floor((sampleRate * seconds) / samplesPerFrame));
  }

  /**
   * The items of a batch share one length: all are cropped to the shortest, and to the longest song the
   * checkpoint renders. Codes beyond the codebook become its last one.
   */
  #fitCodes(audioCodes: Int32Array[]): Int32Array[] {
    const { maxFrames, framesPerCode, codebookSize } = this.#native.info;
    const length = Math.min(
      Math.floor(maxFrames / framesPerCode),
      ...audioCodes.map((codes) => codes.length),
    );
    return audioCodes.map((codes) =>
      codes.subarray(0, length).map((code) => Math.min(codebookSize - 1, Math.max(0, code))),
    );
  }
}
