/** The held-out pieces of the evaluation, composed and rendered by the generator, and white noise of their size. */
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Random } from "../compose/random.js";
import { composerVersion, makePieces } from "../dataset/data-set.js";
import { isHeldOut, type PieceRecord } from "../dataset/record.js";
import { amplitude, sampleRate, scale, silence } from "../render/stereo.js";
import { encodeWav } from "../render/wav.js";

/** The first `count` held-out seeds from the `skip`-th on; they go round all genres. */
export function heldOutSeeds(count: number, skip = 0): number[] {
  const seeds: number[] = [];
  for (let seed = 0; seeds.length < skip + count; seed++) {
    if (isHeldOut(seed)) seeds.push(seed);
  }
  return seeds.slice(skip);
}

/** A folder of its own for what this composer makes. */
export function heldOutFolder(directory: string): string {
  return join(directory, `held-out-${composerVersion}`);
}

/** Renders missing pieces. @param seconds their length, in place of their own */
export function renderHeldOut(
  directory: string,
  seeds: number[],
  seconds?: number,
  stemShare = 0,
): Promise<PieceRecord[]> {
  const onPiece = ({ seed }: { seed: number }): void => {
    process.stderr.write(
      `\rheld-out piece ${seeds.indexOf(seed) + 1} of ${seeds.length}${seed === seeds.at(-1) ? "\n" : " "}`,
    );
  };
  return makePieces(directory, seeds, { seconds, stemShare, onPiece });
}

/** Approximate loudness of the held-out pieces. */
const noiseLevel = amplitude(-20);

/** Writes uniform noise of the level of the held-out pieces once. @returns the file's path */
export function whiteNoise(directory: string, { id, seed, durationSeconds }: PieceRecord): string {
  mkdirSync(directory, { recursive: true });
  const path = join(directory, `${id}.wav`);
  if (existsSync(path)) return path;
  const random = new Random(seed);
  const audio = silence(durationSeconds * sampleRate);
  for (const channel of [audio.left, audio.right]) {
    for (let i = 0; i < channel.length; i++) channel[i] = random.between(-1, 1);
  }
  // Uniform noise has a standard deviation of 1 / sqrt(3).
  scale(audio, noiseLevel * Math.sqrt(3));
  writeFileSync(path, encodeWav(audio));
  return path;
}
