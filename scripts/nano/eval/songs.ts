/** Makes songs with the model through the public API, and reconstructs recordings with its autoencoder. */
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { type Checkpoint, Checkpoints, type RendererCheckpoint } from "../../../src/engine/checkpoints.js";
import {
  createEngine,
  loadConfig,
  type MusicEngine,
  makeSongs,
  parseGenerationRequest,
} from "../../../src/index.js";
import { decodeAudio } from "../../../src/music/audio/decode.js";
import type { PieceRecord } from "../dataset/record.js";
import { runPython } from "../python.js";

/** A song on disk. */
export interface Song {
  path: string;
  /** Time to make the song, without loading models. */
  computeSeconds: number;
}

/** Default models. Environment variables can set others. */
const embeddedModel = { SVC_CONFIG_PATH: "carillon-nano", SVC_LM_MODEL_PATH: "carillon-nano/lm" };

/** Makes songs with the configured models and stores them. A stored song is not made again. */
export class SongMaker {
  readonly #engine: MusicEngine;
  readonly #model: RendererCheckpoint;
  readonly #languageModel: Checkpoint;
  readonly #directory: string;
  readonly #maxSourceSeconds: number;
  /** Folder for songs of the loaded models. */
  #songs: string;
  #loading: Promise<unknown> | null = null;

  /** @param directory folder of all songs; each model gets a sub-folder */
  constructor(directory: string) {
    const config = loadConfig({ ...embeddedModel, ...process.env });
    const checkpoints = new Checkpoints(config.checkpointsDirectory);
    this.#model = checkpoints.renderer(config.slot1Model);
    this.#languageModel = checkpoints.languageModel(config.languageModel);
    this.#directory = directory;
    this.#songs = join(directory, weightsVersion(...this.#modelDirectories()));
    this.#maxSourceSeconds = config.sourceMaxSeconds;
    this.#engine = createEngine(config, (message) => console.error(message));
  }

  get vaeDirectory(): string {
    return this.#model.vae.path;
  }

  close(): Promise<void> {
    return this.#engine.close();
  }

  /**
   * Loads the language model, which fills in missing request fields and plans songs that request a plan.
   */
  async loadLanguageModel(): Promise<void> {
    await this.#engine.loader.loadLanguageModel(null);
    const version = weightsVersion(...this.#modelDirectories(), this.#languageModel.model.path);
    this.#songs = join(this.#directory, version);
  }

  /** Returns the audio codes of a recording. */
  async codesOf(path: string): Promise<Int32Array> {
    const audio = await decodeAudio({ path, name: basename(path), maxSeconds: this.#maxSourceSeconds });
    return this.#engine.renderer.encodeCodes(1, audio, {});
  }

  /**
   * @param name file name of the song without extension
   * @param parameters as POST /release_task takes them
   */
  async makeSong(name: string, parameters: Readonly<Record<string, unknown>>): Promise<Song> {
    const fixed = { batch_size: 1, use_random_seed: false, audio_format: "wav" };
    this.#loading ??= this.#engine.loader.loadSlot(1, null);
    await this.#loading;
    const request = parseGenerationRequest({ ...parameters, ...fixed }, this.#engine);
    const version = createHash("sha256").update(JSON.stringify(request)).digest("hex").slice(0, 8);
    const path = join(this.#songs, `${name}-${version}.wav`);
    // This file is written after the song, so the song is complete if this file exists.
    const mark = join(this.#songs, `${name}-${version}.json`);
    if (existsSync(mark)) return JSON.parse(readFileSync(mark, "utf8")) as Song;
    mkdirSync(dirname(path), { recursive: true });
    const start = performance.now();
    await makeSongs(this.#engine, request, {
      destination: () => ({ name: path, path }),
      maxSourceSeconds: this.#maxSourceSeconds,
      signal: new AbortController().signal,
      onProgress: () => {},
    });
    const song: Song = { path, computeSeconds: (performance.now() - start) / 1000 };
    writeFileSync(mark, JSON.stringify(song));
    return song;
  }

  #modelDirectories(): string[] {
    const { model, vae, textEncoder, tokenizerDirectory } = this.#model;
    return [model.path, vae.path, textEncoder.path, tokenizerDirectory];
  }
}

/** Returns the prompt of a piece as request parameters. */
export function promptParameters(record: PieceRecord): Record<string, unknown> {
  const { caption, lyrics, language, bpm, keyScale, timeSignature, durationSeconds } = record;
  return {
    ...{ prompt: caption, lyrics, vocal_language: language, bpm, key_scale: keyScale },
    ...{ time_signature: timeSignature, audio_duration: durationSeconds },
  };
}

/**
 * Encodes and decodes recordings with the training code.
 * @returns the paths of WAV files, one per recording, in a folder for this autoencoder. Existing files are
 * kept
 */
export function reconstruct(vaeDirectory: string, paths: string[], directory: string): string[] {
  const own = join(directory, weightsVersion(vaeDirectory));
  mkdirSync(own, { recursive: true });
  // The folder of a recording is named after its piece.
  const outputs = paths.map((path) => join(own, `${basename(dirname(path))}.wav`));
  const missing = paths.flatMap((path, index) => {
    const output = outputs[index] as string;
    return existsSync(output) ? [] : [path, output];
  });
  if (missing.length > 0) runPython("training", "round_trip.py", [vaeDirectory, ...missing]);
  return outputs;
}

/** Hash of the weights and configs in the folders of a checkpoint. */
function weightsVersion(...directories: string[]): string {
  const hash = createHash("sha256");
  for (const directory of directories) {
    for (const name of readdirSync(directory).sort()) {
      if (!/\.(safetensors|json)$/.test(name)) continue;
      for (const part of [name, readFileSync(join(directory, name))]) hash.update(part).update("\0");
    }
  }
  return hash.digest("hex").slice(0, 12);
}
