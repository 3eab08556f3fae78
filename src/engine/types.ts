/**
 * What the engine offers the services: songs in musical terms, no HTTP and no tensors.
 * The music service plans and renders through `Engine` and knows nothing below it.
 */
import type {
  AdapterFiles,
  AdapterInfo,
  CallOptions,
  Quantization,
  RenderCall,
  RenderResult,
  RenderSource,
  RuntimeInfo,
  SampleInfo,
  TaskType,
  TrainingCall,
  TrainingOptions,
  TrainingResult,
} from "./addon.js";
import type { Gpu } from "./gpus.js";
import type { RenderParameters } from "./render-parameters.js";

/** Musical facts of a song. Null or "" where unknown. */
export interface Metadata {
  bpm: number | null;
  /** For example "F# minor". */
  keyScale: string;
  /** "2", "3", "4" or "6" for 2/4, 3/4, 4/4 and 6/8. */
  timeSignature: string;
  durationSeconds: number | null;
}

/** A song described in full: what the language model writes for a query, or makes of a caption and lyrics. */
export interface SongSheet extends Metadata {
  caption: string;
  lyrics: string;
  /** A language code such as "en", or "unknown". */
  language: string;
  /** What a reader should know: what the model could not do, or wrote in vain. */
  warnings: string[];
}

export interface SamplingOptions {
  temperature: number;
  /** 0: off */
  topK: number;
  /** 1: off */
  topP: number;
  repetitionPenalty: number;
  /** False: the model writes freely and the result is parsed for what it holds. */
  constrained: boolean;
  /** True: the engine's log is told which fields were forced and what the model then wrote. */
  debug?: boolean;
}

/** What every request of the language model may say. */
export interface LanguageRequest {
  /** The model that does it; absent or null: the default one. */
  languageModel?: string | null;
}

/** Expand a free-text wish into a song sheet. */
export interface SampleRequest extends LanguageRequest {
  /** "" stands for no wish at all. */
  query: string;
  instrumental: boolean;
  /** Null: the model decides. */
  language: string | null;
  /** Values the client set; the model is held to them. */
  metadata: Metadata;
  sampling: SamplingOptions;
  seed: number;
}

/** Rewrite a caption and lyrics. */
export interface FormatRequest extends LanguageRequest {
  caption: string;
  lyrics: string;
  language: string | null;
  metadata: Metadata;
  sampling: SamplingOptions;
  seed: number;
}

/** Describe a recording by its audio codes. */
export interface UnderstandRequest extends LanguageRequest {
  audioCodes: Int32Array;
  /** What is known of it; the model is held to it. */
  metadata: Metadata;
  sampling: SamplingOptions;
  seed: number;
}

/** Plan a song: fill metadata and, if asked, write audio codes. */
export interface PlanRequest extends LanguageRequest {
  caption: string;
  lyrics: string;
  /** What the client set. It always wins; the model is held to it. */
  metadata: Metadata;
  /** Run phase 1 at all. */
  fillMetadata: boolean;
  rewriteCaption: boolean;
  detectLanguage: boolean;
  writeCodes: boolean;
  /** Guidance of the codes phase; above 1 it is on. */
  cfgScale: number;
  negativePrompt: string;
  sampling: SamplingOptions;
  /** One per batch item. */
  seeds: number[];
}

export interface Plan {
  /** The client's values, completed by the model's. */
  metadata: Metadata;
  /** The model's caption, or null where none was asked for or written. */
  caption: string | null;
  language: string | null;
  /** Per batch item, or null where none were asked for. */
  audioCodes: Int32Array[] | null;
  /** What a reader should know. */
  warnings: string[];
  seconds: { metadata: number; codes: number };
}

/** A language model that is ready. */
export interface LanguageModelInfo {
  name: string;
  /** False: it plans metadata and codes, and must not be asked for words. */
  writesText: boolean;
}

/** Words for the language model, by the names of their fields, and what it is to write. */
export interface WordsRequest extends LanguageRequest {
  fields: Readonly<Record<string, string>>;
  /** Seconds of the song whose audio codes it is to write, 0 where nobody has set them; null for none. */
  codesSeconds: number | null;
}

/** Hertz: what the core renders at, and what recordings are decoded to. */
export const SAMPLE_RATE = 48_000;
/** Audio codes that the 5Hz language model writes for a second of music. */
export const CODES_PER_SECOND = 5;

/** Planar stereo at SAMPLE_RATE, within -1 .. 1: all of the left channel, then all of the right. */
export type PlanarAudio = Float32Array;

/** A song to render; how it is rendered stands in the groups of RenderParameters. */
export interface RenderRequest extends RenderParameters {
  /** Slot 1 to 3. */
  slot: number;
  task: TaskType;
  /** "": derived from the task and its tracks. */
  instruction: string;
  /** extract and lego: the stem, such as "bass"; "" for none. */
  trackName: string;
  /** complete: the stems to add. */
  trackClasses: string[];
  /** Caption of the whole song, for models that are trained on stems; "" for none. */
  globalCaption: string;
  caption: string;
  lyrics: string;
  language: string;
  /** Whether to tell when they are sung, where the model can. */
  timesLyrics: boolean;
  /** The duration is the song's length where neither codes nor a source set it. */
  metadata: Metadata & { durationSeconds: number };
  audioCodes: Int32Array[] | null;
  /** What the task works on; it sets the length. Ignored by text2music. */
  source: RenderSource | null;
  /** Whose timbre to take. */
  referenceAudio: PlanarAudio | null;
  /** One per batch item. */
  seeds: number[];
  /** The adapter that this song is rendered under; null: none; absent: the one that acts. */
  adapter?: SongAdapter | null | undefined;
}

/** A piece of music and its description, to be turned into the tensors that adapter training reads. */
export interface TrainingSampleRequest {
  caption: string;
  lyrics: string;
  language: string;
  metadata: Metadata;
  audio: PlanarAudio;
  /** Kept in the file for readers: texts, integers of 32 bits, booleans and nulls. */
  notes: Readonly<Record<string, string | number | boolean | null>>;
}

/** A training run; the model and where it computes are the engine's. */
export type TrainingRequest = Omit<TrainingOptions, "modelDirectory" | "modelName" | "device" | "dtype">;

/** The adapter that a song was rendered under. */
export interface ActingAdapter {
  name: string;
  /** 0 .. 1 */
  scale: number;
}

/** A line of lyrics, and when it is sung. */
export interface LyricLine {
  seconds: number;
  text: string;
}

export interface Rendering extends Omit<RenderResult, "lyricSeconds"> {
  /** Per item; empty where they were not asked for, nothing is sung or the model cannot tell. */
  lyricLines: LyricLine[][];
  /** Name of the DiT. */
  model: string;
  /** Null: the base model alone. */
  adapter: ActingAdapter | null;
  /** What of the words was not used. */
  warnings: string[];
}

export interface LoadedAdapter extends AdapterInfo, ActingAdapter {}

/** An adapter to load: its files, and the name it gets. */
export interface AdapterSource extends AdapterFiles {
  name: string;
}

/** An adapter that comes with a song: it acts for that alone. */
export interface SongAdapter extends AdapterSource, ActingAdapter {
  /** Hash of its files: those of one digest are read once. */
  digest: string;
}

/** The adapters of slot 1. At most one acts. */
export interface AdapterState<T extends LoadedAdapter = LoadedAdapter> {
  /** In the order of loading. */
  adapters: readonly T[];
  active: string | null;
  /** False: the active adapter rests. */
  enabled: boolean;
}

export interface ModelEntry {
  name: string;
  isDefault: boolean;
  isLoaded: boolean;
  isTurbo: boolean;
  /** What its configuration says it is made for, or null. */
  supportedTasks: readonly string[] | null;
}

export interface SlotState {
  slot: number;
  /** The loaded model's name, or null before a load and after a failed first one. */
  model: string | null;
  /** False also for a model that nobody used for long: it rests until its next use. */
  isLoaded: boolean;
  isTurbo: boolean;
}

export interface EngineOptions {
  /** Directory of checkpoints, one model a folder. */
  checkpointsDirectory: string;
  /** Model names or paths of slots 1 to 3; null: the slot does not exist. */
  slotModels: [string, string | null, string | null];
  languageModel: string;
  /** One for each slot; the last serves the others too. `auto`: the freest GPU, else the CPU. */
  devices: readonly [string, ...string[]];
  languageModelDevice: string;
  dtype: "auto" | "float32" | "bfloat16";
  /** How the DiT with its encoders and the language model keep their weights. */
  quantization: Quantization;
  flashAttention: boolean;
  /** Hold text encoder, DiT and VAE on the device only while a stage of a job uses them. */
  offload: boolean;
  /** The same for the DiT alone. */
  offloadModel: boolean;
  /** The same for the language model. */
  offloadLanguageModel: boolean;
  /** A model that nobody used for so long leaves memory until it is next used; 0: never, null: by its device. */
  idleSeconds: number | null;
  /** Told once a GPU has failed for good: only a new process computes again. */
  onDeviceLost?: ((error: Error) => void) | undefined;
}

/**
 * Models and what they do. Every method rejects with a NativeError or an EngineError, both with a `code`.
 * One render and one language call run at a time; further calls wait their turn.
 */
export interface MusicEngine {
  /** True where the embedded model stands in for an absent default checkpoint. */
  readonly usesEmbeddedModel: boolean;
  /** The machine's devices, as the addon sees them. */
  runtimeInfo(): RuntimeInfo;
  /** The GPUs that it may compute on, and what of their memory is free just now. */
  gpus(): Promise<readonly Gpu[]>;
  slots(): SlotState[];
  /** Loaded slots first, then what the checkpoint directory holds. */
  models(): ModelEntry[];
  /** Hash of the files of a model: equal on machines that make the same songs by it. */
  fingerprint(model: string): Promise<string>;
  languageModels(): { name: string; isLoaded: boolean }[];
  /** Name of the language model, also where it left memory until it is next used; null where none was loaded. */
  loadedLanguageModel(): string | null;
  /** Loads `model` (null: the slot's own) into the slot; the old model stays until the new one is ready. */
  loadSlot(slot: number, model: string | null, call?: CallOptions): Promise<SlotState>;
  /** Loads a language model and makes it the default one; null: the default one as it is. */
  loadLanguageModel(name: string | null, call?: CallOptions): Promise<string>;
  /** Loads a language model (null: the default one) for requests that name it; the default stays. */
  prepareLanguageModel(name: string | null, call?: CallOptions): Promise<LanguageModelInfo>;
  /** Rejects with PROMPT_TOO_LONG where the words do not fit; reads the model's tokenizer, not its weights. */
  checkWords(request: WordsRequest): Promise<void>;
  createSample(request: SampleRequest, call: CallOptions): Promise<SongSheet>;
  formatInput(request: FormatRequest, call: CallOptions): Promise<SongSheet>;
  plan(request: PlanRequest, call: CallOptions): Promise<Plan>;
  understand(request: UnderstandRequest, call: CallOptions): Promise<SongSheet>;
  /** Its `onEvent` hears a song from the beginning again where memory ran out and it is made once more. */
  render(request: RenderRequest, call: RenderCall): Promise<Rendering>;
  /** Audio codes of a recording, five a second, by the model of the slot. */
  encodeCodes(slot: number, audio: PlanarAudio, call: CallOptions): Promise<Int32Array>;
  /** Writes the tensors of one sample to `path`, by the model of slot 1. */
  prepareSample(request: TrainingSampleRequest, path: string, call: CallOptions): Promise<void>;
  adapters(): Promise<AdapterState>;
  /**
   * Reads an adapter for slot 1 and makes it the active one, at full scale. Songs that were asked for before are
   * finished first. Loading a model into the slot lets all adapters go.
   */
  loadAdapter(source: AdapterSource, call?: CallOptions): Promise<AdapterState>;
  /** Lets all adapters go; the base weights are then as loaded, bit for bit. */
  unloadAdapters(call?: CallOptions): Promise<AdapterState>;
  enableAdapter(enabled: boolean, call?: CallOptions): Promise<AdapterState>;
  /** `name` null: the active one. `scale` is from 0, the base model, to 1. */
  scaleAdapter(name: string | null, scale: number, call?: CallOptions): Promise<AdapterState>;
  /** What an adapter is that comes with songs, by the model of slot 1. Nothing changes. */
  inspectAdapter(adapter: SongAdapter, call?: CallOptions): Promise<AdapterInfo>;
  /** Checks sample files against the model of slot 1. */
  inspectSamples(samples: string[], call?: CallOptions): Promise<SampleInfo[]>;
  /** Trains an adapter for the model of slot 1, while songs are made. */
  train(request: TrainingRequest, call: TrainingCall): Promise<TrainingResult>;
  close(): Promise<void>;
}
