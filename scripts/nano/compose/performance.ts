/** Humanises notes: swing, and random variation of timing and velocity. */
import type { Note } from "./piece.js";
import type { Random } from "./random.js";

export interface PerformanceFeel {
  /** Length of the notes that swing, in steps: 1 for sixteenths, 2 for eighths. */
  swingSteps: 1 | 2;
  /**
   * Delay of the second note of each pair, as a share of the note's length: 0 is straight, 1/3 is triplets.
   */
  swing: number;
  /** Standard deviation of note starts, in seconds. */
  timingSeconds: number;
  /** Standard deviation of velocities. */
  touch: number;
}

export function humanise(
  notes: readonly Note[],
  feel: PerformanceFeel,
  stepSeconds: number,
  random: Random,
): Note[] {
  return notes.map((note) => {
    const start = swung(note.start, feel) + (gaussian(random) * feel.timingSeconds) / stepSeconds;
    const end = swung(note.start + note.length, feel);
    return {
      ...note,
      start: Math.max(0, start),
      length: Math.max(0.25, end - start),
      velocity: Math.round(Math.max(20, Math.min(127, note.velocity + gaussian(random) * feel.touch))),
    };
  });
}

/** Additional length of the last bar before the final chord of a piece that slows down, in bars. */
export const slowShare = 0.35;

/** Slows down the bar from step `start` on, ever more, and moves what follows. */
export function slowDown(notes: readonly Note[], start: number, barSteps: number): Note[] {
  const later = (step: number): number => {
    const share = Math.max(0, Math.min(1, (step - start) / barSteps));
    return step + slowShare * barSteps * share ** 2;
  };
  return notes.map((note) => {
    const moved = later(note.start);
    return { ...note, start: moved, length: later(note.start + note.length) - moved };
  });
}

/** Moves a step in time by swing, which lengthens the first note of each pair and shortens the second. */
function swung(step: number, { swingSteps, swing }: PerformanceFeel): number {
  const pair = 2 * swingSteps;
  const base = Math.floor(step / pair) * pair;
  const within = (step - base) / swingSteps;
  const warped = within < 1 ? within * (1 + swing) : 1 + swing + (within - 1) * (1 - swing);
  return base + warped * swingSteps;
}

/** Random number from -3 to 3: the Irwin-Hall approximation of a standard normal distribution. */
function gaussian(random: Random): number {
  return 2 * (random.unit() + random.unit() + random.unit() - 1.5);
}
