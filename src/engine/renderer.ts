/** A loaded DiT with the tokenizer of its text encoder. Renders songs, described in musical terms, to audio. */

import { say } from "../notes.js";
import { AdapterCache, adapterWarnings } from "./adapters.js";
import type {
  CallOptions,
  ModelSource,
  NativeAddon,
  NativeRenderer,
  PlacementOptions,
  PromptIds,
  RenderCall,
  RendererInfo,
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
} from "./conditioning.js";
import { EngineError, hasCode } from "./errors.js";
import { Tokenizer } from "./tokenizer.js";
import type {
  LyricLine,
  PlanarAudio,
  Rendering,
  RenderRequest,
  RenderSong,
  ScaledAdapter,
  SongLatents,
  TrainingSampleRequest,
} from "./types.js";

/** Tolerance for bfloat16 rounding, as a share of the largest value of a frame. */
const FRAME_TOLERANCE = 0.05;

/** Prompt of a song, and warnings about text that was cut. */
interface EncodedPrompt {
  prompt: PromptIds;
  warnings: string[];
}

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
    const placement = { device, dtype, quantization, offload, offloadModel };
    const { model, vae, textEncoder } = checkpoint;
    const [tokenizer, native] = await Promise.allSettled([
      Tokenizer.load(checkpoint.tokenizerDirectory),
      addon.loadRenderer({ ...placement, model, vae, textEncoder }, call),
    ]);
    if (tokenizer.status === "fulfilled" && native.status === "fulfilled")
      return new Renderer(checkpoint, native.value, tokenizer.value);
    for (const part of [tokenizer, native]) if (part.status === "fulfilled") await part.value.close();
    throw (tokenizer.status === "rejected" ? tokenizer : (native as PromiseRejectedResult)).reason;
  }

  get info(): RendererInfo {
    return this.#native.info;
  }

  get unusedTensors(): readonly string[] {
    return this.info.unusedTensors;
  }

  /** Renders songs of equal length as one batch. */
  async render(request: RenderRequest, call: RenderCall): Promise<Rendering[]> {
    const { task, source, referenceAudio, referenceLatents = null, denoise, guidance, edit } = request;
    this.#assertOwnSpace("src_latents", source?.latents);
    this.#assertOwnSpace("ref_latents", referenceLatents);
    const parts = await this.adapters.load(request.adapters ?? [], call);
    const warnings = parts.flatMap(({ name, adapter }) =>
      adapterWarnings(adapter.info).map((warning) => `adapter ${name}: ${warning}`),
    );
    const { samples, codesPerSong } = this.#lengthOf(request, warnings);
    const prompts = await Promise.all(request.songs.map((song) => this.#promptOf(request, song)));
    const job: RenderJob = {
      ...{ task, source, referenceAudio, referenceLatents, denoise, guidance, edit, samples },
      songs: request.songs.map(({ seed, codes }, item) => ({
        ...{ seed: BigInt(seed), codes: codes?.subarray(0, codesPerSong) ?? null },
        prompt: (prompts[item] as EncodedPrompt).prompt,
      })),
      adapters: parts.map(({ adapter, scale }) => ({ adapter, scale })),
    };
    const { songs, samplesPerChannel, timings } = await this.#native.render(job, call).catch((error) => {
      if (hasCode(error, "NOT_FINITE")) error.message += `; ${causesOfNotFinite(parts, denoise)}`;
      throw error;
    });
    const { silentFrame } = this.info;
    const share = (seconds: number) => seconds / songs.length;
    return songs.map(({ audio, latents: values, gain, lyricSeconds }, item) => {
      const { prompt, warnings: own } = prompts[item] as EncodedPrompt;
      const frames = values.length / silentFrame.length;
      return {
        ...{ audio, samplesPerChannel, model: this.name },
        latents: { values, frames, samples: samplesPerChannel, silentFrame, gain },
        lyricLines: this.#linesOf(prompt, lyricSeconds),
        timings: {
          conditions: share(timings.conditions),
          denoise: share(timings.denoise),
          decode: share(timings.decode),
        },
        adapters: parts.map(({ name, scale }) => ({ name, scale })),
        warnings: [...own, ...warnings],
      };
    });
  }

  /** Checks that latents belong to this model's VAE. The addon checks the number of channels. */
  #assertOwnSpace(name: string, latents: SongLatents | null | undefined): void {
    const own = this.info.silentFrame;
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

  /** Audio codes of a recording, or of its latents. */
  async encodeCodes(recording: PlanarAudio | SongLatents, call: CallOptions): Promise<Int32Array> {
    if (recording instanceof Float32Array) return this.#native.encodeCodes(recording, call);
    this.#assertOwnSpace("src_latents", recording);
    return this.#native.codesOfLatents(recording, call);
  }

  async encodeLatents(audio: PlanarAudio, call: CallOptions): Promise<SongLatents> {
    const values = await this.#native.encodeLatents(audio, call);
    const { silentFrame } = this.info;
    const frames = values.length / silentFrame.length;
    return { values, frames, samples: audio.length / 2, silentFrame, gain: 1 };
  }

  /** Audio of the song, at the level of the decoder. */
  async decodeLatents(latents: SongLatents, call: CallOptions): Promise<PlanarAudio> {
    this.#assertOwnSpace("src_latents", latents);
    const audio = await this.#native.decodeLatents(latents, call);
    const { samples } = latents;
    const whole = audio.length / 2;
    if (samples === whole) return audio;
    const cut = new Float32Array(2 * samples);
    cut.set(audio.subarray(0, samples));
    cut.set(audio.subarray(whole, whole + samples), samples);
    return cut;
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

  async #promptOf(
    { task, denoise, edit, timesLyrics }: RenderRequest,
    song: RenderSong,
  ): Promise<EncodedPrompt> {
    const warnings: string[] = [];
    const instruction = instructionOf({ ...song, task, hasAudioCodes: song.codes !== null });
    const caption = this.info.isLegoSft
      ? legoCaption(song.caption, song.globalCaption, instruction, edit.chunkMaskMode)
      : song.caption;
    const plain = { ...song, instruction: TEXT_TO_MUSIC_INSTRUCTION };
    const text = await encodeTextPrompt(this.#tokenizer, { ...song, instruction, caption }, warnings);
    const lyrics = await encodeLyricPrompt(this.#tokenizer, song, warnings);
    const prompt: PromptIds = {
      text,
      lyrics,
      plainText: denoise.audioCoverStrength < 1 ? await encodeTextPrompt(this.#tokenizer, plain) : null,
      timedLyrics: timesLyrics ? await lyricSpan(this.#tokenizer, song, lyrics) : null,
    };
    return { prompt, warnings };
  }

  /**
   * Length of a batch in samples, and the number of audio codes of a song. The checkpoint's maximum song length limits
   * both.
   */
  #lengthOf(
    { source, songs: [song] }: RenderRequest,
    warnings: string[],
  ): { samples: number; codesPerSong: number } {
    const { codes, metadata } = song as RenderSong;
    const { sampleRate, samplesPerFrame, maxFrames, framesPerCode } = this.info;
    const planned = Math.max(samplesPerFrame, Math.round(sampleRate * metadata.durationSeconds));
    const samples = source?.latents?.samples ?? planned;
    if (codes === null) return { samples, codesPerSong: 0 };
    const codesPerSong = Math.min(codes.length, Math.floor(maxFrames / framesPerCode));
    const samplesPerCode = framesPerCode * samplesPerFrame;
    if (codesPerSong < codes.length) {
      const seconds = (codesPerSong * samplesPerCode) / sampleRate;
      warnings.push(say("codes_cut", { seconds, model: this.name }));
    }
    return { samples: Math.min(samples, codesPerSong * samplesPerCode), codesPerSong };
  }
}

/** Likely causes of values that are not finite. */
function causesOfNotFinite(
  adapters: readonly ScaledAdapter[],
  { timesteps }: RenderRequest["denoise"],
): string {
  const names = adapters.map(({ name, scale }) => `${name} at ${scale}`).join(", ");
  const causes = [
    ...(adapters.length > 0 ? [`LoRA ${names}: a scale, or an alpha in the files, may be too large`] : []),
    ...(timesteps ? ["timesteps: the steps may differ too much in length"] : []),
  ];
  return causes.join("; ") || "the checkpoint may be damaged";
}
