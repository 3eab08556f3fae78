/** Chord progressions and voicings. */
import type { Key } from "./piece.js";
import { type Chord, chordOf, modulo } from "./theory.js";

/** A chord that sounds from step `start` to step `end` of the piece. */
export interface ChordSpan {
  chord: Chord;
  start: number;
  end: number;
}

/**
 * Repeats a chord progression until the section ends.
 * @param progression bars separated by "|", up to two chords each: "Imaj7 | ii7 V7"
 */
export function chordSpansOf(
  progression: string,
  key: Key,
  section: { firstBar: number; bars: number },
  barSteps: number,
): ChordSpan[] {
  const bars = progression.split("|").map((bar) => bar.trim().split(/\s+/));
  const spans: ChordSpan[] = [];
  for (let bar = 0; bar < section.bars; bar++) {
    const numerals = bars[bar % bars.length] ?? [];
    const start = (section.firstBar + bar) * barSteps;
    // The second of two chords starts in the middle of the bar, or after two thirds of a bar of 12 steps
    // (3/4, 6/8).
    const change = barSteps === 12 && numerals.length === 2 ? (barSteps * 2) / 3 : barSteps / numerals.length;
    numerals.forEach((numeral, index) => {
      spans.push({
        chord: chordOf(numeral, key),
        start: start + index * change,
        end: index + 1 < numerals.length ? start + change : start + barSteps,
      });
    });
  }
  return spans;
}

/**
 * Chooses a voicing of up to four notes. Among the inversions near `centre` it minimises the movement of the
 * voices plus the distance from `centre`.
 */
export function voicing(chord: Chord, previous: readonly number[], centre: number): number[] {
  const classes = chord.pitchClasses.length > 4 ? chord.pitchClasses.slice(1) : chord.pitchClasses;
  let best: number[] = [];
  let bestCost = Number.POSITIVE_INFINITY;
  for (let lowest = centre - 10; lowest <= centre + 4; lowest++) {
    const first = classes.indexOf(modulo(lowest, 12));
    if (first < 0) continue;
    const notes = [lowest];
    for (let index = 1; index < classes.length; index++) {
      const below = notes.at(-1) as number;
      notes.push(below + 1 + modulo((classes[(first + index) % classes.length] as number) - below - 1, 12));
    }
    const middle = notes.reduce((sum, note) => sum + note, 0) / notes.length;
    const cost = movement(previous, notes) + 0.6 * Math.abs(middle - centre);
    if (cost < bestCost) {
      best = notes;
      bestCost = cost;
    }
  }
  return best;
}

/** Sum of the distances in semitones from each new note to the nearest previous note. */
function movement(from: readonly number[], to: readonly number[]): number {
  if (from.length === 0) return 0;
  return to.reduce((sum, note) => sum + Math.min(...from.map((other) => Math.abs(other - note))), 0);
}
