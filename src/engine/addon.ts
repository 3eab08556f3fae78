/**
 * The typed face of the native addon (native/addon): what crosses the boundary and nothing else.
 * Token ids, numbers, Float32Array audio and options go in; token ids, audio and progress come out.
 * Every long call runs on the addon's own threads, one lane for rendering and one for the language
 * model; calls on one lane run in the order they were made.
 */

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
  | "BAD_CHECKPOINT"
  | "OUT_OF_MEMORY"
  | "CANCELLED"
  | "NOT_FINITE"
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

export interface PlacementOptions {
  /** auto, cpu, cuda or cuda:N */
  device: string;
  /** auto, float32 or bfloat16 */
  dtype: "auto" | "float32" | "bfloat16";
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
  sampleRate: number;
  /** Samples of one latent frame: 1920 at 48 kHz, that is 25 frames a second. */
  samplesPerFrame: number;
  /** Latent frames of one audio code (5). */
  framesPerCode: number;
  /** Audio codes are 0 .. codebookSize - 1. */
  codebookSize: number;
  /** The longest song the checkpoint's silence table covers. */
  maxFrames: number;
  parameterCount: number;
  /** Tensors that the checkpoints hold and nothing reads, as "directory: name". */
  unusedTensors: string[];
}

/** One text2music job: every item shares the conditions and the length, each has its own seed and codes. */
export interface RenderJob {
  /** Text prompt, ids of the text encoder's tokenizer. */
  textTokenIds: Int32Array;
  /** Lyric prompt, ids of the same tokenizer. */
  lyricTokenIds: Int32Array;
  /** Latent frames to render; ignored where `audioCodes` set the length. */
  frames: number;
  /** One array per item, all of one length, or absent for none. */
  audioCodes?: Int32Array[] | undefined;
  /** One seed per item, integers in 0 .. 2^53 - 1; their number is the batch size. */
  seeds: number[];
  inferenceSteps: number;
  shift: number;
  /** Descending flow times ending at 0; overrides inferenceSteps and shift. */
  timesteps?: number[] | undefined;
  inferMethod: "ode" | "sde";
  guidanceScale: number;
  useAdg: boolean;
  cfgIntervalStart: number;
  cfgIntervalEnd: number;
}

export interface RenderResult {
  /** Per item: planar stereo at 48 kHz, left channel then right, normalised to -1 dB peak. */
  audio: Float32Array[];
  /** Samples of one channel. */
  samplesPerChannel: number;
  /** Seconds spent per stage. */
  timings: { conditions: number; denoise: number; decode: number };
}

export interface NativeRenderer {
  readonly info: RendererInfo;
  render(job: RenderJob, call: CallOptions): Promise<RenderResult>;
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
  parameterCount: number;
  vocabularySize: number;
  /** Tensors that the checkpoint holds and nothing reads. */
  unusedTensors: string[];
}

export interface NativeLanguageModel {
  readonly info: LanguageModelInfo;
  generate(job: LanguageJob, call: CallOptions): Promise<LanguageResult>;
  close(): Promise<void>;
}

export interface NativeAddon {
  runtimeInfo(): RuntimeInfo;
  /** Whether attention may use libtorch's flash kernels; for the whole process, from the next call on. */
  useFlashAttention(enabled: boolean): void;
  loadRenderer(options: LoadRendererOptions, call: CallOptions): Promise<NativeRenderer>;
  loadLanguageModel(options: LoadLanguageModelOptions, call: CallOptions): Promise<NativeLanguageModel>;
}
