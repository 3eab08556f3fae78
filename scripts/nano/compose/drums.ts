/** Writes drums: bars of patterns, fills before a new section, and crash cymbals on first beats. */
import { readGrid } from "./grid.js";
import type { Note } from "./piece.js";
import type { Random } from "./random.js";

/** General MIDI drum map. */
const drumPitches = {
  kick: 36,
  rim: 37,
  snare: 38,
  clap: 39,
  brush: 40,
  lowTom: 45,
  midTom: 47,
  highTom: 50,
  hat: 42,
  pedal: 44,
  open: 46,
  crash: 49,
  ride: 51,
  tambourine: 54,
  cowbell: 56,
  conga: 63,
  mutedConga: 62,
  lowConga: 64,
  cabasa: 69,
  shaker: 70,
  claves: 75,
  triangle: 81,
} as const;

export type DrumName = keyof typeof drumPitches;

/** Pitches of the drums in the centre of the mix. */
export const centreDrums: ReadonlySet<number> = new Set(
  (["kick", "rim", "snare", "clap", "brush"] as const).map((name) => drumPitches[name]),
);

/** A grid for each drum: "X" is an accent, "x" a hit, "o" a ghost note. */
export type DrumPattern = (readonly [drum: DrumName, grid: string])[];

export function parseDrumName(name: string): DrumName {
  if (!(name in drumPitches)) throw new RangeError(`${name} is no drum`);
  return name as DrumName;
}

const velocities: Record<string, number> = { X: 112, x: 90, o: 52 };

export function drumBar(pattern: DrumPattern, firstStep: number, energy: number): Note[] {
  return pattern.flatMap(([drum, grid]) =>
    readGrid(grid).map(({ step, symbol }) => ({
      start: firstStep + step,
      length: 1,
      pitch: drumPitches[drum],
      velocity: (velocities[symbol] ?? 90) * (0.65 + 0.35 * energy),
    })),
  );
}

export function crashCymbal(firstStep: number): Note {
  return { start: firstStep, length: 4, pitch: drumPitches.crash, velocity: 96 };
}

/**
 * Writes a fill of sixteenth or eighth notes. It plays `drums` in order and gets louder towards the bar line.
 */
export function drumFill(drums: readonly DrumName[], endStep: number, steps: number, random: Random): Note[] {
  const stride = random.chance(0.5) ? 1 : 2;
  const notes: Note[] = [];
  for (let offset = 0; offset < steps; offset += stride) {
    if (offset > 0 && random.chance(0.2)) continue;
    const drum = drums[Math.floor((offset / steps) * drums.length)] as DrumName;
    notes.push({
      start: endStep - steps + offset,
      length: 1,
      pitch: drumPitches[drum],
      velocity: 68 + (38 * offset) / steps,
    });
  }
  return notes;
}
