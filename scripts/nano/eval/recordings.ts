/** The recordings of a column of the table, what is to be measured of them, and what was. */
import type { Analysis, Manifest } from "./analysis.js";
import type { Column } from "./table.js";

export interface Recordings {
  title: string;
  /** In the order of the prompts. */
  paths: string[];
  /** What making them took; empty where nobody measured. */
  computeSeconds: number[];
  /** Two recordings that ought to differ. */
  siblings: [string, string][];
  /** A recording and what became of it. */
  reconstructions: [string, string][];
}

export function manifestOf(columns: readonly Recordings[], training: Manifest["training"]): Manifest {
  return {
    training,
    recordings: columns.flatMap(({ paths }) => paths.map((path) => ({ name: path, path }))),
    pairs: columns.flatMap(({ siblings, reconstructions }) =>
      [...siblings, ...reconstructions].map(([one, other]) => ({ name: pairName(one, other), one, other })),
    ),
  };
}

export function columnOf(recordings: Recordings, analysis: Analysis): Column {
  const distances = (pairs: readonly [string, string][]): number[] =>
    pairs.map(([one, other]) => found(analysis.pairs, pairName(one, other)));
  return {
    title: recordings.title,
    measurements: recordings.paths.map((path) => found(analysis.recordings, path)),
    computeSeconds: recordings.computeSeconds,
    seedDistances: distances(recordings.siblings),
    reconstructionDistances: distances(recordings.reconstructions),
  };
}

function pairName(one: string, other: string): string {
  return `${one} ${other}`;
}

function found<Value>(values: Record<string, Value>, name: string): Value {
  const value = values[name];
  if (value === undefined) throw new RangeError(`${name} was not measured`);
  return value;
}
