/** Runs programs for the set-up steps and says what is happening. */
import { spawnSync } from "node:child_process";
import { closeSync, existsSync, mkdirSync, openSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

export const projectRoot = resolve(dirname(fileURLToPath(import.meta.url)), "../..");

export const manifest = JSON.parse(readFileSync(join(projectRoot, "package.json"), "utf8"));

/** An installed package has its JavaScript and its packages already; of it the native core alone can be built. */
export const isClone = existsSync(join(projectRoot, "src"));

/** Everything that a second clone on this machine can share. */
export const cacheRoot =
  process.env.CARILLON_CACHE ?? join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "carillon");

/** A failure that the person at the keyboard can mend; shown without a stack. */
export class SetupError extends Error {}

export function say(message) {
  process.stderr.write(`carillon set-up: ${message}\n`);
}

/** Runs to the end, its output for whoever waits to see. Throws SetupError where it fails. */
export function runShown(command, args) {
  const { error, status } = spawnSync(command, args, { stdio: ["ignore", 2, 2] });
  if (error) throw new SetupError(`${command} could not be started: ${error.message}`);
  if (status !== 0) throw new SetupError(`${command} ${args.join(" ")} failed: see above`);
}

/** Runs to the end with output kept in a log; throws SetupError with its last lines. Returns stdout. */
export function run(command, args, { cwd = projectRoot, env = process.env, log } = {}) {
  const logFile = log && join(cacheRoot, "logs", `${log}.log`);
  if (logFile) mkdirSync(dirname(logFile), { recursive: true });
  const output = logFile ? openSync(logFile, "w") : "pipe";
  const result = spawnSync(command, args, {
    cwd,
    env,
    encoding: "utf8",
    stdio: ["ignore", output, output],
    maxBuffer: 1 << 26,
  });
  if (logFile) closeSync(output);
  if (result.error) throw new SetupError(`${command} could not be started: ${result.error.message}`);
  if (result.status !== 0) {
    const text = logFile ? readFileSync(logFile, "utf8") : result.stdout + result.stderr;
    const tail = text.trim().split("\n").slice(-25).join("\n");
    const where = logFile ? ` (whole log: ${logFile})` : "";
    throw new SetupError(`${command} ${args.slice(0, 4).join(" ")} failed${where}:\n${tail}`);
  }
  return logFile ? "" : result.stdout;
}

/** True when `command` is there and runs. */
export function exists(command, args = ["--version"]) {
  return spawnSync(command, args, { stdio: "ignore" }).status === 0;
}
