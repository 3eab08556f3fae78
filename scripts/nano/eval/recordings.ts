/** Recordings of one column of the table: input manifest and results of analyse.py. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { runPython } from "../python.js";
import type { Column, Measurement, PromptFacts } from "./table.js";

export interface Recordings {
  title: string;
  paths: string[];
  /** The request of each. */
  asked: readonly PromptFacts[];
  /** Time to make each; empty if it was not measured. */
  computeSeconds: number[];
  /** Recordings whose sections are known. */
  songs: Song[];
  /** Pairs of recordings that should differ, such as two seeds of one prompt. */
  siblings: [string, string][];
  /** A recording and its reconstruction. */
  reconstructions: [string, string][];
}

export interface Song {
  path: string;
  /** Name, start and end in seconds. */
  sections: [string, number, number][];
}

export interface Manifest {
  /** Training data of the genre classifier. */
  training: { path: string; genre: string }[];
  recordings: { name: string; path: string }[];
  songs: (Song & { name: string })[];
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
  /** Whether the second chorus returns; null without two choruses and a verse. */
  songs: Record<string, boolean | null>;
  /** Standard deviations of features. */
  siblings: Record<string, number>;
  /** Log-mel distances, dB. */
  reconstructions: Record<string, number>;
}

export function manifestOf(columns: readonly Recordings[], training: Manifest["training"]): Manifest {
  return {
    training,
    recordings: columns.flatMap(({ paths }) => paths.map((path) => ({ name: path, path }))),
    songs: columns.flatMap(({ songs }) => songs.map((song) => ({ name: song.path, ...song }))),
    siblings: columns.flatMap(({ siblings }) => siblings.map(namedPair)),
    reconstructions: columns.flatMap(({ reconstructions }) => reconstructions.map(namedPair)),
  };
}

/** The measurements of analyse.py. @param directory keeps earlier measurements */
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
    returns: recordings.songs.flatMap(({ path }) => found(analysis.songs, path) ?? []),
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
