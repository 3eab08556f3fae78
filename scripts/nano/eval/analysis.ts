/** The measurements of analyse.py, by name. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { runPython } from "../python.js";
import type { Measurement } from "./table.js";

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

/** @param directory keeps what was measured before */
export function analyse(manifest: Manifest, directory: string): Analysis {
  mkdirSync(directory, { recursive: true });
  const [input, output] = [join(directory, "manifest.json"), join(directory, "measurements.json")];
  writeFileSync(input, JSON.stringify(manifest, null, 1));
  runPython("eval", "analyse.py", [input, output, join(directory, "kept")]);
  return JSON.parse(readFileSync(output, "utf8")) as Analysis;
}
