/**
 * A genre: tempo, harmony, patterns, band and words. Each genre is written as a text chart for `parseGenre`.
 */
import { type DrumName, type DrumPattern, parseDrumName } from "../compose/drums.js";
import { type InstrumentName, parseInstrumentName } from "../compose/instruments.js";
import type { MelodyStyle } from "../compose/melody.js";
import type { PerformanceFeel } from "../compose/performance.js";
import { type Ending, type Metre, metres, type Role, roles } from "../compose/piece.js";

/** Tempo range and patterns of a genre in one metre. */
export interface MetreStyle {
  metre: Metre;
  weight: number;
  /** Minimum and maximum beats per minute. In 6/8 a beat is a dotted quarter. */
  bpm: readonly [number, number];
  /** Drum patterns of verses (`light`) and of choruses (`full`); empty for a genre without drums. */
  light: DrumPattern[];
  full: DrumPattern[];
  bass: string[];
  comp: string[];
  /** Arpeggios and ostinatos that play beside the chords; may be empty. */
  pulse: string[];
}

const modes = ["major", "minor"] as const;
const parts = modes.flatMap((mode) => [`${mode} verse`, `${mode} chorus`, `${mode} bridge`] as const);
type Progressions = Record<(typeof parts)[number], readonly string[]>;

export interface Genre {
  name: string;
  /** Names of the genre in captions. */
  names: readonly string[];
  moods: readonly string[];
  /** Places and occasions for this music. */
  scenes: readonly string[];
  /** Phrases that describe what is typical of the genre without naming it. */
  marks: readonly string[];
  minorShare: number;
  /** How pieces end, with the share of pieces that end so. */
  endings: readonly { ending: Ending; weight: number }[];
  /** Usual level of the sides below the middle of the mix, in decibels: about -12 for narrow genres, -6 for wide ones. */
  sideDecibels: number;
  feel: PerformanceFeel;
  progressions: Progressions;
  styles: readonly MetreStyle[];
  /**
   * For each role: the share of pieces that have this role, and the instruments that may play the role.
   * Every piece has comping and bass.
   */
  band: Partial<Record<Role, readonly [share: number, ...InstrumentName[]]>>;
  /** Drums of a fill, in the order in which they are played. */
  fill: readonly DrumName[];
  melody: MelodyStyle;
}

/**
 * Parses the chart of a genre.
 * @param chart rows of a name and a value, then one chart per metre (see `parseMetreStyle`). Values of the rows:
 * - names, moods, scenes, marks: phrases
 * - minor: share of pieces in a minor key
 * - ends: shares of the endings; width: level of the sides in decibels
 * - feel, melody: named numbers, separated by commas
 * - "major verse" to "minor bridge": chord progressions, separated by " / "
 * - drums to lead (roles): share of pieces that have this role, then the instruments that may play the role
 * - fill: drums in the order in which they are played
 * @throws RangeError for an unknown instrument or drum, or a grid that is not one bar long
 */
export function parseGenre(chart: string): Genre {
  const [table = "", ...styles] = chart.split(/^(?= *\d\/\d, )/m);
  const row = (name: string): string => new RegExp(`^ *${name} +(.+)$`, "m").exec(table)?.[1] ?? "";
  const list = (name: string): string[] => row(name).split(", ");
  const numbers = (name: string): Record<string, number> =>
    Object.fromEntries(
      list(name).map((entry) => {
        const [field, value] = entry.split(" ");
        return [field, Number(value)];
      }),
    );
  const band = roles.filter(row).map((role) => {
    const [share, ...names] = list(role);
    return [role, [Number(share), ...names.map(parseInstrumentName)]];
  });
  return {
    ...{ name: row("name"), names: list("names"), moods: list("moods") },
    ...{ scenes: list("scenes"), marks: list("marks") },
    minorShare: Number(row("minor")),
    endings: Object.entries(numbers("ends")).map(([ending, weight]) => ({
      ending: ending as Ending,
      weight,
    })),
    sideDecibels: Number(row("width")),
    feel: numbers("feel") as unknown as PerformanceFeel,
    progressions: Object.fromEntries(
      parts.map((part) => [part, row(part).split(" / ")]),
    ) as unknown as Progressions,
    styles: styles.map(parseMetreStyle),
    band: Object.fromEntries(band) as Genre["band"],
    fill: list("fill").map(parseDrumName),
    melody: numbers("melody") as unknown as MelodyStyle,
  };
}

/**
 * Parses the chart of a metre.
 * @param chart a line with metre, weight and tempo, then one line per pattern. A drum pattern (`light`, `full`) has
 * pairs of drum and grid. The patterns `bass`, `comp` and `pulse` have grids.
 * @throws RangeError for an unknown drum, or a grid that is not one bar long
 */
export function parseMetreStyle(chart: string): MetreStyle {
  const [, metre, weight, slowest, fastest] = /(\S+), weight (\S+), (\d+)-(\d+) bpm/.exec(chart) ?? [];
  const { barSteps } = metres[metre as Metre];
  const rowsOf = (part: string): string[] =>
    [...chart.matchAll(new RegExp(`^ *${part} +(.+)$`, "gm"))].map(([, row = ""]) => row);
  const bar = (grid: string): string => {
    if (grid.length !== barSteps)
      throw new RangeError(`${grid} has ${grid.length} steps, but a bar of ${metre} has ${barSteps}`);
    return grid;
  };
  const drumsOf = (part: string): DrumPattern[] =>
    rowsOf(part).map((row) =>
      [...row.matchAll(/(\S+) +(\S+)/g)].map(([, drum = "", grid = ""]) => [parseDrumName(drum), bar(grid)]),
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
