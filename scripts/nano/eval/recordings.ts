/** The recordings of a column of the table, what is to be measured of them, and what was. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { runPython } from "../python.js";
import type { Asked, Column, Measurement } from "./table.js";

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

export interface Manifest {
  /** What the genre classifier learns from. */
  training: { path: string; genre: string }[];
  recordings: { name: string; path: string }[];
  siblings: Pair[];
  reconstructions: Pair[];
}

interface Pair {
  name: string;
  one: string;
  other: string;
}

export interface Analysis {
  recordings: Record<string, Measurement>;
  /** Standard deviations of features. */
  siblings: Record<string, number>;
  /** Log-mel distances, dB. */
  reconstructions: Record<string, number>;
}

export function manifestOf(columns: readonly Recordings[], training: Manifest["training"]): Manifest {
  return {
    training,
    recordings: columns.flatMap(({ paths }) => paths.map((path) => ({ name: path, path }))),
    siblings: columns.flatMap(({ siblings }) => siblings.map(namedPair)),
    reconstructions: columns.flatMap(({ reconstructions }) => reconstructions.map(namedPair)),
  };
}

/** The measurements of analyse.py. @param directory keeps what was measured before */
export function analyse(manifest: Manifest, directory: string): Analysis {
  mkdirSync(directory, { recursive: true });
  const [input, output] = [join(directory, "manifest.json"), join(directory, "measurements.json")];
  writeFileSync(input, JSON.stringify(manifest, null, 1));
  runPython("eval", "analyse.py", [input, output, join(directory, "kept")]);
  return JSON.parse(readFileSync(output, "utf8")) as Analysis;
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
