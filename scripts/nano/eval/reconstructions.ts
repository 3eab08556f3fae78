/** What the autoencoder makes of recordings: encoded and decoded again, by the networks that training has. */
import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { runPython } from "../python.js";
import { weightsVersion } from "./versions.js";

interface Recording {
  id: string;
  path: string;
}

/** @returns a WAV file per recording, in a folder of this autoencoder; what is there already stays */
export function reconstruct(vaeDirectory: string, recordings: Recording[], directory: string): string[] {
  const own = join(directory, weightsVersion(vaeDirectory));
  mkdirSync(own, { recursive: true });
  const pairs = recordings.map(({ id, path }): [string, string] => [path, join(own, `${id}.wav`)]);
  const missing = pairs.filter(([, output]) => !existsSync(output));
  if (missing.length > 0) runPython("training", "round_trip.py", [vaeDirectory, ...missing.flat()]);
  return pairs.map(([, output]) => output);
}
