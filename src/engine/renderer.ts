/** A loaded DiT with the tokenizer of its text encoder: songs in musical terms in, audio out. */
import { AdapterSet } from "./adapters.js";
import type { CallOptions, NativeAddon, NativeRenderer, PlacementOptions } from "./addon.js";
import type { Checkpoint, RendererCheckpoint } from "./checkpoints.js";
import { encodeLyricPrompt, encodeTextPrompt, type TextConditions } from "./conditioning.js";
import { EngineError } from "./errors.js";
import { instructionOf, legoCaption, textToMusicInstruction } from "./instructions.js";
import { Tokenizer } from "./tokenizer.js";
import type { PlanarAudio, Rendering, RenderRequest, TrainingSampleRequest } from "./types.js";

export class Renderer {
  readonly name: string;
  /** Of its checkpoint. */
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
    { device, dtype, offload, offloadModel }: PlacementOptions & { offloadModel: boolean },
    call: CallOptions,
  ): Promise<Renderer> {
    const tokenizer = await Tokenizer.load(checkpoint.tokenizerDirectory);
    const placement = { device, dtype, offload, offloadModel };
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

  /** Audio codes are 0 .. codebookSize - 1. */
  get codebookSize(): number {
    return this.#native.info.codebookSize;
  }

  /** @throws EngineError SONG_TOO_LONG where the checkpoint cannot render the duration. */
  render(request: RenderRequest, call: CallOptions): Promise<Rendering> {
    return this.#underWay(this.#render(request, call));
  }

  async #render(request: RenderRequest, call: CallOptions): Promise<Rendering> {
    const prompts = await this.#promptsOf(request);
    const audioCodes = request.audioCodes === null ? undefined : this.#fitCodes(request.audioCodes);
    const sourceAudio = request.task === "text2music" ? undefined : (request.sourceAudio ?? undefined);
    const frames = audioCodes === undefined ? this.#framesOf(this.#secondsOf(request)) : 0;
    const { task, seeds, inferenceSteps, shift, inferMethod } = request;
    const { guidanceScale, useAdg, cfgIntervalStart, cfgIntervalEnd } = request;
    const { repaint, chunkMask, coverStrength, coverNoiseStrength } = request;
    const { acting: adapter } = this.adapters;
    const result = await this.#native.render(
      {
        ...{ task, seeds, inferenceSteps, shift, inferMethod },
        ...{ guidanceScale, useAdg, cfgIntervalStart, cfgIntervalEnd },
        ...{ repaint, chunkMask, coverStrength, coverNoiseStrength },
        ...prompts,
        frames,
        audioCodes,
        sourceAudio,
        referenceAudio: request.referenceAudio ?? undefined,
        window: request.window ?? undefined,
        timesteps: request.timesteps ?? undefined,
      },
      call,
    );
    return { ...result, model: this.name, adapter };
  }

  /** Audio codes of a recording, five a second. */
  encodeCodes(audio: PlanarAudio, call: CallOptions): Promise<Int32Array> {
    return this.#native.encodeCodes(audio, call);
  }

  /** Writes what adapter training reads of a piece of music to `path`. */
  prepareSample(request: TrainingSampleRequest, path: string, call: CallOptions): Promise<void> {
    return this.#underWay(this.#prepareSample(request, path, call));
  }

  async #prepareSample(request: TrainingSampleRequest, path: string, call: CallOptions): Promise<void> {
    const { audio, notes, ...description } = request;
    const conditions = { ...description, instruction: textToMusicInstruction };
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

  async #promptsOf(request: RenderRequest) {
    const { caption, globalCaption, chunkMask, lyrics, language } = request;
    const metadata = {
      ...request.metadata,
      durationSeconds: request.metadata.durationSeconds ?? request.durationSeconds,
    };
    const plain: TextConditions = {
      instruction: textToMusicInstruction,
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
        ? legoCaption(caption, globalCaption, instruction, chunkMask)
        : caption,
    };
    return {
      textTokenIds: await encodeTextPrompt(this.#tokenizer, own),
      plainTextTokenIds:
        request.coverStrength < 1 ? await encodeTextPrompt(this.#tokenizer, plain) : undefined,
      lyricTokenIds: await encodeLyricPrompt(this.#tokenizer, own),
    };
  }

  /** Of the source with what the window adds at its ends, else as asked for. */
  #secondsOf({ task, sourceAudio, window, durationSeconds }: RenderRequest): number {
    if (task === "text2music" || sourceAudio === null) return durationSeconds;
    const sourceSeconds = sourceAudio.length / 2 / this.#native.info.sampleRate;
    if (window === null) return sourceSeconds;
    return Math.max(window.endSeconds, sourceSeconds) - Math.min(window.startSeconds, 0);
  }

  #framesOf(durationSeconds: number): number {
    const { sampleRate, samplesPerFrame, maxFrames } = this.#native.info;
    const frames = Math.floor((sampleRate * durationSeconds) / samplesPerFrame);
    if (frames > maxFrames) {
      const longest = Math.floor((maxFrames * samplesPerFrame) / sampleRate);
      throw new EngineError(
        "SONG_TOO_LONG",
        `${this.name} renders at most ${longest} seconds, but ${durationSeconds} were asked for.`,
      );
    }
    return Math.max(1, frames);
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
