/** What the model makes of the held-out prompts, through the public API. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import {
  createEngine,
  loadConfig,
  type MusicEngine,
  makeSongs,
  parseGenerationRequest,
} from "../../../src/index.js";
import type { PieceRecord } from "../dataset/record.js";

export interface Singer {
  /** Name of the loaded model. */
  model: string;
  /** Seconds spent making songs so far. */
  seconds(): number;
  /** @returns the file's path */
  sing(record: PieceRecord, seed: number): Promise<string>;
  close(): Promise<void>;
}

/** @param thinking let the language model plan first */
export async function openSinger(directory: string, thinking: boolean): Promise<Singer> {
  mkdirSync(directory, { recursive: true });
  const config = loadConfig(process.env);
  const engine = createEngine(config, (message) => console.error(message));
  const { model } = await engine.loadSlot(1, null);
  let seconds = 0;
  return {
    model: model ?? "",
    seconds: () => seconds,
    close: () => engine.close(),
    async sing(record, seed) {
      const path = join(directory, `${record.id}-${seed}.wav`);
      const start = performance.now();
      await makeSongs(engine, requestOf(engine, record, seed, thinking), {
        destination: () => ({ name: path, path }),
        maxSourceSeconds: config.sourceMaxSeconds,
        signal: new AbortController().signal,
        report: () => {},
      });
      seconds += (performance.now() - start) / 1000;
      return path;
    },
  };
}

function requestOf(engine: MusicEngine, record: PieceRecord, seed: number, thinking: boolean) {
  const { caption, lyrics, language, bpm, keyScale, timeSignature, durationSeconds } = record;
  return parseGenerationRequest(
    {
      ...{ prompt: caption, lyrics, vocal_language: language, bpm, thinking },
      ...{ key_scale: keyScale, time_signature: timeSignature, audio_duration: durationSeconds },
      ...{ batch_size: 1, use_random_seed: false, seed, audio_format: "wav" },
    },
    engine,
  );
}
