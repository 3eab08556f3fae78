/**
 * Runs system programs and prints messages for the user. Plain JavaScript, because set-up uses it before TypeScript
 * is compiled.
 */
import { spawnSync } from "node:child_process";
import { homedir } from "node:os";
import { join } from "node:path";

/** Folder of downloads and builds that all installations on this machine share. */
export const cacheRoot =
  process.env.CARILLON_CACHE ?? join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "carillon");

/** A failure that the user can fix; shown without a stack. */
export class SetupError extends Error {}

export function say(message) {
  process.stderr.write(`carillon set-up: ${message}\n`);
}

/** Runs a program to its end and shows its output. Throws SetupError if it fails. */
export function runWithOutput(command, args) {
  const { error, status } = spawnSync(command, args, { stdio: ["ignore", 2, 2] });
  if (error) throw new SetupError(`${command} could not be started: ${error.message}`);
  if (status !== 0) throw new SetupError(`${command} ${args.join(" ")} failed: see above`);
}

/** Whether `command` is installed and runs with `args` successfully. */
export function canRun(command, args = ["--version"]) {
  return spawnSync(command, args, { stdio: "ignore" }).status === 0;
}
