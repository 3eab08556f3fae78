/** Chords in rhythm: comping, arpeggios and held pads. */
import { readGrid } from "./grid.js";
import { type ChordSpan, voicing } from "./harmony.js";
import type { Note } from "./piece.js";

/** Keeps the last voicing, because the next one is chosen near it. */
export class Accompanist {
  #previous: number[] = [];
  readonly #centre: number;
  readonly #range: { lowest: number; highest: number };

  constructor(centre: number, range: { lowest: number; highest: number }) {
    this.#centre = centre;
    this.#range = range;
  }

  /**
   * One bar of a grid: x the chord, X accented, b its lowest note, u the others, 0 .. 7 notes of its arpeggio.
   */
  bar(grid: string, firstStep: number, spanAt: (step: number) => ChordSpan, energy: number): Note[] {
    return readGrid(grid).flatMap(({ step, steps, symbol }) => {
      const start = firstStep + step;
      const voices = this.#voices(spanAt(start));
      const velocity = (symbol === "X" ? 92 : symbol === "u" ? 68 : 76) * (0.65 + 0.35 * energy);
      return this.#notes(symbol, voices).map((pitch) => ({ start, length: steps * 0.95, pitch, velocity }));
    });
  }

  /** Each chord for as long as it sounds. */
  pad(spans: readonly ChordSpan[], velocity: number): Note[] {
    return spans.flatMap((span) =>
      this.#voices(span).map((pitch) => ({
        start: span.start,
        length: (span.end - span.start) * 0.98,
        pitch,
        velocity,
      })),
    );
  }

  #voices({ chord }: ChordSpan): number[] {
    this.#previous = voicing(chord, this.#previous, this.#centre);
    const { lowest, highest } = this.#range;
    return this.#previous.map((pitch) =>
      pitch < lowest ? pitch + 12 : pitch > highest ? pitch - 12 : pitch,
    );
  }

  #notes(symbol: string, voices: number[]): number[] {
    if (symbol === "x" || symbol === "X") return voices;
    if (symbol === "b") return voices.slice(0, 1);
    if (symbol === "u") return voices.slice(1);
    const index = Number(symbol);
    const pitch = (voices[index % voices.length] ?? 60) + 12 * Math.floor(index / voices.length);
    return [pitch > this.#range.highest ? pitch - 12 : pitch];
  }
}
