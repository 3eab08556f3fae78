/** Masters a mix: width, end, loudness and peaks. All steps are the same factor for the mix and its stems, so that they still add up. */
import { measureLoudness } from "../../../src/music/audio/loudness.js";
import type { Ending } from "../compose/piece.js";
import { planarOf, type Stereo, sampleRate, toAmplitude, toDecibels } from "./stereo.js";

/** Loudness of all pieces in LUFS; the error of a limited piece is below 1. */
const loudnessLufs = -16;
const mostGainDecibels = 24;
const ceiling = toAmplitude(-1.5);
/** Most factors of the sides: more would turn panned sounds out of phase. */
const sideFactors = { least: 0.5, most: 1.8 } as const;
/** A final chord decays by itself; this fade ends what is left of it. */
const chordFadeSeconds = 1.2;
/** The limiter finds a factor for each block. */
const blockSamples = 96;
/** Blocks before a peak in which the factor falls, and share of the way back to 1 in each block after it: about 5 and 80 ms. */
const aheadBlocks = 3;
const release = 0.025;

export interface Mastering {
  ending: Ending;
  /** Length of a fade-out, in seconds. */
  fadeSeconds: number;
  /** Wanted level of the sides below the middle. */
  sideDecibels: number;
}

/** @param mix the sum of the stems; all are changed in place */
export async function master(mix: Stereo, stems: Stereo[], wanted: Mastering): Promise<void> {
  const all = [mix, ...stems];
  const found = sideLevel(mix);
  const wider = toAmplitude(wanted.sideDecibels - found);
  for (const audio of all) scaleSide(audio, Math.min(sideFactors.most, Math.max(sideFactors.least, wider)));
  const seconds = wanted.ending === "fade" ? wanted.fadeSeconds : chordFadeSeconds;
  for (const audio of all) fadeOut(audio, Math.min(mix.left.length, Math.round(seconds * sampleRate)));
  const unlimited = await gainToLoudness(mix);
  // Limiting costs loudness, which the second round makes up for.
  const limited = { left: mix.left.slice(), right: mix.right.slice() };
  applyFactors(limited, unlimited, limiterFactors(mix, unlimited));
  const gain = unlimited * (await gainToLoudness(limited));
  const factors = limiterFactors(mix, gain);
  for (const audio of all) applyFactors(audio, gain, factors);
}

/** Level of the sides below the middle, in decibels. */
export function sideLevel({ left, right }: Stereo): number {
  let [side, middle] = [0, 0];
  for (let i = 0; i < left.length; i++) {
    const [a, b] = [left[i] as number, right[i] as number];
    side += (a - b) ** 2;
    middle += (a + b) ** 2;
  }
  return toDecibels(Math.sqrt(side / Math.max(middle, 1e-9)) + 1e-9);
}

function scaleSide({ left, right }: Stereo, factor: number): void {
  for (let i = 0; i < left.length; i++) {
    const [a, b] = [left[i] as number, right[i] as number];
    const [middle, side] = [(a + b) / 2, (factor * (a - b)) / 2];
    left[i] = middle + side;
    right[i] = middle - side;
  }
}

/** Half a period of a cosine, so that neither its begin nor its end is heard. */
function fadeOut({ left, right }: Stereo, samples: number): void {
  const first = left.length - samples;
  for (let i = 0; i < samples; i++) {
    const factor = 0.5 * (1 + Math.cos((Math.PI * (i + 1)) / samples));
    left[first + i] = factor * (left[first + i] as number);
    right[first + i] = factor * (right[first + i] as number);
  }
}

async function gainToLoudness(audio: Stereo): Promise<number> {
  const found = await measureLoudness(planarOf(audio));
  return found === null ? 1 : toAmplitude(Math.min(mostGainDecibels, loudnessLufs - found));
}

/** The limiter's factor at the begin of each block, with which no sample of the audio times `gain` exceeds the ceiling. */
function limiterFactors({ left, right }: Stereo, gain: number): Float32Array {
  const needed = new Float32Array(Math.ceil(left.length / blockSamples) + 1).fill(1);
  for (let i = 0; i < left.length; i++) {
    const peak = gain * Math.max(Math.abs(left[i] as number), Math.abs(right[i] as number));
    const block = Math.floor(i / blockSamples);
    if (peak > ceiling) needed[block] = Math.min(needed[block] as number, ceiling / peak);
  }
  const factors = new Float32Array(needed.length);
  let previous = 1;
  for (let block = 0; block < needed.length; block++) {
    // The factors at both ends of a block are below what it needs.
    const near = Math.min(...needed.subarray(Math.max(0, block - 1), block + aheadBlocks + 1));
    previous = Math.min(near, previous + release * (1 - previous));
    factors[block] = previous;
  }
  return factors;
}

function applyFactors({ left, right }: Stereo, gain: number, factors: Float32Array): void {
  for (let i = 0; i < left.length; i++) {
    const block = Math.floor(i / blockSamples);
    const [begin, end] = [factors[block] as number, factors[block + 1] as number];
    const factor = gain * (begin + ((end - begin) * (i - block * blockSamples)) / blockSamples);
    left[i] = factor * (left[i] as number);
    right[i] = factor * (right[i] as number);
  }
}
