/**
 * The typed face of the native addon (native/addon): what crosses the boundary and nothing else.
 * Token ids, numbers, Float32Array audio and options go in; token ids, audio and progress come out.
 * Every long call runs on the addon's own threads, one lane for rendering and one for the language
 * model; calls on one lane run in the order they were made.
 */

import type { RenderParameters } from "./render-parameters.js";
import type { AdapterDesign, TrainingParameters } from "./training-parameters.js";

/** What a long call reports. `total` is 0 while it is not known. */
export interface Progress {
  stage: "load" | "conditions" | "denoise" | "decode" | "prefill" | "metadata" | "codes" | "text";
  done: number;
  total: number;
}

export interface CallOptions {
  /** Checked every token, step and tile; the promise then rejects with code CANCELLED. */
  signal?: AbortSignal | undefined;
  onProgress?: ((progress: Progress) => void) | undefined;
}

export type NativeErrorCode =
  | "BAD_ARGUMENT"
  /** The song exceeds what the checkpoint can render. */
  | "SONG_TOO_LONG"
  | "BAD_CHECKPOINT"
  | "OUT_OF_MEMORY"
  | "CANCELLED"
  | "NOT_FINITE"
  | "STORAGE"
  /** A GPU failed for good: nothing computes on it until the process is started anew. */
  | "DEVICE_LOST"
  | "INTERNAL";

/** Every rejection of the addon: a message a person can act on, and a code a program can. */
export interface NativeError extends Error {
  code: NativeErrorCode;
}

export interface RuntimeInfo {
  libtorchVersion: string;
  /** Devices that `device` may name, "cpu" first, then "cuda:0", ... */
  devices: { name: string; description: string; memoryBytes: number }[];
  /** What `dtype: "auto"` means on the CPU of this machine. */
  cpuDtype: "float32" | "bfloat16";
}

export type Quantization = "none" | "int8" | "int4";

export interface PlacementOptions {
  /** auto, cpu, cuda or cuda:N */
  device: string;
  /** auto, float32 or bfloat16 */
  dtype: "auto" | "float32" | "bfloat16";
  /** How the weights of projections are kept: as they are stored, or in codes of 8 or 4 bits. */
  quantization: Quantization;
  /** Hold each model on the device only while a stage of a job uses it. */
  offload: boolean;
}

export interface LoadRendererOptions extends PlacementOptions {
  /** Directory of the DiT: original layout (config.json beside the weights) or diffusers layout. */
  modelDirectory: string;
  vaeDirectory: string;
  textEncoderDirectory: string;
  /** `offload` for the DiT and its encoders alone. */
  offloadModel: boolean;
}

export interface RendererInfo {
  device: string;
  dtype: "float32" | "bfloat16";
  isTurbo: boolean;
  /** Trained on stems: its captions are written in parts. */
  isLegoSft: boolean;
  sampleRate: number;
  /** Samples of one latent frame: 1920 at 48 kHz, that is 25 frames a second. */
  samplesPerFrame: number;
  /** Latent frames of one audio code (5). */
  framesPerCode: number;
  /** Audio codes are 0 .. codebookSize - 1. */
  codebookSize: number;
  /** The longest song the checkpoint's silence table covers. */
  maxFrames: number;
  /** Tensors that the checkpoints hold and nothing reads, as "directory: name". */
  unusedTensors: string[];
}

export type TaskType = "text2music" | "cover" | "repaint" | "lego" | "extract" | "complete";

/** What a task works on. */
export interface RenderSource {
  /** Planar stereo at the checkpoint's sample rate, within -1 .. 1; copied by the call. */
  audio: Float32Array;
  /** repaint and lego: what to generate, in seconds of the source, possibly beyond its ends; null: all of it. */
  window: { startSeconds: number; endSeconds: number } | null;
}

/** One job of any task: every item shares the conditions and the length, each has its own seed and codes. */
export interface RenderJob extends RenderParameters {
  task: TaskType;
  /** Ids of the text encoder's tokenizer. */
  prompts: {
    text: Int32Array;
    lyrics: Int32Array;
    /** The text prompt with the instruction of text2music, for steps beyond audioCoverStrength; null where it is 1. */
    plainText: Int32Array | null;
  };
  /** The tokens of the lyric prompt whose times are wanted; null: none. Ignored where the model cannot tell. */
  timedLyrics: { first: number; count: number } | null;
  /** Latent frames to render, where neither codes nor a source set the length. */
  frames: number;
  /** One array per item, all of one length. With text2music and cover only. */
  audioCodes: Int32Array[] | null;
  /** Every task but text2music needs it, except that codes stand in for it in a cover. */
  source: RenderSource | null;
  /** Planar stereo at the checkpoint's sample rate, copied by the call: whose timbre to take. */
  referenceAudio: Float32Array | null;
  /** One seed per item, integers in 0 .. 2^53 - 1; their number is the batch size. */
  seeds: number[];
}

/** A part of an item's audio, as it is decoded: in order and without gaps. */
export interface DecodedAudio {
  /** Index among the job's seeds. */
  item: number;
  /** Samples of one channel that were told before. */
  begin: number;
  /**
   * Interleaved stereo at 48 kHz, at the level that the decoder gives it, without what a window leaves of the source;
   * else what the result will hold.
   */
  audio: Float32Array;
}

export interface RenderCall extends CallOptions {
  /** Called for every part, before the promise settles. */
  onEvent?: ((audio: DecodedAudio) => void) | undefined;
}

export interface RenderResult {
  /**
   * Per item: planar stereo at 48 kHz, left channel then right, normalised to -1 dB peak, except where a window
   * leaves something of the source: that keeps its own level.
   */
  audio: Float32Array[];
  /** Samples of one channel. */
  samplesPerChannel: number;
  /** Per item, when each token of the timed lyrics is sung, in seconds; none where the model cannot tell. */
  lyricSeconds: Float32Array[];
  /** Seconds spent per stage. */
  timings: { conditions: number; denoise: number; decode: number };
}

/** One piece of music as adapters train on it. */
export interface TrainingSample {
  textTokenIds: Int32Array;
  lyricTokenIds: Int32Array;
  /** Planar stereo at the checkpoint's sample rate. */
  audio: Float32Array;
  /** What a reader may want to know: a JSON object of texts, integers, booleans and nulls. */
  metadata: string;
}

export interface AdapterFiles {
  /** A PEFT directory or a .safetensors file. */
  path: string;
  /**
   * The type whose machine epsilon LyCORIS' DoRA adds to the norms it divides by: float32 as in training, or bfloat16
   * as in programs that cast an adapter first, whose weights come out up to 1 % smaller.
   */
  doraEpsilon: "float32" | "bfloat16";
}

export interface AdapterInfo {
  kind: "lora" | "lokr";
  /** Projections of the DiT that the adapter changes. */
  moduleCount: number;
  /** Tensors of the file that fit nothing in this model. */
  unmatchedTensors: string[];
}

/** An adapter read from its files, held in memory, checked against the renderer that loaded it. */
export interface NativeAdapter {
  readonly info: AdapterInfo;
}

export interface NativeRenderer {
  readonly info: RendererInfo;
  render(job: RenderJob, call: RenderCall): Promise<RenderResult>;
  /** Audio codes of planar stereo at the checkpoint's sample rate, five a second. */
  encodeCodes(audio: Float32Array, call: CallOptions): Promise<Int32Array>;
  /** Writes the tensors of one sample to `path` (.pt). Rejects with STORAGE where the disk refuses. */
  prepareSample(sample: TrainingSample, path: string, call: CallOptions): Promise<void>;
  /**
   * Reads a LoRA, LoKr or DoRA adapter. Nothing changes yet.
   * Rejects with BAD_CHECKPOINT for a damaged one and for one of another model.
   */
  loadAdapter(files: AdapterFiles, call: CallOptions): Promise<NativeAdapter>;
  /** Merges the adapter at `scale` in place of the one merged before; null restores the base weights bit for bit. */
  applyAdapter(adapter: NativeAdapter | null, scale: number, call: CallOptions): Promise<void>;
  /** Frees the weights after the calls already made; later calls reject. */
  close(): Promise<void>;
}

export interface LoadLanguageModelOptions extends PlacementOptions {
  modelDirectory: string;
  /** Positions of a row's KV cache: prompt and new tokens together. */
  maxContextTokens: number;
  vocabulary: Vocabulary;
}

/** What constrained decoding must know of the tokenizer. */
export interface Vocabulary {
  /** Bytes of every ordinary token, end to end. */
  bytes: Uint8Array;
  /** vocabulary size + 1 offsets into `bytes`; special tokens and audio codes are empty. */
  offsets: Int32Array;
  /** Any of these ends a row. The first is the one that constrained text may produce. */
  endTokenIds: Int32Array;
  /** Id of audio code 0; the codes are contiguous. */
  firstAudioCodeId: number;
  /** Codes the model may emit: 0 .. audioCodeCount - 1. */
  audioCodeCount: number;
}

/**
 * A row's output is a sequence of segments, executed by one automaton per row.
 * - tokens: exactly these ids, fed in one forward pass
 * - pattern: tokens whose bytes spell a string of the regular expression (syntax: native/core/lm/README.md)
 * - codes: exactly `count` audio codes; without `count` any number, then the end token
 * - text: ordinary tokens until an end token
 * - free: no constraint at all until an end token
 */
export type Segment =
  | { kind: "tokens"; ids: Int32Array }
  | { kind: "pattern"; pattern: string; choose: "sample" | "greedy"; maxTokens: number }
  | { kind: "codes"; count?: number | undefined }
  | { kind: "text" }
  | { kind: "free" };

export interface LanguageJob {
  promptTokenIds: Int32Array;
  /** The unconditional prompt; needed when cfgScale is above 1. */
  negativePromptTokenIds?: Int32Array | undefined;
  program: Segment[];
  /** One seed per row, integers in 0 .. 2^53 - 1; their number is the number of rows. */
  seeds: number[];
  maxNewTokens: number;
  /** At or below 0: the most likely token. */
  temperature: number;
  cfgScale: number;
  /** 0: off */
  topK: number;
  /** 1: off */
  topP: number;
  repetitionPenalty: number;
  /** What progress is called. */
  stage: "metadata" | "codes" | "text";
}

export interface LanguageResult {
  /** Per row: the new ids, forced ones included, the end token excluded. */
  tokenIds: Int32Array[];
  /** Per row: why it ended. */
  finished: ("program" | "end_token" | "length")[];
}

export interface LanguageModelInfo {
  device: string;
  dtype: "float32" | "bfloat16";
  /** Tensors that the checkpoint holds and nothing reads. */
  unusedTensors: string[];
}

export interface NativeLanguageModel {
  readonly info: LanguageModelInfo;
  generate(job: LanguageJob, call: CallOptions): Promise<LanguageResult>;
  close(): Promise<void>;
}

export interface TrainingOptions extends Omit<TrainingParameters, "conditionDropout"> {
  modelDirectory: string;
  /** Named in the files that are written; one with `turbo` in it makes a turbo model. */
  modelName: string;
  /** As in PlacementOptions. */
  device: string;
  dtype: "auto" | "float32" | "bfloat16";
  adapter: AdapterDesign;
  /** The name of its folder, without the path; named in the files that are written. */
  dataSetName: string;
  /** Absolute paths of sample files, in the order of the data set. */
  samples: string[];
  outputDirectory: string;
  /** 0 .. 1: share of samples that train without condition; absent: 0 for turbo models, 0.15 for others. */
  conditionDropout?: number | undefined;
  /** A checkpoint folder of an earlier run to go on from, or the folder of any adapter. */
  resumeFrom?: string | undefined;
}

/** What a training run tells while it runs, none left out. */
export type TrainingEvent =
  | { kind: "loaded"; samples: number }
  /** All that can be refused has been: the first step is next. */
  | {
      kind: "started";
      device: string;
      precision: "bf16-mixed" | "32-true";
      trainableParameters: number;
      totalSteps: number;
    }
  /** Without the optimiser where there was an adapter alone: it begins anew. */
  | { kind: "resumed"; epoch: number; step: number; hasOptimizer: boolean }
  /** After an optimiser step; `loss` is the mean of its micro-batches. */
  | { kind: "step"; epoch: number; step: number; loss: number; learningRate: number; gradientNorm: number }
  /** An optimiser step left out because gradients were not finite: those of `notFinite` of all `parameters`. */
  | { kind: "skipped"; epoch: number; step: number; notFinite: number; parameters: number }
  | { kind: "epoch"; epoch: number; seconds: number; loss: number }
  | { kind: "checkpoint"; epoch: number; path: string }
  | { kind: "notice"; text: string };

export interface TrainingCall {
  /** Ends the run before its next micro-batch, with a checkpoint to resume from; the promise resolves. */
  signal: AbortSignal;
  onEvent: (event: TrainingEvent) => void;
}

export interface TrainingResult {
  outcome: "completed" | "stopped";
  /** `<outputDirectory>/final`, or the checkpoint of the stop. */
  path: string;
  steps: number;
}

export interface SampleInfo {
  frames: number;
  conditionTokens: number;
}

export interface NativeAddon {
  runtimeInfo(): RuntimeInfo;
  /** Whether attention may use libtorch's flash kernels; for the whole process, from the next call on. */
  useFlashAttention(enabled: boolean): void;
  loadRenderer(options: LoadRendererOptions, call: CallOptions): Promise<NativeRenderer>;
  loadLanguageModel(options: LoadLanguageModelOptions, call: CallOptions): Promise<NativeLanguageModel>;
  /** Checks sample files against a model: BAD_CHECKPOINT names the first that cannot be trained on, and why. */
  inspectSamples(modelDirectory: string, samples: string[], call: CallOptions): Promise<SampleInfo[]>;
  /** Trains an adapter on weights of its own, on its own thread; rendering goes on meanwhile. One run at a time. */
  train(options: TrainingOptions, call: TrainingCall): Promise<TrainingResult>;
}
