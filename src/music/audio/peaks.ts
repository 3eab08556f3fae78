/** Outline and level of a song by its samples. */
import { setImmediate } from "node:timers/promises";
import type { PlanarAudio } from "../../engine/types.js";

const PEAKS = 96;
const FULL = 100;

/** Peaks of 96 equal parts of planar stereo audio, in percent of the largest peak. */
export function peaksOf(audio: PlanarAudio): number[] {
  const samples = audio.length / 2;
  const peaks = Array.from({ length: PEAKS }, (_, part) => {
    const end = Math.floor(((part + 1) * samples) / PEAKS);
    let peak = 0;
    for (let at = Math.floor((part * samples) / PEAKS); at < end; at++) {
      peak = Math.max(peak, Math.abs(audio[at] as number), Math.abs(audio[samples + at] as number));
    }
    return peak;
  });
  const highest = Math.max(...peaks) || 1;
  return peaks.map((peak) => Math.round((FULL * peak) / highest));
}

/** Samples looked at before yielding to the event loop. */
const SAMPLES_PER_TURN = 2 ** 20;
const ABSOLUTE = 0x7fffffff;
/** Bits of a sample that a coarse count ignores. */
const FINE_BITS = 15;
/** Audio below this level is not scaled. */
const SILENT = 1e-6;

/**
 * Factor that brings the samples to full scale, except the loudest `millionths` of them. 1 for silence.
 * @param millionths 0: the loudest sample is at full scale
 */
export async function gainWithClipping(audio: Float32Array, millionths: number): Promise<number> {
  const rank = Math.floor((audio.length - 1) * (1 - millionths / 1e6));
  // Bits of positive floats are in the order of their values.
  const bits = new Uint32Array(audio.buffer, audio.byteOffset, audio.length);
  const counts = new Uint32Array(2 ** (31 - FINE_BITS));
  for await (const [begin, end] of turns(bits.length)) {
    for (let at = begin; at < end; at++) {
      const bin = ((bits[at] as number) & ABSOLUTE) >>> FINE_BITS;
      counts[bin] = (counts[bin] as number) + 1;
    }
  }
  let below = 0;
  let bin = 0;
  for (; bin < counts.length && below + (counts[bin] as number) <= rank; bin++)
    below += counts[bin] as number;
  const inBin = new Uint32Array(counts[bin] ?? 0);
  let found = 0;
  for await (const [begin, end] of turns(bits.length)) {
    for (let at = begin; at < end; at++) {
      const value = (bits[at] as number) & ABSOLUTE;
      if (value >>> FINE_BITS === bin) inBin[found++] = value;
    }
  }
  inBin.sort();
  const [level = 0] = new Float32Array(inBin.buffer, 4 * (rank - below), 1);
  return level < SILENT ? 1 : 1 / level;
}

async function* turns(length: number): AsyncGenerator<[begin: number, end: number]> {
  for (let begin = 0; begin < length; begin += SAMPLES_PER_TURN) {
    await setImmediate();
    yield [begin, Math.min(begin + SAMPLES_PER_TURN, length)];
  }
}
