/** The recordings of a column of the table, what is to be measured of them, and what was. */
import type { Analysis, Manifest } from "./analysis.js";
import type { Asked, Column } from "./table.js";

export interface Recordings {
  title: string;
  paths: string[];
  /** What each of them was made for. */
  asked: readonly Asked[];
  /** What making them took; empty where nobody measured. */
  computeSeconds: number[];
  /** Two recordings that ought to differ, as of two seeds. */
  siblings: [string, string][];
  /** A recording and what became of it. */
  reconstructions: [string, string][];
}

export function manifestOf(columns: readonly Recordings[], training: Manifest["training"]): Manifest {
  return {
    training,
    recordings: columns.flatMap(({ paths }) => paths.map((path) => ({ name: path, path }))),
    siblings: columns.flatMap(({ siblings }) => siblings.map(namedPair)),
    reconstructions: columns.flatMap(({ reconstructions }) => reconstructions.map(namedPair)),
  };
}

export function columnOf(recordings: Recordings, analysis: Analysis): Column {
  const distances = (kind: "siblings" | "reconstructions"): number[] =>
    recordings[kind].map((pair) => found(analysis[kind], namedPair(pair).name));
  return {
    title: recordings.title,
    asked: recordings.asked,
    measurements: recordings.paths.map((path) => found(analysis.recordings, path)),
    computeSeconds: recordings.computeSeconds,
    seedDistances: distances("siblings"),
    reconstructionDistances: distances("reconstructions"),
  };
}

function namedPair([one, other]: [string, string]): { name: string; one: string; other: string } {
  return { name: `${one} ${other}`, one, other };
}

function found<Value>(values: Record<string, Value>, name: string): Value {
  const value = values[name];
  if (value === undefined) throw new RangeError(`${name} was not measured`);
  return value;
}
