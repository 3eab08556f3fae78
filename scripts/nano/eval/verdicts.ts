/** How close a measured tempo or key comes to what was asked for. */
import { canonicalKeyScale } from "../../../src/engine/metadata.js";
import { modulo } from "../compose/theory.js";

/** `metrical`: right beats, counted at another level, as an octave up, or three against two. */
export type TempoVerdict = "exact" | "metrical" | "other";

const tempoTolerance = 0.04;
const metricalRatios = [2, 1 / 2, 3, 1 / 3, 3 / 2, 2 / 3, 4, 1 / 4];

export function judgeTempo(asked: number, measured: number): TempoVerdict {
  const matches = (ratio: number): boolean => Math.abs(measured / (asked * ratio) - 1) <= tempoTolerance;
  if (matches(1)) return "exact";
  return metricalRatios.some(matches) ? "metrical" : "other";
}

/** `related`: a fifth away, the relative or the parallel key. */
export type KeyVerdict = "exact" | "related" | "other";

/** @param measured null where no key was found */
export function judgeKey(asked: string, measured: string | null): KeyVerdict {
  if (measured === null) return "other";
  const one = parseKey(asked);
  const other = parseKey(measured);
  const interval = modulo(other.tonic - one.tonic, 12);
  if (one.isMinor === other.isMinor) {
    if (interval === 0) return "exact";
    return interval === 5 || interval === 7 ? "related" : "other";
  }
  const relative = one.isMinor ? 3 : 9;
  return interval === 0 || interval === relative ? "related" : "other";
}

const naturals: Record<string, number> = { C: 0, D: 2, E: 4, F: 5, G: 7, A: 9, B: 11 };
const accidentals: Record<string, number> = { "#": 1, "♯": 1, b: -1, "♭": -1 };

function parseKey(text: string): { tonic: number; isMinor: boolean } {
  const [note = "", mode] = canonicalKeyScale(text)?.split(" ") ?? [];
  const natural = naturals[note.charAt(0)];
  if (natural === undefined) throw new RangeError(`${text} is no key`);
  return { tonic: modulo(natural + (accidentals[note.charAt(1)] ?? 0), 12), isMinor: mode === "minor" };
}
