/**
 * The held-out pieces of the evaluation, composed and rendered by the generator, and white noise of the same
 * length.
 */
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Random } from "../compose/random.js";
import { composerVersion, makePieces } from "../dataset/data-set.js";
import { isHeldOut, type PieceRecord } from "../dataset/record.js";
import { applyGain, sampleRate, silence, toAmplitude } from "../render/stereo.js";
import { encodeWav } from "../render/wav.js";

/** Returns `count` held-out seeds, after skipping the first `skip`. They cycle through all genres. */
export function heldOutSeeds(count: number, skip = 0): number[] {
  const seeds: number[] = [];
  for (let seed = 0; seeds.length < skip + count; seed++) {
    if (isHeldOut(seed)) seeds.push(seed);
  }
  return seeds.slice(skip);
}

/** Folder for held-out pieces of this version of the composer. */
export function heldOutFolder(directory: string): string {
  return join(directory, `held-out-${composerVersion}`);
}

/**
 * Renders missing held-out pieces.
 * @param seconds length of every piece; by default the seed of a piece determines it
 */
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

/** Level of the noise. It approximates the loudness of the held-out pieces. */
const noiseLevel = toAmplitude(-20);

/**
 * Writes uniform noise that is as loud as the held-out pieces, unless the file exists.
 * @returns the path of the file
 */
export function writeWhiteNoise(directory: string, { id, seed, durationSeconds }: PieceRecord): string {
  mkdirSync(directory, { recursive: true });
  const path = join(directory, `${id}.wav`);
  if (existsSync(path)) return path;
  const random = new Random(seed);
  const audio = silence(durationSeconds * sampleRate);
  for (const channel of [audio.left, audio.right]) {
    for (let i = 0; i < channel.length; i++) channel[i] = random.between(-1, 1);
  }
  // Uniform noise from -1 to 1 has an RMS of 1 / sqrt(3), so this gain sets the RMS to noiseLevel.
  applyGain(audio, noiseLevel * Math.sqrt(3));
  writeFileSync(path, encodeWav(audio));
  return path;
}
