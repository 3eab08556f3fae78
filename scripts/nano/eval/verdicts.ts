/** How close a measured tempo or key comes to what was asked for. */
import { canonicalKeyScale } from "../../../src/engine/metadata.js";
import { modulo } from "../compose/theory.js";

const tempoTolerance = 0.04;

/** The beat of a song may be counted at half or twice the tempo asked for. */
export function isTempo(asked: number, measured: number): boolean {
  return [1 / 2, 1, 2].some((level) => Math.abs(measured / (asked * level) - 1) <= tempoTolerance);
}

/** By sound, not by spelling. @param measured null where no key was found */
export function isKey(asked: string, measured: string | null): boolean {
  if (measured === null) return false;
  const [one, other] = [parseKey(asked), parseKey(measured)];
  return one.tonic === other.tonic && one.isMinor === other.isMinor;
}

const naturals: Record<string, number> = { C: 0, D: 2, E: 4, F: 5, G: 7, A: 9, B: 11 };
const accidentals: Record<string, number> = { "#": 1, "♯": 1, b: -1, "♭": -1 };

function parseKey(text: string): { tonic: number; isMinor: boolean } {
  const [note = "", mode] = canonicalKeyScale(text)?.split(" ") ?? [];
  const natural = naturals[note.charAt(0)];
  if (natural === undefined) throw new RangeError(`${text} is no key`);
  return { tonic: modulo(natural + (accidentals[note.charAt(1)] ?? 0), 12), isMinor: mode === "minor" };
}
