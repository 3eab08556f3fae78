/** Finds checkpoints by name and the parts that belong to them. */
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { open, readdir } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { EngineError } from "./errors.js";
import { hasTokenizerFiles } from "./tokenizer-files.js";

/** Where they are configured and absent, the embedded model takes their place. */
export const DEFAULT_MODEL = "acestep-v15-turbo";
export const DEFAULT_LANGUAGE_MODEL = "acestep-5Hz-lm-0.6B";

export const EMBEDDED_MODEL = "carillon-nano";
const EMBEDDED_LANGUAGE_MODEL = `${EMBEDDED_MODEL}/lm`;
const LANGUAGE_MODEL_PREFIX = "acestep-5Hz-lm-";
const MODELS_IN_PACKAGE = fileURLToPath(new URL("../../models", import.meta.url));

/** One model on disk. */
export interface Checkpoint {
  /** What it is asked for by. */
  name: string;
  directory: string;
}

/** A DiT with the parts it cannot render without. */
export interface RendererCheckpoint extends Checkpoint {
  vaeDirectory: string;
  textEncoderDirectory: string;
  tokenizerDirectory: string;
}

export class Checkpoints {
  readonly #root: string;
  /** Names of models outside the checkpoint directory, and where they lie. */
  readonly #elsewhere = new Map<string, string>();

  /**
   * @param directory holds one model a folder; it need not exist
   * @param configured models of the configuration, by name or path
   */
  constructor(directory: string, configured: readonly string[] = []) {
    this.#root = resolve(directory);
    for (const name of configured) {
      if (!this.#isInRoot(name) && isDirectory(name)) this.#elsewhere.set(this.#nameOf(name), resolve(name));
    }
  }

  /** The model that a setting means: the embedded one for a default that is absent. */
  configured(name: string): string {
    if (!this.usesEmbedded(name))
      return this.#isInRoot(name) || !isDirectory(name) ? name : this.#nameOf(name);
    return name === DEFAULT_MODEL ? EMBEDDED_MODEL : EMBEDDED_LANGUAGE_MODEL;
  }

  /**
   * Finds a DiT and its parts.
   * @throws EngineError MODEL_NOT_FOUND naming every place that was looked at
   */
  renderer(name: string): RendererCheckpoint {
    const checkpoint = this.#resolve(name, EMBEDDED_MODEL);
    const part = (subfolder: string, sibling: string): string =>
      firstExisting(`the ${subfolder} of ${checkpoint.name}`, [
        join(checkpoint.directory, subfolder),
        join(dirname(checkpoint.directory), sibling),
        join(this.#root, sibling),
      ]);
    const textEncoderDirectory = part("text_encoder", "Qwen3-Embedding-0.6B");
    const tokenizerDirectory = join(checkpoint.directory, "tokenizer");
    return {
      ...checkpoint,
      vaeDirectory: part("vae", "vae"),
      textEncoderDirectory,
      tokenizerDirectory: hasTokenizerFiles(tokenizerDirectory) ? tokenizerDirectory : textEncoderDirectory,
    };
  }

  /** @throws EngineError MODEL_NOT_FOUND naming every place that was looked at */
  languageModel(name: string): Checkpoint {
    return this.#resolve(name, EMBEDDED_LANGUAGE_MODEL);
  }

  /** True where `name` is a default that is absent. */
  usesEmbedded(name: string): boolean {
    return (
      (name === DEFAULT_MODEL || name === DEFAULT_LANGUAGE_MODEL) && !isDirectory(join(this.#root, name))
    );
  }

  /** DiTs that are installed, the embedded one last. */
  rendererNames(): string[] {
    const elsewhere = [...this.#elsewhere].flatMap(([name, path]) => (isRenderer(path) ? name : []));
    const inRoot = this.#folders().filter((name) => isRenderer(join(this.#root, name)));
    return [...elsewhere, ...inRoot, ...this.#embedded("")];
  }

  /** Language models that are installed, the embedded one last. */
  languageModelNames(): string[] {
    const elsewhere = [...this.#elsewhere].flatMap(([name, path]) => (isRenderer(path) ? [] : name));
    const inRoot = this.#folders().filter((name) => name.startsWith(LANGUAGE_MODEL_PREFIX));
    return [...elsewhere, ...inRoot, ...this.#embedded("lm").map(() => EMBEDDED_LANGUAGE_MODEL)];
  }

  /** For a name of `rendererNames()`. */
  isTurbo(name: string): boolean {
    return readConfig(this.#resolve(name, EMBEDDED_MODEL).directory).is_turbo === true;
  }

  /**
   * What its configuration says a model is made for; null where it says nothing.
   * @param directory where it lies; absent for a name of `rendererNames()`
   */
  supportedTasks(
    name: string,
    directory = this.#resolve(name, EMBEDDED_MODEL).directory,
  ): readonly string[] | null {
    const { supported_tasks: tasks } = readConfig(directory);
    return Array.isArray(tasks) ? tasks.map(String) : null;
  }

  #resolve(name: string, embeddedName: string): Checkpoint {
    if (name === embeddedName) return { name, directory: this.#embeddedDirectory(name) };
    const known = this.#elsewhere.get(name);
    const places = [join(this.#root, name), ...(known === undefined ? [] : [known]), resolve(name)];
    const directory = firstExisting(`The model ${name}`, places);
    if (directory === places[0]) return { name, directory };
    const ownName = known === directory ? name : this.#nameOf(directory);
    this.#elsewhere.set(ownName, directory);
    return { name: ownName, directory };
  }

  #isInRoot(name: string): boolean {
    return isDirectory(join(this.#root, name));
  }

  /** The last part of a path, or all of it where that names another model. */
  #nameOf(path: string): string {
    const directory = resolve(path);
    const name = basename(directory);
    const taken = this.#isInRoot(name) ? join(this.#root, name) : this.#elsewhere.get(name);
    return taken === undefined || taken === directory ? name : directory;
  }

  #embeddedDirectory(embeddedName: string): string {
    return firstExisting(
      `The embedded model ${embeddedName}`,
      this.#embeddedRoots().map((root) => join(root, embeddedName)),
      "It comes with the package: install that again.",
    );
  }

  /** Where the embedded model may lie: in the package, or among the checkpoints where an application ships without it. */
  #embeddedRoots(): string[] {
    return [MODELS_IN_PACKAGE, this.#root];
  }

  #embedded(part: string): string[] {
    const present = this.#embeddedRoots().some((root) => isDirectory(join(root, EMBEDDED_MODEL, part)));
    return present ? [EMBEDDED_MODEL] : [];
  }

  #folders(): string[] {
    if (!isDirectory(this.#root)) return [];
    return readdirSync(this.#root)
      .filter((name) => name !== EMBEDDED_MODEL && isDirectory(join(this.#root, name)))
      .sort();
  }
}

/** What is read of each end of a file of weights. */
const SAMPLED_BYTES = 2 ** 20;

/**
 * Tells checkpoints of one name apart, without reading them: a hash of the configuration, and of the size, the first and
 * the last MiB of each file of weights.
 */
export async function fingerprintOf(directory: string): Promise<string> {
  const hash = createHash("sha256");
  for (const name of (await readdir(directory)).sort()) {
    if (!/^config\.json$|\.(safetensors|gguf|bin|pt)$/.test(name)) continue;
    const file = await open(join(directory, name));
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

function firstExisting(what: string, candidates: string[], advice = ""): string {
  const found = candidates.find(isDirectory);
  if (found === undefined) {
    const places = [...new Set(candidates)].join(", ");
    throw new EngineError(
      "MODEL_NOT_FOUND",
      `${what} was not found. Looked for: ${places}. ${advice}`.trim(),
    );
  }
  return found;
}

function isDirectory(path: string): boolean {
  return existsSync(path) && statSync(path).isDirectory();
}

/** By what only a DiT's config has; a diffusers pipeline keeps that in its transformer's folder. */
function isRenderer(directory: string): boolean {
  const config = readConfig(directory);
  return "is_turbo" in config || existsSync(join(directory, "transformer", "config.json"));
}

/** Empty where there is none or it is damaged: a listing goes on, and loading the folder says what is wrong. */
function readConfig(directory: string): Record<string, unknown> {
  for (const folder of [directory, join(directory, "transformer")]) {
    const path = join(folder, "config.json");
    if (!existsSync(path)) continue;
    try {
      return JSON.parse(readFileSync(path, "utf8")) as Record<string, unknown>;
    } catch {
      return {};
    }
  }
  return {};
}
