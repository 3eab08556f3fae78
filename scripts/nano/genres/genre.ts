/** A genre: tempo, harmony, patterns, band and words. Each genre is one table of this type. */
import type { DrumName, DrumPattern } from "../compose/drums.js";
import type { Progression } from "../compose/harmony.js";
import type { InstrumentName } from "../compose/instruments.js";
import type { MelodyStyle } from "../compose/melody.js";
import type { Feel } from "../compose/performance.js";
import type { Metre, Mode } from "../compose/piece.js";

/** Patterns of a genre in one metre. Grids are one bar long. */
export interface MetreStyle {
  metre: Metre;
  weight: number;
  /** Beats a minute, both ends included; a beat of 6/8 is dotted. */
  bpm: readonly [number, number];
  /** Light for verses, full for choruses; absent where the genre has no drums. */
  drums?: { light: readonly DrumPattern[]; full: readonly DrumPattern[] };
  bass: readonly string[];
  comp: readonly string[];
  /** Arpeggios and ostinatos beside the comping. */
  pulse?: readonly string[];
}

export interface Band {
  drums?: readonly InstrumentName[];
  bass: readonly InstrumentName[];
  comp: readonly InstrumentName[];
  pulse?: readonly InstrumentName[];
  pad?: readonly InstrumentName[];
  lead: readonly InstrumentName[];
}

export interface Genre {
  name: string;
  /** Its names in captions. */
  names: readonly string[];
  moods: readonly string[];
  /** Places or occasions where it is heard. */
  scenes: readonly string[];
  minorShare: number;
  feel: Feel;
  progressions: Record<Mode, Record<"verse" | "chorus" | "bridge", readonly Progression[]>>;
  styles: readonly MetreStyle[];
  band: Band;
  /** Drums of its fills, in their order. */
  fill: readonly DrumName[];
  /** Share of pieces that have the part where the band names it. */
  presence: { drums: number; pulse: number; pad: number; lead: number };
  melody: MelodyStyle;
}
