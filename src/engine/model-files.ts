/** Detects the models in a weight file: one (ComfyUI's split files) or several (all-in-one files). */
import { existsSync, statSync } from "node:fs";
import { basename, join } from "node:path";
import { isObject } from "../parameters.js";
import { MAX_TEXT_BYTES, readTextFileSync, UnusableFileError } from "../system/regular-file.js";
import type { ModelSource } from "./addon.js";
import { ditConfig, type ModelConfig, qwen3Config, type TensorShapes, vaeConfig } from "./derived-config.js";
import { EngineError } from "./errors.js";
import { ggufArchitecture, readWeightFile, type WeightFile } from "./weight-file.js";

export type ModelPart = "transformer" | "vae" | "text_encoder" | "language_model";

export const WEIGHTS_EXTENSION = ".safetensors";

const ADVICE =
  "Supported: an ACE-Step 1.5 model: its folder as published, or a .safetensors file of ComfyUI, " +
  "in float32, float16 or bfloat16";

/** Vocabulary size of the 0.6B embedding model. Larger vocabularies include audio codes. */
const TEXT_VOCABULARY = 151_669;
const CODES_VOCABULARY = TEXT_VOCABULARY + 64_000;
/** Samples per latent frame of the supported autoencoder. Other Oobleck autoencoders have other numbers. */
const SAMPLES_PER_FRAME = 1920;

const DIT = /^((?:model\.)?(?:diffusion_model\.)?)decoder\.layers\.0\.cross_attn\.q_proj\.weight$/;
const VAE = /^((?:vae\.|first_stage_model\.)?)decoder\.(?:layers\.1\.layers\.0|block\.0\.snake1)\.alpha$/;
const QWEN3 = /^((?:text_encoders\.\w+\.transformer\.)?)(?:model\.)?layers\.0\.self_attn\.q_norm\.weight$/;

/** Tensor names that identify unsupported models, so that errors say what a file is. The first match counts. */
const OTHERS: readonly [pattern: RegExp, what: string][] = [
  [/\.(?:lora_|lokr_|hada_|ia3_l)/, "an adapter, which POST /v1/lora/load takes"],
  [/genre_embedder|speaker_embedder|lyric_encoder\.encoders\./, "ACE-Step 1 (3.5B)"],
  [/(?:double|single)_blocks\.|single_transformer_blocks\./, "FLUX, HunyuanVideo or a model of their kind"],
  [/joint_blocks\./, "Stable Diffusion 3"],
  [/input_blocks\.|down_blocks\./, "Stable Diffusion or a model of its kind"],
  [/blocks\.0\.cross_attn\./, "Wan or a video model of its kind"],
  [/transformer_blocks\.|adaLN_modulation/, "a diffusion transformer of another make"],
  [/decoder\.(?:conv_in|up_blocks|mid)/, "an autoencoder of images or video"],
  [/encoder\.block\.0\.layer|text_model\.encoder\.layers/, "a text encoder of image models"],
  [/layers\.0\.self_attn\.q_proj/, "a language model of another make"],
];

interface FoundPart {
  part: ModelPart;
  prefix: string;
}

export type ModelFile = Partial<Record<ModelPart, ModelSource>>;

interface Reading {
  modified: number;
  size: number;
  models: ModelFile;
  fault: EngineError | null;
}

const MAX_READINGS = 1000;

/** Cache of file headers. Without it, each list of models would read all files. */
const readings = new Map<string, Reading>();

/** @throws EngineError UNSUPPORTED_MODEL saying what the file contains and what is supported */
export function readModelFile(path: string): ModelFile {
  const { mtimeMs: modified, size } = statSync(path);
  let reading = readings.get(path);
  if (reading?.modified !== modified || reading.size !== size) {
    reading = { modified, size, models: {}, fault: null };
    try {
      reading.models = inspect(path);
    } catch (error) {
      if (!(error instanceof EngineError)) throw error;
      reading.fault = error;
    }
    if (readings.size >= MAX_READINGS) readings.clear();
    readings.set(path, reading);
  }
  if (reading.fault !== null) throw reading.fault;
  return reading.models;
}

/** Like `readModelFile`, but returns {} for an unsupported file. */
export function modelsIn(path: string): ModelFile {
  try {
    return path.endsWith(WEIGHTS_EXTENSION) ? readModelFile(path) : {};
  } catch {
    return {};
  }
}

/** Finds one part of a model in a file. @throws EngineError UNSUPPORTED_MODEL if the file does not contain it */
export function partOfFile(path: string, part: ModelPart): ModelSource {
  const models = readModelFile(path);
  const source = models[part];
  if (source !== undefined) return source;
  const found = Object.keys(models).map((each) => PART_NAMES[each as ModelPart]);
  throw unsupported(
    path,
    `has ${found.join(" and ")} of an ACE-Step 1.5 model, but no ${PART_NAMES[part].slice(4)}`,
  );
}

const PART_NAMES: Readonly<Record<ModelPart, string>> = {
  transformer: "the diffusion transformer",
  vae: "the VAE",
  text_encoder: "the text encoder",
  language_model: "the language model",
};

/** A model's config.json; empty if missing or damaged. */
export function configOf({ path, config }: ModelSource): ModelConfig {
  if (config !== null) return JSON.parse(config) as ModelConfig;
  for (const folder of [path, join(path, "transformer")]) {
    const file = join(folder, "config.json");
    if (!existsSync(file)) continue;
    try {
      const content: unknown = JSON.parse(readTextFileSync(file, MAX_TEXT_BYTES));
      return isObject(content) ? content : {};
    } catch {
      return {};
    }
  }
  return {};
}

function inspect(path: string): ModelFile {
  if (!path.endsWith(WEIGHTS_EXTENSION)) throw unsupported(path, otherFormat(path));
  const file = attempt(path, "cannot be read", () => readWeightFile(path));
  const names = [...file.shapes.keys()];
  const found = partsIn(names);
  const quantized = found.length === 0 ? null : quantizationOf(file);
  if (quantized !== null) throw unsupported(path, `has ${quantized}, which are not supported`);
  const configs = metadataConfigs(path, file);
  const models: ModelFile = {};
  for (const { part, prefix } of found) {
    const shapes = shapesBelow(file, prefix);
    const derive = () => configFor(part, shapes, basename(path, WEIGHTS_EXTENSION));
    const known = configs.find((each) => each.part === part && fitsShapes(each.config, shapes));
    const config = known?.config ?? attempt(path, `has ${PART_NAMES[part]} of an unknown model`, derive);
    const kind = known?.kind ?? kindOf(part, config);
    if (kind !== null) models[kind] ??= { path, prefix, config: JSON.stringify(config) };
  }
  if (Object.keys(models).length > 0) return models;
  throw unsupported(path, `contains ${recognize(names, found)}`);
}

/** Detects parts by tensor names. The config decides whether a Qwen3 model is text encoder or language model. */
function partsIn(names: readonly string[]): FoundPart[] {
  const kinds: [RegExp, ModelPart][] = [
    [DIT, "transformer"],
    [VAE, "vae"],
    [QWEN3, "text_encoder"],
  ];
  return names.flatMap((name) =>
    kinds.flatMap(([pattern, part]) => {
      const match = pattern.exec(name);
      return match === null ? [] : { part, prefix: match[1] ?? "" };
    }),
  );
}

/** Kind of a model; null for an unknown Qwen3 model or autoencoder. */
function kindOf(part: ModelPart, config: ModelConfig): ModelPart | null {
  if (part === "transformer") return part;
  if (part === "vae") return isOwnVae(config) ? part : null;
  if (config.vocab_size === TEXT_VOCABULARY) return "text_encoder";
  return Number(config.vocab_size) >= CODES_VOCABULARY ? "language_model" : null;
}

function isOwnVae({ downsampling_ratios: ratios }: ModelConfig): boolean {
  return Array.isArray(ratios) && ratios.reduce((product, ratio) => product * ratio, 1) === SAMPLES_PER_FRAME;
}

function configFor(part: ModelPart, shapes: TensorShapes, name: string): ModelConfig {
  if (part === "transformer") return ditConfig(shapes, name);
  return part === "vae" ? vaeConfig(shapes) : qwen3Config(shapes);
}

function shapesBelow({ shapes }: WeightFile, prefix: string): TensorShapes {
  // In some files of language models the tensor names do not begin with `model.`.
  const own = new Map(
    [...shapes].flatMap(([name, shape]) =>
      name.startsWith(prefix) ? [[name.slice(prefix.length).replace(/^model\./, ""), shape] as const] : [],
    ),
  );
  const shape = (name: string) => {
    const found = own.get(name);
    if (found === undefined) throw new Error(`there is no tensor '${name}'`);
    return found;
  };
  return { names: [...own.keys()], shape };
}

interface KnownConfig {
  /** Part that `partsIn` detects from tensor names. It is "text_encoder" for a language model, too. */
  part: ModelPart;
  kind: ModelPart;
  config: ModelConfig;
}

/** Configs of the parts from the file's metadata. They override configs derived from tensor shapes. */
function metadataConfigs(path: string, { metadata }: WeightFile): KnownConfig[] {
  const { config } = metadata;
  if (config === undefined) return [];
  const parsed: unknown = attempt(path, "has a damaged config in its metadata", () => JSON.parse(config));
  if (!isObject(parsed)) return [];
  return (Object.keys(PART_NAMES) as ModelPart[]).flatMap((kind) => {
    const own = parsed[kind];
    return isObject(own)
      ? { part: kind === "language_model" ? "text_encoder" : kind, kind, config: own }
      : [];
  });
}

/** Whether a config fits these tensors, which distinguishes two Qwen3 models in one file. */
function fitsShapes({ vocab_size: size }: ModelConfig, { names, shape }: TensorShapes): boolean {
  const table = "embed_tokens.weight";
  return size === undefined || !names.includes(table) || shape(table)[0] === size;
}

function quantizationOf({ shapes, types }: WeightFile): string | null {
  const type = [...types].find((each) => /^F(?:8|6|4)_/.test(each));
  const isScaled = [...shapes.keys()].some((name) =>
    /\.(?:weight_scale|comfy_quant|scale_weight)$/.test(name),
  );
  if (type !== undefined) return `${isScaled ? "scaled " : ""}fp${type[1]} weights (${type})`;
  return isScaled ? "quantized weights of ComfyUI" : null;
}

function recognize(names: readonly string[], found: readonly FoundPart[]): string {
  if (found.some(({ part }) => part === "vae")) return "the autoencoder of another audio model";
  const other = OTHERS.find(([pattern]) => names.some((name) => pattern.test(name)));
  if (other !== undefined) return other[1];
  return names.length === 0 ? "no tensors" : `no known model (its first tensor is '${names[0]}')`;
}

function otherFormat(path: string): string {
  if (!path.endsWith(".gguf")) return "is not a .safetensors file";
  const architecture = attempt(path, "cannot be read", () => ggufArchitecture(path));
  const isOwn = architecture?.startsWith("acestep") === true;
  const place = isOwn
    ? "; put it into a folder beside the config.json of its model, and name the folder"
    : "";
  return `is a GGUF file of the architecture ${architecture ?? "(none named)"}${place}`;
}

function attempt<T>(path: string, what: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (error instanceof UnusableFileError) throw unsupported(path, error.fault, error);
    const reason = error instanceof Error ? error.message : String(error);
    throw unsupported(path, `${what}: ${reason}`, error);
  }
}

function unsupported(path: string, what: string, cause?: unknown): EngineError {
  return new EngineError("UNSUPPORTED_MODEL", `${path} ${what}`, { advice: `${ADVICE}.`, cause });
}
