/** Recordings of one column of the table, and their measurements by analyse.py. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { runPython } from "../python.js";
import type { Column, Measured } from "./table.js";

export interface Recordings extends Omit<Column, keyof Measured> {
  paths: string[];
  /** Recordings whose sections are known. */
  forms: Form[];
  /** Pairs of recordings that should differ, such as two seeds of one prompt. */
  siblings: [string, string][];
  /** A recording and its reconstruction. */
  reconstructions: [string, string][];
}

export interface Form {
  path: string;
  /** Name, start and end in seconds. */
  sections: [string, number, number][];
}

/**
 * @param training data of the genre classifier
 * @param directory keeps earlier measurements
 */
export function analyse(
  columns: readonly Recordings[],
  training: { path: string; genre: string }[],
  directory: string,
): Column[] {
  mkdirSync(directory, { recursive: true });
  const [input, output] = [join(directory, "manifest.json"), join(directory, "measurements.json")];
  writeFileSync(input, JSON.stringify({ training, columns }, null, 1));
  runPython("eval", "analyse.py", [input, output, join(directory, "kept")]);
  const measured = JSON.parse(readFileSync(output, "utf8")) as Measured[];
  return columns.map((column, index) => ({ ...column, ...(measured[index] as Measured) }));
}
