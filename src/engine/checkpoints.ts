/** Finds checkpoints by name and the parts that belong to them (reference/engine.md 1.1, lm.md 1.4). */
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { EngineError } from "./errors.js";
import { hasTokenizerFiles } from "./tokenizer-files.js";

/** The names that stand for "whatever is there": where they are absent, the embedded model takes their place. */
export const defaultModel = "acestep-v15-turbo";
export const defaultLanguageModel = "acestep-5Hz-lm-0.6B";

export const embeddedModel = "carillon-nano";
const embeddedLanguageModel = `${embeddedModel}/lm`;
const languageModelPrefix = "acestep-5Hz-lm-";
const modelsInPackage = fileURLToPath(new URL("../../models", import.meta.url));

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

  /** @param directory holds one model a folder; it need not exist */
  constructor(directory: string) {
    this.#root = resolve(directory);
  }

  /**
   * Finds a DiT and its parts.
   * @throws EngineError MODEL_NOT_FOUND naming every place that was looked at
   */
  renderer(name: string): RendererCheckpoint {
    const checkpoint = this.#resolve(name, defaultModel, embeddedModel);
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
    return this.#resolve(name, defaultLanguageModel, embeddedLanguageModel);
  }

  /** True where `name` is a default that is absent. */
  usesEmbedded(name: string): boolean {
    return (name === defaultModel || name === defaultLanguageModel) && !isDirectory(join(this.#root, name));
  }

  /** DiTs in the checkpoint directory, the embedded one last. */
  rendererNames(): string[] {
    return [...this.#folders().filter((name) => isRenderer(join(this.#root, name))), ...this.#embedded("")];
  }

  /** Language models in the checkpoint directory, the embedded one last. */
  languageModelNames(): string[] {
    const names = this.#folders().filter((name) => name.startsWith(languageModelPrefix));
    return [...names, ...this.#embedded("lm").map(() => embeddedLanguageModel)];
  }

  /** For a name of `rendererNames()`. */
  isTurbo(name: string): boolean {
    return readConfig(this.#resolve(name, defaultModel, embeddedModel).directory).is_turbo === true;
  }

  #resolve(name: string, defaultName: string, embeddedName: string): Checkpoint {
    const isEmbedded = name === embeddedName || (name === defaultName && this.usesEmbedded(name));
    if (isEmbedded) {
      return { name: embeddedName, directory: this.#embeddedDirectory(embeddedName, name) };
    }
    const directory = firstExisting(`The model ${name}`, [join(this.#root, name), resolve(name)]);
    return { name, directory };
  }

  #embeddedDirectory(embeddedName: string, requested: string): string {
    return firstExisting(
      requested === embeddedName
        ? `The embedded model ${embeddedName}`
        : `${requested} is not in ${this.#root} and the embedded model ${embeddedName} that stands in for it`,
      this.#embeddedRoots().map((root) => join(root, embeddedName)),
      "It comes with the package: install that again.",
    );
  }

  /** Where the embedded model may lie: in the package, or among the checkpoints where an application ships without it. */
  #embeddedRoots(): string[] {
    return [modelsInPackage, this.#root];
  }

  #embedded(part: string): string[] {
    const present = this.#embeddedRoots().some((root) => isDirectory(join(root, embeddedModel, part)));
    return present ? [embeddedModel] : [];
  }

  #folders(): string[] {
    if (!isDirectory(this.#root)) return [];
    return readdirSync(this.#root)
      .filter((name) => name !== embeddedModel && isDirectory(join(this.#root, name)))
      .sort();
  }
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
