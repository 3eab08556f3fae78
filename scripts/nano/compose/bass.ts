/** Writes the bass. Each bar has a grid, whose symbols are degrees of the chord that sounds. */
import { readGrid } from "./grid.js";
import type { ChordSpan } from "./harmony.js";
import type { Note } from "./piece.js";
import { modulo, moveAlong, nearestPitch } from "./theory.js";

/** MIDI note around which the bass plays its root notes. */
const centre = 36;

/**
 * @param grid symbols of a bar. R: root; O: octave of the root; 3: third; 5: fifth; 7: highest note of the chord;
 * A: a step towards the next root
 * @param spanAt returns the chord that sounds at a step of the piece
 */
export function bassBar(
  grid: string,
  firstStep: number,
  spanAt: (step: number) => ChordSpan,
  range: { lowest: number; highest: number },
  energy: number,
): Note[] {
  return readGrid(grid).map(({ step, steps, symbol }) => {
    const start = firstStep + step;
    const span = spanAt(start);
    const root = nearestPitch(centre, [span.chord.root], range.lowest, range.highest);
    return {
      start,
      length: steps * 0.95,
      pitch: fold(degree(symbol, root, span, spanAt), range),
      velocity: (step === 0 ? 98 : 86) * (0.65 + 0.35 * energy),
    };
  });
}

function degree(symbol: string, root: number, span: ChordSpan, spanAt: (step: number) => ChordSpan): number {
  const { pitchClasses, scale } = span.chord;
  const above = (index: number): number =>
    root + modulo((pitchClasses[Math.min(index, pitchClasses.length - 1)] ?? root) - root, 12);
  switch (symbol) {
    case "R":
      return root;
    case "O":
      return root + 12;
    case "3":
      return above(1);
    case "5":
      return above(Math.min(2, pitchClasses.length - 1));
    case "7":
      return above(pitchClasses.length > 3 ? 3 : 2);
    case "A": {
      const next = nearestPitch(root, [spanAt(span.end).chord.root], root - 8, root + 8);
      return moveAlong(next, scale, next > root ? -1 : 1);
    }
    default:
      throw new RangeError(`${symbol} is not a bass symbol (R, O, 3, 5, 7 or A)`);
  }
}

function fold(pitch: number, { lowest, highest }: { lowest: number; highest: number }): number {
  let folded = pitch;
  while (folded > highest) folded -= 12;
  while (folded < lowest) folded += 12;
  return folded;
}
