/** Finds checkpoints and their parts by name: published folders and ComfyUI's weight files. */
import { createHash } from "node:crypto";
import { existsSync, readdirSync, type Stats, statSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { OWNER_SEPARATOR } from "../models/folder-names.js";
import { openRegular } from "../system/regular-file.js";
import type { ModelSource } from "./addon.js";
import { EngineError } from "./errors.js";
import { configOf, type ModelPart, modelsIn, partOfFile, WEIGHTS_EXTENSION } from "./model-files.js";
import { hasTokenizerFiles } from "./tokenizer-files.js";

/** Default models. If a default is not installed, the built-in model replaces it. */
export const DEFAULT_MODEL = "acestep-v15-turbo";
export const DEFAULT_LANGUAGE_MODEL = "acestep-5Hz-lm-0.6B";

export const EMBEDDED_MODEL = "carillon-nano";
/** Name of the language model inside another model's folder or file. */
const LANGUAGE_MODEL_PART = "lm";
export const EMBEDDED_LANGUAGE_MODEL = `${EMBEDDED_MODEL}/${LANGUAGE_MODEL_PART}`;
const LANGUAGE_MODEL_PREFIX = "acestep-5Hz-lm-";
const TEXT_ENCODER = "Qwen3-Embedding-0.6B";
const MODELS_IN_PACKAGE = fileURLToPath(new URL("../../models", import.meta.url));

/** Folders in which ComfyUI keeps the weight files of each model part. */
const FILE_FOLDERS: Readonly<Record<ModelPart, readonly string[]>> = {
  transformer: ["", "checkpoints", "diffusion_models", "unet"],
  vae: ["vae"],
  text_encoder: ["text_encoders", "clip"],
  language_model: ["", "checkpoints", "text_encoders", "clip"],
};

/** Folders that contain weight files; they are not models. */
const HOLDS_FILES: ReadonlySet<string> = new Set(Object.values(FILE_FOLDERS).flat());

export interface Checkpoint {
  name: string;
  model: ModelSource;
  tokenizerDirectory: string;
}

/** A DiT with the VAE, text encoder and tokenizer that it needs. */
export interface RendererCheckpoint extends Checkpoint {
  vae: ModelSource;
  textEncoder: ModelSource;
}

interface Located {
  name: string;
  path: string;
}

export class Checkpoints {
  readonly #root: string;
  /** Models outside the checkpoint directory, by name. */
  readonly #outsideRoot = new Map<string, string>();
  /** Installed default models that failed to load. */
  readonly #broken = new Set<string>();

  /**
   * @param directory contains one folder or file for each model; need not exist
   * @param configured names or paths of the models in the settings
   */
  constructor(directory: string, configured: readonly string[] = []) {
    this.#root = resolve(directory);
    for (const name of configured) {
      if (this.#inRoot(name) === undefined && exists(name))
        this.#outsideRoot.set(this.#nameOf(name), resolve(name));
    }
  }

  /** Resolves a configured name; the built-in model replaces a default that is not installed. */
  configured(name: string): string {
    if (!this.usesEmbedded(name))
      return this.#inRoot(name) !== undefined || !exists(name) ? name : this.#nameOf(name);
    return name === DEFAULT_MODEL ? EMBEDDED_MODEL : EMBEDDED_LANGUAGE_MODEL;
  }

  /**
   * Finds a DiT and its parts.
   * @throws EngineError MODEL_NOT_FOUND listing every path searched, UNSUPPORTED_MODEL for a file that contains
   * something else
   */
  renderer(name: string): RendererCheckpoint {
    const located = this.#resolve(name, EMBEDDED_MODEL);
    const model = sourceAt(located.path, "transformer");
    const { audio_acoustic_hidden_dim: channels, text_hidden_dim: width } = configOf(model);
    const textEncoder = this.#part(located, "text_encoder", ["text_encoder", TEXT_ENCODER], {
      hidden_size: width,
    });
    const vae = this.#part(located, "vae", ["vae", "vae"], { decoder_input_channels: channels });
    const tokenizerDirectory = this.#tokenizer(located, textEncoder, [TEXT_ENCODER]);
    return { name: located.name, model, vae, textEncoder, tokenizerDirectory };
  }

  /** @throws EngineError MODEL_NOT_FOUND or UNSUPPORTED_MODEL, as `renderer` does */
  languageModel(name: string): Checkpoint {
    const file = this.#fileOfLanguageModel(name);
    const located = file ?? this.#resolve(name, EMBEDDED_LANGUAGE_MODEL);
    const model = sourceAt(located.path, "language_model");
    const siblings = this.#roots(located.path).flatMap((root) =>
      entriesOf(root).filter((entry) => entry.startsWith(LANGUAGE_MODEL_PREFIX)),
    );
    const tokenizerDirectory =
      model.config === null ? model.path : this.#tokenizer(located, model, siblings, LANGUAGE_MODEL_PART);
    return { name: located.name, model, tokenizerDirectory };
  }

  /** Whether `name` is a default model that is missing or incomplete, or that could not be loaded. */
  usesEmbedded(name: string): boolean {
    if (!isDefault(name)) return false;
    return (
      this.#broken.has(name) || !this.isInstalled(name) || (name === DEFAULT_MODEL && !this.#isComplete(name))
    );
  }

  /** Whether the checkpoint directory has the model, although it may be incomplete. */
  isInstalled(name: string): boolean {
    return this.#inRoot(name) !== undefined;
  }

  /** Replaces a broken default with the built-in model. @returns false if `name` is no default or already replaced */
  replaceBroken(name: string): boolean {
    if (!isDefault(name) || this.usesEmbedded(name)) return false;
    this.#broken.add(name);
    return true;
  }

  #isComplete(name: string): boolean {
    try {
      this.renderer(name);
      return true;
    } catch {
      return false;
    }
  }

  /** Installed DiTs, the built-in one last. */
  rendererNames(): string[] {
    const outside = [...this.#outsideRoot].flatMap(([name, path]) => (isRenderer(path) ? name : []));
    const inRoot = this.#folders().filter((name) => isRenderer(join(this.#root, name)));
    const inFiles = this.#filesOf("transformer").map(stemOf);
    return [...new Set([...outside, ...inRoot, ...inFiles]), ...this.#embedded("")];
  }

  /** Installed language models, the built-in one last. */
  languageModelNames(): string[] {
    const outside = [...this.#outsideRoot].flatMap(([name, path]) => languageModelNames(name, path));
    const inRoot = this.#folders().filter((name) => ownName(name).startsWith(LANGUAGE_MODEL_PREFIX));
    const inFiles = this.#filesOf("language_model").flatMap((path) => languageModelNames(stemOf(path), path));
    const embedded = this.#embedded(LANGUAGE_MODEL_PART).map(() => EMBEDDED_LANGUAGE_MODEL);
    return [...new Set([...outside, ...inRoot, ...inFiles]), ...embedded];
  }

  /** @param name one of `rendererNames()` */
  isTurbo(name: string): boolean {
    return this.#configOf(name).is_turbo === true;
  }

  /** Tasks that the model's config.json lists as supported; null without such a list. */
  supportedTasks(name: string, model?: ModelSource): readonly string[] | null {
    const { supported_tasks: tasks } = model === undefined ? this.#configOf(name) : configOf(model);
    return Array.isArray(tasks) ? tasks.map(String) : null;
  }

  #configOf(name: string) {
    return configOf(sourceAt(this.#resolve(name, EMBEDDED_MODEL).path, "transformer"));
  }

  #resolve(name: string, embeddedName: string): Located {
    if (name === embeddedName) return { name, path: this.#embeddedDirectory(name) };
    const inRoot = this.#inRoot(name);
    if (inRoot !== undefined) return { name: isFile(inRoot) ? stemOf(inRoot) : name, path: inRoot };
    const known = this.#outsideRoot.get(name);
    const places = [join(this.#root, name), ...(known === undefined ? [] : [known]), resolve(name)];
    const path = firstExisting(`The model ${name}`, places);
    const ownName = known === path ? name : this.#nameOf(path);
    this.#outsideRoot.set(ownName, path);
    return { name: ownName, path };
  }

  /**
   * Finds the weight file of a language model; null if the model is not in a weight file.
   * @param name name or path, with `/lm` appended if the file also contains a DiT
   */
  #fileOfLanguageModel(name: string): Located | null {
    const owner = name.endsWith(`/${LANGUAGE_MODEL_PART}`) ? dirname(name) : name;
    if (owner === EMBEDDED_MODEL) return null;
    const path =
      this.#inRoot(owner) ?? this.#outsideRoot.get(owner) ?? (exists(owner) ? resolve(owner) : undefined);
    if (path === undefined || !isFile(path)) return null;
    const own = this.#nameOf(path);
    return { name: languageModelNames(own, path)[0] ?? own, path };
  }

  /**
   * Finds a part of the DiT at `path`. Searches in this order:
   * 1. the DiT's own file
   * 2. the folder `inside` in the DiT's folder
   * 3. the folder `beside` in each root folder
   * 4. ComfyUI's folders in each root folder, for a file with these config `values`
   */
  #part(
    { name, path }: Located,
    part: ModelPart,
    [inside, beside]: readonly [string, string],
    values: Readonly<Record<string, unknown>>,
  ): ModelSource {
    const own = isFile(path) ? modelsIn(path)[part] : undefined;
    if (own !== undefined) return own;
    const folders = [
      ...(isFile(path) ? [] : [join(path, inside)]),
      ...this.#roots(path).map((root) => join(root, beside)),
    ];
    const folder = folders.find((each) => isDirectory(each) && sourceInFolder(each, part) !== undefined);
    if (folder !== undefined) return sourceInFolder(folder, part) as ModelSource;
    const places = this.#roots(path).flatMap((root) => FILE_FOLDERS[part].map((each) => join(root, each)));
    const files = places.flatMap((place) => filesIn(place).flatMap((file) => modelsIn(file)[part] ?? []));
    const fits = files.find((source) => {
      const config = configOf(source);
      return Object.entries(values).every(([key, value]) => value === undefined || config[key] === value);
    });
    if (fits !== undefined) return fits;
    throw notFound(
      `The ${part.replace("_", " ")} of ${name}`,
      [...folders, ...places.map((place) => join(place, `*${WEIGHTS_EXTENSION}`))],
      "",
    );
  }

  /**
   * Finds the tokenizer folder of a model part. Weight files contain no tokenizer, so this method also searches
   * folders near a weight file.
   * @param source the model at `path`, or a part of that model
   */
  #tokenizer({ name, path }: Located, source: ModelSource, siblings: readonly string[], part = ""): string {
    const inModel = join(path, "tokenizer");
    if (hasTokenizerFiles(inModel)) return inModel;
    if (source.config === null) return source.path;
    const beside = [source.path, path].filter(isFile).map((file) => file.slice(0, -WEIGHTS_EXTENSION.length));
    const places = [
      ...beside.map((folder) => join(folder, part)),
      ...this.#roots(source.path, path).flatMap((root) => siblings.map((sibling) => join(root, sibling))),
    ];
    const found = places.find(hasTokenizerFiles);
    if (found !== undefined) return found;
    const published = part === "" ? TEXT_ENCODER : `${LANGUAGE_MODEL_PREFIX}*`;
    throw notFound(
      `The tokenizer of ${name}`,
      [...places, ...(siblings.length === 0 ? [join(this.#root, published)] : [])],
      `Weight files have no tokenizer: put the tokenizer.json of ${published} into one of these folders.`,
    );
  }

  /** Folders that contain models: the parent of a model, ComfyUI's models folder, the checkpoint directory. */
  #roots(...paths: string[]): string[] {
    const around = paths.flatMap((path) =>
      isFile(path) ? [dirname(path), dirname(dirname(path))] : dirname(path),
    );
    return [...new Set([...around, this.#root])];
  }

  /**
   * Path of the model `name` in the checkpoint directory: a model folder, or a weight file in one of ComfyUI's
   * folders, whose extension `name` may omit. Returns a folder without a model only if neither exists, because
   * it may hold only the tokenizer of a weight file.
   */
  #inRoot(name: string): string | undefined {
    const folder = join(this.#root, name);
    if (isModelFolder(folder)) return folder;
    const ending = name.endsWith(WEIGHTS_EXTENSION) ? "" : WEIGHTS_EXTENSION;
    const parts: readonly ModelPart[] = ["transformer", "language_model"];
    const places = parts.flatMap((part) =>
      FILE_FOLDERS[part].map((each) => join(this.#root, each, name + ending)),
    );
    return [folder, ...places].find(isFile) ?? (isDirectory(folder) ? folder : undefined);
  }

  /** Weight files in the checkpoint directory that contain this part. */
  #filesOf(part: ModelPart): string[] {
    return FILE_FOLDERS[part]
      .flatMap((folder) => filesIn(join(this.#root, folder)))
      .filter((path) => modelsIn(path)[part] !== undefined);
  }

  /** Name of the model at a path: the base name, or the full path if another model has the same base name. */
  #nameOf(path: string): string {
    const place = resolve(path);
    const name = isFile(place) ? stemOf(place) : basename(place);
    const embedded = name === EMBEDDED_MODEL ? join(MODELS_IN_PACKAGE, name) : undefined;
    const taken = this.#inRoot(name) ?? this.#outsideRoot.get(name) ?? embedded;
    return taken === undefined || taken === place ? name : place;
  }

  #embeddedDirectory(embeddedName: string): string {
    return firstExisting(
      `The built-in model ${embeddedName}`,
      this.#embeddedRoots().map((root) => join(root, embeddedName)),
      "It is part of the package: reinstall it.",
    );
  }

  /**
   * Folders that may contain the built-in model: the package, or the checkpoint directory if an application
   * moved it there.
   */
  #embeddedRoots(): string[] {
    return [MODELS_IN_PACKAGE, this.#root];
  }

  #embedded(part: string): string[] {
    const present = this.#embeddedRoots().some((root) => isDirectory(join(root, EMBEDDED_MODEL, part)));
    return present ? [EMBEDDED_MODEL] : [];
  }

  #folders(): string[] {
    const foldersIn = (folder: string) =>
      entriesOf(join(this.#root, folder))
        .map((name) => join(folder, name))
        .filter((name) => name !== EMBEDDED_MODEL && !HOLDS_FILES.has(name))
        .filter((name) => isDirectory(join(this.#root, name)));
    return foldersIn("")
      .flatMap((name) => [name, ...(name.includes(OWNER_SEPARATOR) ? foldersIn(name) : [])])
      .sort();
  }
}

/** Bytes hashed at each end of a weights file. */
const SAMPLED_BYTES = 2 ** 20;

/**
 * Fast hash that distinguishes checkpoints of the same name. Of each file, hashes the name, the size,
 * the first MiB and the last MiB.
 * @param path folder or weight file
 */
export async function fingerprintOf(path: string): Promise<string> {
  const hash = createHash("sha256");
  const folder = isFile(path) ? dirname(path) : path;
  for (const name of isFile(path) ? [basename(path)] : (await readdir(path)).sort()) {
    if (!/^config\.json$|\.(safetensors|gguf|bin|pt)$/.test(name)) continue;
    const file = await openRegular(join(folder, name), Number.POSITIVE_INFINITY);
    try {
      const { size } = await file.stat();
      hash.update(`${name} ${size}\n`);
      for (const position of [0, Math.max(size - SAMPLED_BYTES, 0)]) {
        const { buffer, bytesRead } = await file.read({ buffer: Buffer.alloc(SAMPLED_BYTES), position });
        hash.update(buffer.subarray(0, bytesRead));
      }
    } finally {
      await file.close();
    }
  }
  return hash.digest("hex");
}

function isDefault(name: string): boolean {
  return name === DEFAULT_MODEL || name === DEFAULT_LANGUAGE_MODEL;
}

/** Removes the repository's owner from a model name. */
function ownName(name: string): string {
  return basename(name).split(OWNER_SEPARATOR).at(-1) as string;
}

/** @throws EngineError UNSUPPORTED_MODEL for a file without this part */
function sourceAt(path: string, part: ModelPart): ModelSource {
  return isFile(path)
    ? partOfFile(path, part)
    : (sourceInFolder(path, part) ?? { path, prefix: "", config: null });
}

/** Where a folder has a part: in its model if it is a model folder, otherwise in its only weight file with the part. */
function sourceInFolder(folder: string, part: ModelPart): ModelSource | undefined {
  if (isModelFolder(folder)) return { path: folder, prefix: "", config: null };
  const files = filesIn(folder).flatMap((file) => modelsIn(file)[part] ?? []);
  return files.length === 1 ? files[0] : undefined;
}

function isModelFolder(folder: string): boolean {
  return [folder, join(folder, "transformer")].some((each) => existsSync(join(each, "config.json")));
}

function firstExisting(what: string, candidates: string[], advice = ""): string {
  const found = candidates.find(exists);
  if (found === undefined) throw notFound(what, candidates, advice);
  return found;
}

function notFound(what: string, candidates: readonly string[], advice: string): EngineError {
  const places = [...new Set(candidates)].join(", ");
  return new EngineError("MODEL_NOT_FOUND", `${what} was not found. Looked for: ${places}. ${advice}`.trim());
}

function exists(path: string): boolean {
  return isDirectory(path) || isFile(path);
}

function isDirectory(path: string): boolean {
  return statOf(path)?.isDirectory() === true;
}

function isFile(path: string): boolean {
  return statOf(path)?.isFile() === true;
}

/** Status of a path; undefined if the path is missing, a loop of links or not readable. */
function statOf(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}

/** Names in a folder; empty if the folder cannot be read. */
function entriesOf(folder: string): string[] {
  try {
    return isDirectory(folder) ? readdirSync(folder) : [];
  } catch {
    return [];
  }
}

/** Weight files of a folder, sorted by name. */
function filesIn(folder: string): string[] {
  return entriesOf(folder)
    .filter((name) => name.endsWith(WEIGHTS_EXTENSION))
    .sort()
    .map((name) => join(folder, name))
    .filter(isFile);
}

function stemOf(path: string): string {
  return basename(path, WEIGHTS_EXTENSION);
}

/** Whether there is a DiT at `path`. In a folder, only the config.json of a DiT has the key `is_turbo`. */
function isRenderer(path: string): boolean {
  if (isFile(path)) return modelsIn(path).transformer !== undefined;
  const source = sourceInFolder(path, "transformer");
  return source !== undefined && "is_turbo" in configOf(source);
}

/** Name of the language model at `path`, in a list that is empty if there is no language model. */
function languageModelNames(name: string, path: string): string[] {
  if (!isFile(path)) return isRenderer(path) ? [] : [name];
  const models = modelsIn(path);
  if (models.language_model === undefined) return [];
  return [models.transformer === undefined ? name : `${name}/${LANGUAGE_MODEL_PART}`];
}
