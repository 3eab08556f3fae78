/** What tells whether a task did what it is for, on samples alone: mono at 48 kHz. */
import { chromagram, type Spectrogram, spectrogram } from "./spectra.js";

const window = 4096;

/** A recording is compared with many others. */
const chromagrams = new WeakMap<Float32Array, Float32Array[]>();
const spectrograms = new WeakMap<Float32Array, Spectrogram>();

function chromagramOf(mono: Float32Array): Float32Array[] {
  const found = chromagrams.get(mono) ?? chromagram(mono);
  chromagrams.set(mono, found);
  return found;
}

function spectrogramOf(mono: Float32Array): Spectrogram {
  const found = spectrograms.get(mono) ?? spectrogram(mono, window);
  spectrograms.set(mono, found);
  return found;
}

/** Pearson correlation of two chromagrams, frame against frame: 1 for the same chords at the same times. */
export function harmonyCorrelation(one: Float32Array, other: Float32Array): number {
  const [rows, otherRows] = [chromagramOf(one), chromagramOf(other)];
  const count = Math.min(rows.length, otherRows.length);
  const values = (matrix: Float32Array[]): number[] => matrix.slice(0, count).flatMap((row) => [...row]);
  return pearson(values(rows), values(otherRows));
}

/** How much of a recording is one of several stems. */
export interface Separation {
  /** Energy of the wanted stem over that of all others, dB, within ±40. */
  wantedDecibels: number;
  /** 0 .. 1: energy that is any of the stems at all. */
  explained: number;
}

/**
 * Takes the recording's magnitude spectrogram for a sum of the stems', each times a gain of 0 or more, by least
 * squares. No phase enters: a generated stem has another one than the recorded.
 */
export function separate(
  recording: Float32Array,
  stems: readonly Float32Array[],
  wanted: number,
): Separation {
  const target = spectrogramOf(recording);
  const parts = stems.map(spectrogramOf);
  const gains = nonNegativeLeastSquares(
    parts.map((part) => parts.map((other) => inner(part, other))),
    parts.map((part) => inner(part, target)),
  );
  const energies = parts.map((part, index) => (gains[index] as number) ** 2 * inner(part, part));
  const own = energies[wanted] as number;
  const others = energies.reduce((sum, energy) => sum + energy, 0) - own;
  const residual = residualEnergy(target, parts, gains);
  return { wantedDecibels: ratioDecibels(own, others), explained: 1 - residual / inner(target, target) };
}

/** 0 .. 1: energy of the recording beyond what is the source at any one gain. */
export function addedEnergy(recording: Float32Array, source: Float32Array): number {
  return 1 - separate(recording, [source], 0).explained;
}

/** Mean difference of the spectra in decibels, what is 80 dB under the loudest of both counting as silence. */
export function logSpectralDistance(one: Float32Array, other: Float32Array): number {
  const spectra = [spectrogramOf(one), spectrogramOf(other)] as const;
  const loudest = Math.max(
    ...spectra.map(({ frames }) => Math.max(...frames.map((frame) => maximum(frame)))),
  );
  const floor = loudest * 1e-4;
  let sum = 0;
  let count = 0;
  for (const [index, frame] of spectra[0].frames.entries()) {
    const otherFrame = spectra[1].frames[index];
    if (otherFrame === undefined || loudest === 0) break;
    for (const [bin, value] of frame.entries()) {
      sum += Math.abs(20 * Math.log10(Math.max(value, floor) / Math.max(otherFrame[bin] as number, floor)));
    }
    count += frame.length;
  }
  return count === 0 ? 0 : sum / count;
}

/** 0 .. 1: samples that are the same but for the rounding to 16 bits. */
export function unchangedShare(one: Float32Array, other: Float32Array): number {
  const tolerance = 2 / 32768;
  const count = Math.min(one.length, other.length);
  let same = 0;
  for (let i = 0; i < count; i++) {
    if (Math.abs((one[i] as number) - (other[i] as number)) <= tolerance) same++;
  }
  return same / count;
}

/** Coordinate descent on gains g >= 0 for |sum of g_i parts_i - target|^2. @param gram inner products of the parts */
function nonNegativeLeastSquares(gram: number[][], projections: number[]): number[] {
  const gains = projections.map(() => 0);
  for (let round = 0; round < 500; round++) {
    for (const [index, row] of gram.entries()) {
      const own = row[index] as number;
      if (own === 0) continue;
      const rest = row.reduce(
        (sum, value, other) => sum + (other === index ? 0 : value * (gains[other] as number)),
        0,
      );
      gains[index] = Math.max(0, ((projections[index] as number) - rest) / own);
    }
  }
  return gains;
}

function residualEnergy(target: Spectrogram, parts: Spectrogram[], gains: number[]): number {
  let sum = 0;
  for (const [index, frame] of target.frames.entries()) {
    for (const [bin, value] of frame.entries()) {
      let rest = value;
      for (const [which, part] of parts.entries()) {
        rest -= (gains[which] as number) * (part.frames[index]?.[bin] ?? 0);
      }
      sum += rest ** 2;
    }
  }
  return sum;
}

function inner(one: Spectrogram, other: Spectrogram): number {
  let sum = 0;
  for (const [index, frame] of one.frames.entries()) {
    const otherFrame = other.frames[index];
    if (otherFrame === undefined) break;
    for (const [bin, value] of frame.entries()) sum += value * (otherFrame[bin] as number);
  }
  return sum;
}

function ratioDecibels(one: number, other: number): number {
  const limit = 40;
  if (one === 0 && other === 0) return 0;
  return Math.min(limit, Math.max(-limit, 10 * Math.log10(one / other)));
}

function maximum(values: Float32Array): number {
  return values.reduce((most, value) => Math.max(most, value), 0);
}

function pearson(one: number[], other: number[]): number {
  const [ownMean, otherMean] = [mean(one), mean(other)];
  let [product, square, otherSquare] = [0, 0, 0];
  for (const [index, value] of one.entries()) {
    const [a, b] = [value - ownMean, (other[index] as number) - otherMean];
    product += a * b;
    square += a * a;
    otherSquare += b * b;
  }
  return square === 0 || otherSquare === 0 ? 0 : product / Math.sqrt(square * otherSquare);
}

export function mean(values: number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
