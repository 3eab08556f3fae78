/** Types of the engine's public interface. They describe songs in musical terms, without HTTP or tensors. */

import type { Gpu } from "../libtorch/gpus.js";
import type {
  AdapterFiles,
  AdapterInfo,
  CallOptions,
  Latents,
  Quantization,
  RenderCall,
  RenderResult,
  RenderSource,
  RuntimeInfo,
  TaskType,
  TokenSampling,
  TrainingCall,
  TrainingOptions,
  TrainingResult,
} from "./addon.js";
import type { BatchLimits } from "./batches.js";
import type { RenderParameters } from "./render-parameters.js";

/** Song metadata. Null or "": unknown. */
export interface Metadata {
  bpm: number | null;
  /** Musical key, for example "F# minor". */
  keyScale: string;
  /** "2", "3", "4" or "6" for 2/4, 3/4, 4/4 and 6/8. */
  timeSignature: string;
  durationSeconds: number | null;
}

/**
 * Integer from 0 to 2^64 - 1. A seed above 2^53 - 1 is a string, because JSON parsers would round the number.
 */
export type Seed = number | string;

/** A complete song description, written or rewritten by the language model. */
export interface SongSheet extends Metadata {
  caption: string;
  lyrics: string;
  /** Language of the lyrics: a code such as "en", or "unknown". */
  language: string;
  /** Warnings about text that the model cannot write, and about output that was rejected. */
  warnings: string[];
}

export interface SamplingOptions extends TokenSampling {
  /** Whether a grammar constrains the output. If not, the output is parsed tolerantly. */
  constrained: boolean;
  /** Whether to log what the model wrote, and which fields were forced. */
  debug?: boolean;
}

export interface LanguageRequest {
  /** Name of the language model; absent or null: the default. */
  languageModel?: string | null;
}

export interface PlanningRequest extends LanguageRequest {
  /** Values set by the client, which the model must not change. */
  metadata: Metadata;
  sampling: SamplingOptions;
}

/** Expand a free-text query into a song sheet. */
export interface SampleRequest extends PlanningRequest {
  /** Free-text query; "": none. */
  query: string;
  instrumental: boolean;
  /** Language of the lyrics; null: chosen by the model. */
  language: string | null;
  seed: Seed;
}

/** Rewrite a caption and lyrics. */
export interface FormatRequest extends PlanningRequest {
  caption: string;
  lyrics: string;
  language: string | null;
  seed: Seed;
}

/** Describe a recording by its audio codes. */
export interface UnderstandRequest extends PlanningRequest {
  audioCodes: Int32Array;
  seed: Seed;
}

/** Score how well a song, given as audio codes, fits its text. */
export interface ScoreRequest extends LanguageRequest {
  audioCodes: Int32Array;
  caption: string;
  /** Lyrics; "": instrumental. */
  lyrics: string;
  language: string;
  metadata: Metadata;
}

/** Scores from 0 to 1. The score of a field is null if the field is empty or the model cannot judge it. */
export interface SongScores {
  total: number;
  caption: number | null;
  lyrics: number | null;
  metadata: number | null;
}

/** Plan a song: fill metadata and optionally write audio codes. */
export interface PlanRequest extends PlanningRequest {
  caption: string;
  lyrics: string;
  /** Whether to run phase 1, which writes metadata. */
  fillMetadata: boolean;
  rewriteCaption: boolean;
  detectLanguage: boolean;
  writeCodes: boolean;
  /** Guidance scale for writing audio codes; 1 or less: no guidance. */
  cfgScale: number;
  negativePrompt: string;
  seed: Seed;
}

export interface Plan {
  /** The client's values; the model fills the missing ones. */
  metadata: Metadata;
  /** The model's caption; null if not requested or rejected. */
  caption: string | null;
  language: string | null;
  /** Audio codes; null if not requested. */
  audioCodes: Int32Array | null;
  warnings: string[];
  seconds: { metadata: number; codes: number };
}

export interface LanguageModelInfo {
  name: string;
  /** Whether the model can write captions and lyrics. Otherwise it only plans metadata and codes. */
  writesText: boolean;
}

/** Check that texts and output fit into the language model's context. `fields`: the texts by field name. */
export interface TextLengthRequest extends LanguageRequest {
  fields: Readonly<Record<string, string>>;
  /** Song length in seconds, 0 if it is unknown; null if no audio codes are written. */
  codesSeconds: number | null;
}

/** Sample rate of rendered audio and decoded recordings, in hertz. */
export const SAMPLE_RATE = 48_000;
/** Audio codes per second of music. */
export const CODES_PER_SECOND = 5;

/** Planar stereo at SAMPLE_RATE in [-1, 1]: left channel, then right. */
export type PlanarAudio = Float32Array;

/** Latents of a song, as returned by one rendering and accepted by another. */
export interface SongLatents extends Latents {
  /** Song length in samples per channel. The last latent frame may be partly unused. */
  samples: number;
  /** Latent frame of silence in the same latent space; null: unknown. */
  silentFrame: Float32Array | null;
  /**
   * Factor from the decoded latents to the audio of the song, or to the parts of its source that the song keeps; null:
   * unknown.
   */
  gain: number | null;
}

/** What songs of one request differ in. */
export interface RenderSong {
  seed: Seed;
  /** Audio codes, only for text2music and cover; null: none. */
  codes: Int32Array | null;
  caption: string;
  /** Caption of the whole song, for models trained on stems; "" for none. */
  globalCaption: string;
  lyrics: string;
  language: string;
  /** A source overrides the duration. Audio codes limit the duration to their length. */
  metadata: Metadata & { durationSeconds: number };
  /** Instruction. If empty, the default instruction of the task is used, which names the tracks. */
  instruction: string;
  /** Stem that the task `extract` or `lego` produces, such as "bass"; "": none. */
  trackName: string;
  /** Stems that the task `complete` adds. */
  trackClasses: readonly string[];
}

export interface RenderRequest extends RenderParameters {
  /** Number of the slot, 1 to 3. */
  slot: number;
  task: TaskType;
  /** Input recording or its latents. The songs get the same length. The task text2music ignores the recording. */
  source: (RenderSource & { latents?: SongLatents | null }) | null;
  referenceAudio: PlanarAudio | null;
  /** Latents that replace `referenceAudio`. */
  referenceLatents?: SongLatents | null;
  /** Whether to return lyric timestamps, if the model supports them. */
  timesLyrics: boolean;
  /** Adapters for the songs; absent: none. */
  adapters?: readonly SongAdapter[] | undefined;
  songs: readonly RenderSong[];
}

/** Recording and description to convert into a training sample. */
export interface TrainingSampleRequest {
  caption: string;
  lyrics: string;
  language: string;
  metadata: Metadata;
  audio: PlanarAudio;
  /** Extra information stored in the sample file. Training does not use it. Numbers must be 32-bit integers. */
  notes: Readonly<Record<string, string | number | boolean | null>>;
}

/** Training options without model and device, which the engine sets. */
export type TrainingRequest = Omit<TrainingOptions, "model" | "modelName" | "device" | "dtype">;

export interface ScaledAdapter {
  name: string;
  /** Strength of the adapter. 1: as trained; 0: off; negative: inverted. Within ADAPTER_SCALES. */
  scale: number;
}

export interface LyricLine {
  seconds: number;
  text: string;
}

/** A rendered song. */
export interface Rendering {
  audio: PlanarAudio;
  samplesPerChannel: number;
  latents: SongLatents;
  /** Timed lyric lines; empty if not requested, instrumental or unsupported by the model. */
  lyricLines: LyricLine[];
  /** Duration of each stage in seconds: the song's share of its batch. */
  timings: RenderResult["timings"];
  model: string;
  /** Adapters of the song, sorted by name; empty: base model. */
  adapters: readonly ScaledAdapter[];
  /** Warnings about truncated prompts and codes. */
  warnings: string[];
}

export interface AdapterSource extends AdapterFiles {
  name: string;
}

export interface SongAdapter extends AdapterSource, ScaledAdapter {
  /** Hash of the adapter's files; adapters with equal digest are loaded once. */
  digest: string;
}

export interface ModelEntry {
  name: string;
  isDefault: boolean;
  isLoaded: boolean;
  isTurbo: boolean;
  /** Tasks that the model's configuration lists; null if it lists none. */
  supportedTasks: readonly string[] | null;
}

export interface SlotState {
  slot: number;
  /** Number of audio codes, which are 0 to codebookSize - 1; null before the first load of the model. */
  codebookSize: number | null;
  /** Number of values in a frame of latents; null before the first load of the model. */
  latentChannels: number | null;
  /** Model name; null before the first successful load. */
  model: string | null;
  /** Whether the model is in memory. An unloaded idle model reloads on use. */
  isLoaded: boolean;
  isTurbo: boolean;
  /** Whether the model was trained on stems. The captions of such a model have the parts Global, Local and Mask Control. */
  isLegoSft: boolean;
}

export interface EngineOptions extends BatchLimits {
  checkpointsDirectory: string;
  /** Model names or paths of slots 1 to 3; null: no such slot. */
  slotModels: [string, string | null, string | null];
  languageModel: string;
  /** Devices, one per slot; the last applies to further slots. `auto`: GPU with the most free memory, else CPU. */
  devices: readonly [string, ...string[]];
  languageModelDevice: string;
  dtype: "auto" | "float32" | "bfloat16";
  /** How the weights of the DiT, the encoders and the language model are stored. */
  quantization: Quantization;
  flashAttention: boolean;
  /** Keep text encoder, DiT and VAE on the device only during the stages that use them. */
  offload: boolean;
  /** Like `offload`, but only for the DiT. */
  offloadModel: boolean;
  /** Like `offload`, for the language model. */
  offloadLanguageModel: boolean;
  /**
   * Whether a planning batch may contain songs of several tasks. If so, a batch leaves rows free for other tasks.
   */
  sharesPlanning: boolean;
  /** Unloads a model after this idle time; 0: never, null: default of the device. */
  idleSeconds: number | null;
  /** Called when a GPU failed permanently: the process must be restarted. */
  onDeviceLost?: ((error: Error) => void) | undefined;
}

/** Lists models and devices. */
export interface ModelCatalog {
  /** Usable GPUs with their current free memory. */
  gpus(): Promise<readonly Gpu[]>;
  slots(): SlotState[];
  /** Returns the loaded models, followed by other installed models. */
  models(): ModelEntry[];
  languageModels(): { name: string; isLoaded: boolean }[];
  /** Name of the language model that was loaded last, although it may be unloaded now; null before the first load. */
  loadedLanguageModel(): string | null;
}

/** Catalog of the models on this machine. */
export interface OwnCatalog extends ModelCatalog {
  /** Whether the built-in model replaces a missing or broken default. */
  readonly usesEmbeddedModel: boolean;
  /** libtorch's version and the devices that it detects. */
  runtimeInfo(): RuntimeInfo;
  /** Fingerprint of a model's files, equal on machines with the same model. */
  fingerprint(model: string): Promise<string>;
}

/** Loads models before they are needed. */
export interface ModelLoader {
  /** Loads `model` (null: the slot's current model) into the slot. Until it is ready, the old model serves requests. */
  loadSlot(slot: number, model: string | null, call?: CallOptions): Promise<SlotState>;
  /** Loads a language model and makes it the default. If `name` is null, loads the current default. */
  loadLanguageModel(name: string | null, call?: CallOptions): Promise<string>;
}

/** Writes texts with a language model. */
export interface SheetWriter {
  /** Loads a language model, or the default if `name` is null. Does not change the default. */
  prepareLanguageModel(name: string | null, call?: CallOptions): Promise<LanguageModelInfo>;
  /** Rejects with PROMPT_TOO_LONG if the text does not fit. Reads the tokenizer but not the weights. */
  checkTextLength(request: TextLengthRequest): Promise<void>;
  createSample(request: SampleRequest, call: CallOptions): Promise<SongSheet>;
  formatInput(request: FormatRequest, call: CallOptions): Promise<SongSheet>;
}

/** Plans and judges songs with a language model. Calls with equal sampling options run together. */
export interface SongPlanner extends SheetWriter {
  /**
   * Plans several songs. Songs with equal sampling options share batches, which are as large as `batchMax` and memory
   * allow. On the CPU the plan of a song does not depend on its batch.
   */
  planSongs(requests: readonly PlanRequest[], call: CallOptions): Promise<Plan[]>;
  understand(request: UnderstandRequest, call: CallOptions): Promise<SongSheet>;
  score(request: ScoreRequest, call: CallOptions): Promise<SongScores | null>;
}

/** Renders songs and encodes recordings with the model of a slot. Calls run one at a time; further ones wait. */
export interface SongRenderer {
  /**
   * Renders the songs of a request, and yields them in order. Songs of equal length share batches of at most
   * `batchMax` songs; by default, of all songs on a GPU and of one song on the CPU, where batches are no faster. A batch
   * starts when the caller asks for its first song. On the CPU a song does not depend on its batch.
   * @param callForBatch returns the options of a batch; called before each batch with the index of its first song and
   * the number of its songs. If memory runs out and a batch is retried, `onEvent` receives its songs again from the
   * beginning.
   */
  render(
    request: RenderRequest,
    callForBatch: (first: number, count: number) => RenderCall,
  ): AsyncGenerator<Rendering>;
  /** Audio codes of a recording or its latents, five a second, from the model of the slot. */
  encodeCodes(slot: number, recording: PlanarAudio | SongLatents, call: CallOptions): Promise<Int32Array>;
  /** Latents of a recording at its own level, from the VAE of the slot's model. */
  encodeLatents(slot: number, audio: PlanarAudio, call: CallOptions): Promise<SongLatents>;
  /** Audio of latents at the level of the decoder. */
  decodeLatents(slot: number, latents: SongLatents, call: CallOptions): Promise<PlanarAudio>;
  /** Writes a training sample to `path`, with the model of slot 1. */
  prepareSample(request: TrainingSampleRequest, path: string, call: CallOptions): Promise<void>;
  /** Validates an adapter against the model of slot 1, and keeps it in memory for the next song. */
  inspectAdapter(adapter: SongAdapter, call?: CallOptions): Promise<AdapterInfo>;
}

/** Trains adapters for the model of slot 1, in parallel with rendering. */
export interface Trainer {
  /** @throws NativeError BAD_CHECKPOINT that names the first invalid sample, before the event `started` */
  train(request: TrainingRequest, call?: TrainingCall): Promise<TrainingResult>;
}

/** The engine, by what it does. All methods reject with NativeError or EngineError, both with a `code`. */
export interface MusicEngine {
  readonly catalog: OwnCatalog;
  readonly loader: ModelLoader;
  readonly planner: SongPlanner;
  readonly renderer: SongRenderer;
  readonly trainer: Trainer;
  /** Stops training and waits for running calls; later calls reject with CLOSED. */
  close(): Promise<void>;
}
