/** Chords in rhythm: comping, arpeggios and held pads. */
import { readGrid } from "./grid.js";
import { type ChordSpan, voicing } from "./harmony.js";
import type { Note } from "./piece.js";

/** Creates a writer of chords. The writer remembers its last voicing, and chooses the next voicing near it. */
export function createAccompanist(centre: number, { lowest, highest }: { lowest: number; highest: number }) {
  let previous: number[] = [];

  const voicesOf = ({ chord }: ChordSpan): number[] => {
    previous = voicing(chord, previous, centre);
    return previous.map((pitch) => (pitch < lowest ? pitch + 12 : pitch > highest ? pitch - 12 : pitch));
  };

  const select = (symbol: string, voices: number[]): number[] => {
    if (symbol === "x" || symbol === "X") return voices;
    if (symbol === "b") return voices.slice(0, 1);
    if (symbol === "u") return voices.slice(1);
    const index = Number(symbol);
    const pitch = (voices[index % voices.length] ?? 60) + 12 * Math.floor(index / voices.length);
    return [pitch > highest ? pitch - 12 : pitch];
  };

  return {
    /**
     * Writes the notes of one bar from a grid. Symbols: x is the chord, X the accented chord, b its lowest
     * note, u its other notes, and 0 .. 7 are single notes of its arpeggio.
     */
    bar(grid: string, firstStep: number, spanAt: (step: number) => ChordSpan, energy: number): Note[] {
      return readGrid(grid).flatMap(({ step, steps, symbol }) => {
        const start = firstStep + step;
        const velocity = (symbol === "X" ? 92 : symbol === "u" ? 68 : 76) * (0.65 + 0.35 * energy);
        const pitches = select(symbol, voicesOf(spanAt(start)));
        return pitches.map((pitch) => ({ start, length: steps * 0.95, pitch, velocity }));
      });
    },

    /** Holds each chord for its whole span. */
    pad(spans: readonly ChordSpan[], velocity: number): Note[] {
      return spans.flatMap((span) => {
        const { start, end } = span;
        return voicesOf(span).map((pitch) => ({ start, length: (end - start) * 0.98, pitch, velocity }));
      });
    },
  };
}
