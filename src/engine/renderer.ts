/** A loaded DiT with the tokenizer of its text encoder: songs in musical terms in, audio out. */
import type { CallOptions, NativeAddon, NativeRenderer, PlacementOptions, RenderResult } from "./addon.js";
import type { RendererCheckpoint } from "./checkpoints.js";
import {
  encodeLyricPrompt,
  encodeTextPrompt,
  type TextConditions,
  taskInstructions,
} from "./conditioning.js";
import { EngineError } from "./errors.js";
import { Tokenizer } from "./tokenizer.js";
import type { RenderRequest } from "./types.js";

export class Renderer {
  readonly name: string;
  readonly #native: NativeRenderer;
  readonly #tokenizer: Tokenizer;

  private constructor(name: string, native: NativeRenderer, tokenizer: Tokenizer) {
    this.name = name;
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
    const native = await addon.loadRenderer(
      {
        device,
        dtype,
        offload,
        offloadModel,
        modelDirectory: checkpoint.directory,
        vaeDirectory: checkpoint.vaeDirectory,
        textEncoderDirectory: checkpoint.textEncoderDirectory,
      },
      call,
    );
    return new Renderer(checkpoint.name, native, tokenizer);
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
  async render(request: RenderRequest, call: CallOptions): Promise<RenderResult> {
    const audioCodes = request.audioCodes === null ? undefined : this.#fitCodes(request.audioCodes);
    const conditions = conditionsOf(request);
    return this.#native.render(
      {
        task: "text2music",
        repaint: { mode: "balanced", strength: 0.5 },
        chunkMask: "auto",
        coverStrength: 1,
        coverNoiseStrength: 0,
        textTokenIds: encodeTextPrompt(this.#tokenizer, conditions),
        lyricTokenIds: encodeLyricPrompt(this.#tokenizer, conditions),
        frames: audioCodes === undefined ? this.#framesOf(request.durationSeconds) : 0,
        audioCodes,
        seeds: request.seeds,
        inferenceSteps: request.inferenceSteps,
        shift: request.shift,
        timesteps: request.timesteps ?? undefined,
        inferMethod: request.inferMethod,
        guidanceScale: request.guidanceScale,
        useAdg: request.useAdg,
        cfgIntervalStart: request.cfgIntervalStart,
        cfgIntervalEnd: request.cfgIntervalEnd,
      },
      call,
    );
  }

  /** Frees the weights after the renders already asked for. */
  close(): Promise<void> {
    return this.#native.close();
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

function conditionsOf(request: RenderRequest): TextConditions {
  const instruction = request.audioCodes === null ? taskInstructions.textToMusic : taskInstructions.cover;
  return {
    instruction: request.instruction.trim() || instruction,
    caption: request.caption,
    lyrics: request.lyrics,
    language: request.language,
    metadata: {
      ...request.metadata,
      durationSeconds: request.metadata.durationSeconds ?? request.durationSeconds,
    },
  };
}
