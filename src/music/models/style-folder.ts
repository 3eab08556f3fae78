/** Folders in which a training run stores what it has trained: `NAME/final`, or `NAME/checkpoints/...` if it was stopped. */
import { basename, dirname } from "node:path";

export const FINAL = "final";
export const CHECKPOINTS = "checkpoints";

/** The folder that has the name of the style. */
export function styleFolder(path: string): string {
  const around = dirname(path);
  if (basename(path) === FINAL) return around;
  return basename(around) === CHECKPOINTS ? dirname(around) : path;
}
