/** Keys, scales and chords. A chord is written as a roman numeral over the major scale: "ii7", "bVImaj7", "V". */
import type { Key, Mode } from "./piece.js";

const flatNames = ["C", "Db", "D", "Eb", "E", "F", "Gb", "G", "Ab", "A", "Bb", "B"] as const;
const sharpNames = ["C", "C#", "D", "D#", "E", "F", "F#", "G", "G#", "A", "A#", "B"] as const;
/** Tonics of black keys that are usually spelled with a sharp. */
const sharpTonics: Record<Mode, readonly number[]> = { major: [6], minor: [1, 6, 8] };

/** @param respelled whether to use the rarer of the two names of a black key, because prompts contain both */
export function keyOf(tonic: number, mode: Mode, respelled = false): Key {
  const names = sharpTonics[mode].includes(tonic) !== respelled ? sharpNames : flatNames;
  return { tonic, mode, name: `${names[tonic]} ${mode}` };
}

/** Notes of each scale, in semitones above the tonic. */
export const scales: Record<Mode, readonly number[]> = {
  major: [0, 2, 4, 5, 7, 9, 11],
  minor: [0, 2, 3, 5, 7, 8, 10],
};

export interface Chord {
  numeral: string;
  /** Semitones above C. */
  root: number;
  /** Pitch classes of the chord. The root comes first. */
  pitchClasses: number[];
  /** Scale for melodies over the chord: the scale of the key, in which chord notes replace their neighbours. */
  scale: number[];
}

const degrees: Record<string, number> = { I: 0, II: 2, III: 4, IV: 5, V: 7, VI: 9, VII: 11 };

/** Notes of a chord in semitones above the root, by the suffix of the chord name. `third` is 3 or 4. */
const suffixes: Record<string, (third: number) => number[]> = {
  "": (third) => [0, third, 7],
  "5": () => [0, 7],
  "6": (third) => [0, third, 7, 9],
  "7": (third) => [0, third, 7, 10],
  "9": (third) => [0, third, 7, 10, 14],
  maj7: (third) => [0, third, 7, 11],
  maj9: (third) => [0, third, 7, 11, 14],
  add9: (third) => [0, third, 7, 14],
  sus2: () => [0, 2, 7],
  sus4: () => [0, 5, 7],
  "7sus4": () => [0, 5, 7, 10],
  o: () => [0, 3, 6],
  ø7: () => [0, 3, 6, 10],
};

/** @throws RangeError for an unknown chord */
export function chordOf(numeral: string, key: Key): Chord {
  const [, accidental = "", degree = "", suffix = ""] = /^([b#]?)([IViv]+)(.*)$/.exec(numeral) ?? [];
  const step = degrees[degree.toUpperCase()];
  const intervals = suffixes[suffix];
  if (step === undefined || intervals === undefined) throw new RangeError(`${numeral} is no chord`);
  const root = modulo(key.tonic + step + { b: -1, "#": 1, "": 0 }[accidental as "b" | "#" | ""], 12);
  const third = degree === degree.toUpperCase() ? 4 : 3;
  const pitchClasses = intervals(third).map((interval) => modulo(root + interval, 12));
  return { numeral, root, pitchClasses, scale: scaleOver(pitchClasses, key) };
}

function scaleOver(pitchClasses: number[], key: Key): number[] {
  const own = scales[key.mode].map((interval) => modulo(key.tonic + interval, 12));
  const foreign = pitchClasses.filter((pitchClass) => !own.includes(pitchClass));
  const displaced = (pitchClass: number): boolean =>
    foreign.some((note) => modulo(note - pitchClass, 12) === 1 || modulo(pitchClass - note, 12) === 1) &&
    !pitchClasses.includes(pitchClass);
  return [...own.filter((pitchClass) => !displaced(pitchClass)), ...foreign].sort((a, b) => a - b);
}

/**
 * Returns the note nearest to `target` that is in the range and has one of the pitch classes. If there is no such
 * note, returns the rounded `target`.
 */
export function nearestPitch(
  target: number,
  pitchClasses: readonly number[],
  lowest: number,
  highest: number,
): number {
  let best = Math.round(target);
  let bestDistance = Number.POSITIVE_INFINITY;
  for (let pitch = lowest; pitch <= highest; pitch++) {
    const distance = Math.abs(pitch - target);
    if (pitchClasses.includes(modulo(pitch, 12)) && distance < bestDistance) {
      best = pitch;
      bestDistance = distance;
    }
  }
  return best;
}

/** Moves a note along a scale by a number of scale degrees. */
export function moveAlong(pitch: number, scale: readonly number[], steps: number): number {
  const direction = Math.sign(steps);
  let current = pitch;
  for (let left = Math.abs(steps); left > 0; ) {
    current += direction;
    if (scale.includes(modulo(current, 12))) left--;
  }
  return current;
}

export function modulo(value: number, divisor: number): number {
  return ((value % divisor) + divisor) % divisor;
}
