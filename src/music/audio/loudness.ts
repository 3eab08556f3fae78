/** Integrated loudness of a song (EBU R 128, ITU-R BS.1770-4). */
import { setImmediate } from "node:timers/promises";
import type { PlanarAudio } from "../../engine/types.js";

/** 100 ms at 48 kHz. The standard's blocks of 400 ms overlap by three of them. */
const HOP_SAMPLES = 4800;
const HOPS_PER_BLOCK = 4;
/** Hops measured before yielding to the event loop. */
const HOPS_PER_TURN = 32;
const SILENCE_LUFS = -70;
/** Blocks this much quieter than the mean of the audible ones do not count. */
const RELATIVE_GATE_DB = -10;
/** Head filter and low cut of the standard, at 48 kHz: b0, b1, b2, a1, a2. */
const K_WEIGHTING = [
  [1.53512485958697, -2.69169618940638, 1.19839281085285, -1.69065929318241, 0.73248077421585],
  [1, -2, 1, -1.99004745483398, 0.99007225036621],
] as const;

/** Loudness in LUFS of audio at 48 kHz; null for silence, or for less than 400 ms. */
export async function measureLoudness(audio: PlanarAudio): Promise<number | null> {
  const hops = await hopEnergies(audio);
  const blocks = hops.slice(HOPS_PER_BLOCK - 1).map((_, first) => {
    const energy = hops.subarray(first, first + HOPS_PER_BLOCK).reduce((sum, hop) => sum + hop, 0);
    return energy / (HOPS_PER_BLOCK * HOP_SAMPLES);
  });
  const audible = meanAbove(blocks, powerOf(SILENCE_LUFS));
  if (audible === null) return null;
  const gated = meanAbove(blocks, Math.max(powerOf(SILENCE_LUFS), audible * 10 ** (RELATIVE_GATE_DB / 10)));
  return gated === null ? null : lufsOf(gated);
}

/** Level of an encoded song. */
export interface MeasuredLevel {
  /** Integrated loudness in LUFS; null for silence. */
  loudness: number | null;
  /** Largest absolute sample, 1 at full scale. */
  peak: number;
}

/** The fields of a song's description with its level, rounded; `loudness` is absent for silence. */
export function describeLevel({ loudness, peak }: MeasuredLevel): { loudness?: number; peakLevel: number } {
  return {
    peakLevel: Math.round(1000 * peak) / 1000,
    ...(loudness !== null && { loudness: Math.round(100 * loudness) / 100 }),
  };
}

/** Sum of the squared K-weighted samples of both channels in each whole hop. */
async function hopEnergies(audio: PlanarAudio): Promise<Float64Array> {
  const samples = audio.length / 2;
  const energies = new Float64Array(Math.floor(samples / HOP_SAMPLES));
  for (const begin of [0, samples]) {
    const energyOf = kWeightedEnergy();
    for (let hop = 0; hop < energies.length; hop++) {
      if (hop % HOPS_PER_TURN === 0) await setImmediate();
      const first = begin + hop * HOP_SAMPLES;
      (energies[hop] as number) += energyOf(audio.subarray(first, first + HOP_SAMPLES));
    }
  }
  return energies;
}

/** A function that filters consecutive parts of a channel (transposed direct form II) and returns their energy. */
function kWeightedEnergy(): (part: Float32Array) => number {
  const [[b0, b1, b2, a1, a2], [c0, c1, c2, d1, d2]] = K_WEIGHTING;
  const state = new Float64Array(4);
  return (part) => {
    // Variables of this function: V8 allocates a number for each assignment to one of the function around it.
    let [headFirst = 0, headSecond = 0, cutFirst = 0, cutSecond = 0] = state;
    let energy = 0;
    for (let at = 0; at < part.length; at++) {
      const input = part[at] as number;
      const head = b0 * input + headFirst;
      headFirst = b1 * input - a1 * head + headSecond;
      headSecond = b2 * input - a2 * head;
      const output = c0 * head + cutFirst;
      cutFirst = c1 * head - d1 * output + cutSecond;
      cutSecond = c2 * head - d2 * output;
      energy += output * output;
    }
    state.set([headFirst, headSecond, cutFirst, cutSecond]);
    return energy;
  };
}

function meanAbove(powers: Float64Array, threshold: number): number | null {
  const counted = powers.filter((power) => power > threshold);
  return counted.length === 0 ? null : counted.reduce((sum, power) => sum + power, 0) / counted.length;
}

function lufsOf(power: number): number {
  return -0.691 + 10 * Math.log10(power);
}

function powerOf(lufs: number): number {
  return 10 ** ((lufs + 0.691) / 10);
}
