/** A genre: tempo, harmony, patterns, band and words. Each genre is one table of this type. */
import { type DrumName, type DrumPattern, drumNamed } from "../compose/drums.js";
import type { InstrumentName } from "../compose/instruments.js";
import type { MelodyStyle } from "../compose/melody.js";
import type { Feel } from "../compose/performance.js";
import { type Metre, type Mode, metres, type Role } from "../compose/piece.js";

/** Patterns of a genre in one metre. */
export interface MetreStyle {
  metre: Metre;
  weight: number;
  /** Beats a minute, both ends included; a beat of 6/8 is dotted. */
  bpm: readonly [number, number];
  /** Drums of verses and of choruses; empty if the genre has none. */
  light: DrumPattern[];
  full: DrumPattern[];
  bass: string[];
  comp: string[];
  /** Arpeggios and ostinatos beside the comping; may be empty. */
  pulse: string[];
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
  progressions: Record<`${Mode} ${"verse" | "chorus" | "bridge"}`, readonly string[]>;
  styles: readonly MetreStyle[];
  /** Share of pieces that have the part, and the instruments that may play it. Comping and bass are in all. */
  band: Partial<Record<Role, readonly [share: number, ...InstrumentName[]]>>;
  /** Drums of its fills, in their order. */
  fill: readonly DrumName[];
  melody: MelodyStyle;
}

/**
 * @param chart metre, weight and tempo; then lines of patterns: `light` or `full` with pairs of drum and grid; `bass`, `comp` or
 * `pulse` with grids
 * @throws RangeError for an unknown drum, or a grid that is not one bar long
 */
export function style(chart: string): MetreStyle {
  const [, metre, weight, slowest, fastest] = /(\S+), weight (\S+), (\d+)-(\d+) bpm/.exec(chart) ?? [];
  const { barSteps } = metres[metre as Metre];
  const rowsOf = (part: string): string[] =>
    [...chart.matchAll(new RegExp(`^ *${part} +(.+)$`, "gm"))].map(([, row = ""]) => row);
  const bar = (grid: string): string => {
    if (grid.length !== barSteps) throw new RangeError(`${grid} is not a bar of ${metre}`);
    return grid;
  };
  const drumsOf = (part: string): DrumPattern[] =>
    rowsOf(part).map((row) =>
      [...row.matchAll(/(\S+) +(\S+)/g)].map(([, drum = "", grid = ""]) => [drumNamed(drum), bar(grid)]),
    );
  const gridsOf = (part: string): string[] => rowsOf(part).flatMap((row) => row.split(/ +/).map(bar));
  return {
    metre: metre as Metre,
    weight: Number(weight),
    bpm: [Number(slowest), Number(fastest)],
    light: drumsOf("light"),
    full: drumsOf("full"),
    bass: gridsOf("bass"),
    comp: gridsOf("comp"),
    pulse: gridsOf("pulse"),
  };
}
