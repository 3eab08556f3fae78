/**
 * Types of the native addon (native/addon).
 * Token ids, numbers, Float32Array audio and options go in; token ids, audio and progress come out. Long calls run
 * on the addon's own threads: one for rendering, one for the language model. Calls on one thread run in order.
 */

import type { RenderParameters } from "./render-parameters.js";
import type { AdapterDesign, TrainingParameters } from "./training-parameters.js";

/** Progress of a long call. `total` is 0 until known. */
export interface Progress {
  stage: "load" | "conditions" | "denoise" | "decode" | "prefill" | "metadata" | "codes" | "text";
  done: number;
  total: number;
}

export interface CallOptions {
  /** Cancels the call at the next token, step or tile. The promise then rejects with CANCELLED. */
  signal?: AbortSignal | undefined;
  onProgress?: ((progress: Progress) => void) | undefined;
}

export type NativeErrorCode =
  | "BAD_ARGUMENT"
  /** The song is longer than the checkpoint supports. */
  | "SONG_TOO_LONG"
  | "BAD_CHECKPOINT"
  | "OUT_OF_MEMORY"
  | "CANCELLED"
  | "NOT_FINITE"
  | "STORAGE"
  /** A GPU failed permanently. Only a restart of the process makes the GPU usable again. */
  | "DEVICE_LOST"
  | "INTERNAL";

/** Every rejection of the addon: a message for people and a code for programs. */
export interface NativeError extends Error {
  code: NativeErrorCode;
}

export interface RuntimeInfo {
  libtorchVersion: string;
  /** Valid values of `device`: "cpu" first, then "cuda:0", ... */
  devices: { name: string; description: string; memoryBytes: number }[];
  /** Data type that `dtype: "auto"` selects on the CPU of this machine. */
  cpuDtype: "float32" | "bfloat16";
}

export type Quantization = "none" | "int8" | "int4";

export interface PlacementOptions {
  /** Device: auto, cpu, cuda or cuda:N */
  device: string;
  dtype: "auto" | "float32" | "bfloat16";
  /** Storage of projection weights: as in the checkpoint, or 8 or 4 bits. */
  quantization: Quantization;
  /** Keep each model on the device only during the stages that use it. */
  offload: boolean;
}

/** Location of a model: a directory with config.json, or a file and the prefix of the model's tensors in it. */
export interface ModelSource {
  /** A directory (original layout with config.json beside the weights, or diffusers layout) or a .safetensors file. */
  path: string;
  /** For a file: prefix of its tensor names. */
  prefix: string;
  /** For a file: content of config.json; null for a directory. */
  config: string | null;
}

export interface LoadRendererOptions extends PlacementOptions {
  /** The DiT with its encoders. */
  model: ModelSource;
  vae: ModelSource;
  textEncoder: ModelSource;
  /** Like `offload`, but only for the DiT and its encoders. */
  offloadModel: boolean;
}

export interface RendererInfo {
  device: string;
  dtype: "float32" | "bfloat16";
  isTurbo: boolean;
  /** Whether the model was trained on stems. The captions of such a model have the parts Global, Local and Mask Control. */
  isLegoSft: boolean;
  sampleRate: number;
  /** Samples per latent frame: 1920 at 48 kHz, so 25 frames a second. */
  samplesPerFrame: number;
  /** Number of latent frames per audio code (5). */
  framesPerCode: number;
  /** Audio codes are 0 to codebookSize - 1. */
  codebookSize: number;
  /** Maximum song length: length of the checkpoint's silence table. */
  maxFrames: number;
  /** First latent frame of silence; identifies the latent space, which models with the same VAE share. */
  silentFrame: Float32Array;
  /** Checkpoint tensors that are not used, as "directory: name". */
  unusedTensors: string[];
}

export type TaskType = "text2music" | "cover" | "repaint" | "lego" | "extract" | "complete";

/** Latents of a song: `frames` rows of equal length; copied by the call. */
export interface Latents {
  values: Float32Array;
  frames: number;
}

export interface RenderSource {
  /** Planar stereo at the checkpoint's sample rate, in [-1, 1]; copied by the call. Null with latents. */
  audio: Float32Array | null;
  /**
   * Latents that replace `audio`. `samples` of the job is then the length of these latents. `gain` is the factor from
   * their decoded audio to their song; if known, the parts that a window keeps have the level of that song.
   */
  latents?: (Latents & { gain?: number | null }) | null;
  /** repaint and lego: region to generate, in seconds of the source; it may exceed the source. null: everything. */
  window: { startSeconds: number; endSeconds: number } | null;
}

/** Token ids of the text encoder's tokenizer. */
export interface PromptIds {
  text: Int32Array;
  lyrics: Int32Array;
  /**
   * Text prompt with the text2music instruction. It replaces `text` as soon as the fraction
   * `audioCoverStrength` of the steps is done; null if this fraction is 1.
   */
  plainText: Int32Array | null;
  /** Range of lyric tokens to timestamp; null: none. Ignored if the model cannot timestamp lyrics. */
  timedLyrics: { first: number; count: number } | null;
}

/** What the songs of a job differ in. */
export interface JobSong {
  prompt: PromptIds;
  /** Audio codes, only for text2music and cover: equally many for all songs of a job; null: none. */
  codes: Int32Array | null;
  /** 0 to 2^64 - 1 */
  seed: bigint;
}

/** One render job of any task: a batch of songs with the same task, source and length. */
export interface RenderJob extends RenderParameters {
  task: TaskType;
  songs: JobSong[];
  /** Samples per channel of a song without source audio; at most the length of the audio codes, if there are any. */
  samples: number;
  /** Source recording. Every task requires one, except text2music and a cover with audio codes. */
  source: RenderSource | null;
  /** Timbre reference: planar stereo at the checkpoint's sample rate; copied by the call. */
  referenceAudio: Float32Array | null;
  /** Latents that replace `referenceAudio`. */
  referenceLatents?: Latents | null;
  /** Adapters of this job, in merge order; empty: base model. */
  adapters: JobAdapter[];
}

/** Chunk of a song's decoded audio. Chunks arrive in order without gaps. */
export interface DecodedAudio {
  /** Index of the song in the job. */
  item: number;
  /** Offset of the chunk in samples per channel. */
  begin: number;
  /**
   * Interleaved stereo at 48 kHz as decoded: not normalised, and without the kept parts of the source. A song that keeps
   * such parts has their level.
   */
  audio: Float32Array;
}

export interface RenderCall extends CallOptions {
  /** Called for every chunk before the promise settles. */
  onEvent?: ((audio: DecodedAudio) => void) | undefined;
}

export interface RenderResult {
  songs: {
    /**
     * Planar stereo at 48 kHz, left channel then right, normalised to a peak of -1 dB. Audio that keeps part of the
     * source is not normalised.
     */
    audio: Float32Array;
    /** Decoded latents, in frames * channels values. */
    latents: Float32Array;
    /** Factor from the decoded latents to the audio. */
    gain: number;
    /**
     * Seconds at which each lyric token of `timedLyrics` is sung; empty without `timedLyrics`, or if the model cannot
     * timestamp lyrics.
     */
    lyricSeconds: Float32Array;
  }[];
  samplesPerChannel: number;
  /** Duration of each stage in seconds. */
  timings: { conditions: number; denoise: number; decode: number };
}

export interface TrainingSample {
  textTokenIds: Int32Array;
  lyricTokenIds: Int32Array;
  /** Planar stereo at the checkpoint's sample rate. */
  audio: Float32Array;
  /** JSON object of strings, integers, booleans and nulls; stored in the file, but not used for training. */
  metadata: string;
}

export interface AdapterFiles {
  /** Path of the adapter: a PEFT directory or a .safetensors file. */
  path: string;
  /**
   * LyCORIS DoRA adds the machine epsilon of this data type to its norms. float32 gives the same weights as
   * training. bfloat16 gives the same weights as programs that first convert the adapter to bfloat16; these
   * weights are up to 1 % smaller.
   */
  doraEpsilon: "float32" | "bfloat16";
}

export interface AdapterInfo {
  kind: "lora" | "lokr" | "loha" | "ia3";
  /** Number of DiT projections that the adapter changes. */
  moduleCount: number;
  /** Tensors that match nothing in this model. */
  unmatchedTensors: string[];
  /** Settings of the adapter that were ignored or assumed. */
  warnings: string[];
}

/** An adapter in memory, validated against the renderer that loaded it. */
export interface NativeAdapter {
  readonly info: AdapterInfo;
}

/** An adapter of a job. Scale 1: as trained; 0: off; negative: inverted. */
export interface JobAdapter {
  adapter: NativeAdapter;
  scale: number;
}

export interface NativeRenderer {
  readonly info: RendererInfo;
  render(job: RenderJob, call: RenderCall): Promise<RenderResult>;
  /** Encodes planar stereo at the checkpoint's sample rate to audio codes, five a second. */
  encodeCodes(audio: Float32Array, call: CallOptions): Promise<Int32Array>;
  /** Like `encodeCodes`, of audio that is encoded already. */
  codesOfLatents(latents: Latents, call: CallOptions): Promise<Int32Array>;
  /** Encodes planar stereo at its own level, the last frame padded with silence; returns frames * channels values. */
  encodeLatents(audio: Float32Array, call: CallOptions): Promise<Float32Array>;
  /** Decodes latents to planar stereo, at the level of the decoder. */
  decodeLatents(latents: Latents, call: CallOptions): Promise<Float32Array>;
  /** Writes the tensors of one sample to `path` (.pt). Rejects with STORAGE if the file cannot be written. */
  prepareSample(sample: TrainingSample, path: string, call: CallOptions): Promise<void>;
  /**
   * Loads a LoRA, LoKr, LoHa or IA3 adapter; it applies to jobs that list it.
   * Rejects with BAD_CHECKPOINT if it is damaged or made for another model.
   */
  loadAdapter(files: AdapterFiles, call: CallOptions): Promise<NativeAdapter>;
  /** Frees the weights once earlier calls have ended; later calls reject. */
  close(): Promise<void>;
}

export interface LoadLanguageModelOptions extends PlacementOptions {
  model: ModelSource;
  /** KV cache length per row: prompt and new tokens. */
  maxContextTokens: number;
  /**
   * Maximum number of jobs in a batch that several calls share. A single call may have more jobs. Absent:
   * limited by memory.
   */
  maxSongs?: number | undefined;
  vocabulary: Vocabulary;
}

/** Vocabulary for constrained decoding. */
export interface Vocabulary {
  /** Concatenated bytes of all ordinary tokens. */
  bytes: Uint8Array;
  /**
   * Start of each token in `bytes`, then the end of the last one. Special tokens and audio codes have no
   * bytes.
   */
  offsets: Int32Array;
  /** Ids of end tokens. Constrained text ends with the first. */
  endTokenIds: Int32Array;
  /** Id of audio code 0; codes are contiguous. */
  firstAudioCodeId: number;
  /** The model may emit the codes 0 to audioCodeCount - 1. */
  audioCodeCount: number;
}

/**
 * Part of a decoding program. The output of a row is a sequence of segments, executed by one automaton per row.
 * - tokens: exactly these ids, fed in one forward pass
 * - pattern: tokens whose bytes match the regular expression (syntax: native/core/lm/README.md)
 * - codes: exactly `count` audio codes; without `count` any number, then the end token
 * - text: ordinary tokens until an end token
 * - free: unconstrained until an end token
 */
export type Segment =
  | { kind: "tokens"; ids: Int32Array }
  | { kind: "pattern"; pattern: string; choose: "sample" | "greedy"; maxTokens: number }
  | { kind: "codes"; count?: number | undefined }
  | { kind: "text" }
  | { kind: "free" };

export interface TokenSampling {
  /** Sampling temperature; 0 or less: greedy. */
  temperature: number;
  /** Top-k limit; 0: off */
  topK: number;
  /** Top-p limit; 1: off */
  topP: number;
  /** Minimum probability relative to the most likely token; 0: off */
  minP: number;
  repetitionPenalty: number;
  /** Whether jobs of other calls may be decoded in the same batch; absent: yes. */
  sharesBatch?: boolean | undefined;
}

export interface LanguageJob extends TokenSampling {
  promptTokenIds: Int32Array;
  /** Unconditional prompt; required if cfgScale is above 1. */
  negativePromptTokenIds?: Int32Array | undefined;
  program: Segment[];
  /** 0 to 2^64 - 1 */
  seed: bigint;
  maxNewTokens: number;
  cfgScale: number;
  stage: "metadata" | "codes" | "text";
}

export interface LanguageResult {
  /** New ids, including forced ones, without the end token. */
  tokenIds: Int32Array;
  /** Why the text ended. */
  finished: "program" | "end_token" | "length";
}

/** Texts to score as continuations of a prompt. */
export interface ScoreJob {
  promptTokenIds: Int32Array;
  targets: Int32Array[];
}

/** Log probability and rank of each token of a text among all tokens of the vocabulary. */
export interface TokenScores {
  logProbabilities: Float32Array;
  /** Rank of each token; 1: most likely. */
  ranks: Int32Array;
}

export interface LanguageModelInfo {
  device: string;
  dtype: "float32" | "bfloat16";
  unusedTensors: string[];
}

export interface NativeLanguageModel {
  readonly info: LanguageModelInfo;
  /**
   * Runs jobs with equal stage and sampling options as one batch. On the CPU, the other rows of the batch
   * never change the result of a row.
   */
  generate(jobs: readonly LanguageJob[], call: CallOptions): Promise<LanguageResult[]>;
  /** Scores each target by teacher forcing. */
  score(job: ScoreJob, call: CallOptions): Promise<TokenScores[]>;
  close(): Promise<void>;
}

export interface TrainingOptions extends Omit<TrainingParameters, "conditionDropout"> {
  model: ModelSource;
  /** Name of the model, written into the output files. A name that contains `turbo` means a turbo model. */
  modelName: string;
  device: string;
  dtype: "auto" | "float32" | "bfloat16";
  adapter: AdapterDesign;
  /** Folder name of the data set, written into the output files. */
  dataSetName: string;
  /** Absolute paths of sample files, in data set order. */
  samples: string[];
  outputDirectory: string;
  /** Condition dropout, 0 to 1; default: 0 for turbo models, 0.15 for others. */
  conditionDropout?: number | undefined;
  /** Checkpoint folder of an earlier run to resume, or an adapter folder to start from. */
  resumeFrom?: string | undefined;
}

/** Events of a training run; none is dropped. */
export type TrainingEvent =
  | { kind: "loaded"; samples: number }
  /** Validation is done; training starts. */
  | {
      kind: "started";
      device: string;
      precision: "bf16-mixed" | "32-true";
      trainableParameters: number;
      totalSteps: number;
    }
  /** `hasOptimizer` is false if only an adapter was resumed. The optimizer then starts fresh. */
  | { kind: "resumed"; epoch: number; step: number; hasOptimizer: boolean }
  /** Optimizer step; `loss` is the mean of its micro-batches. */
  | { kind: "step"; epoch: number; step: number; loss: number; learningRate: number; gradientNorm: number }
  /**
   * An optimizer step was skipped: the gradients of `notFinite` out of `parameters` tensors were not finite.
   */
  | { kind: "skipped"; epoch: number; step: number; notFinite: number; parameters: number }
  | { kind: "epoch"; epoch: number; seconds: number; loss: number }
  | { kind: "checkpoint"; epoch: number; path: string }
  | { kind: "notice"; text: string };

export interface TrainingCall {
  /** Stops before the next micro-batch and saves a checkpoint to resume from. The promise of `train` then resolves. */
  signal?: AbortSignal | undefined;
  onEvent?: ((event: TrainingEvent) => void) | undefined;
}

export interface TrainingResult {
  outcome: "completed" | "stopped";
  /** `<outputDirectory>/final`, or the checkpoint saved on stop. */
  path: string;
  steps: number;
}

export interface NativeAddon {
  runtimeInfo(): RuntimeInfo;
  /** Allows libtorch's flash attention kernels, process-wide, from the next call on. */
  useFlashAttention(enabled: boolean): void;
  loadRenderer(options: LoadRendererOptions, call: CallOptions): Promise<NativeRenderer>;
  loadLanguageModel(options: LoadLanguageModelOptions, call: CallOptions): Promise<NativeLanguageModel>;
  /** Trains an adapter on its own copy of the weights, in parallel with rendering. One run at a time. */
  train(options: TrainingOptions, call: TrainingCall): Promise<TrainingResult>;
}
