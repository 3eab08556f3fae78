/** Runs programs in the project folder and logs their output. */
import { spawnSync } from "node:child_process";
import { closeSync, existsSync, mkdirSync, openSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { cacheRoot, SetupError } from "../../src/libtorch/programs.mjs";

export { cacheRoot, canRun, runWithOutput, SetupError, say } from "../../src/libtorch/programs.mjs";

export const projectRoot = resolve(dirname(fileURLToPath(import.meta.url)), "../..");

export const manifest = JSON.parse(readFileSync(join(projectRoot, "package.json"), "utf8"));

/** Whether this is a clone of the repository. In an installed package only the native core can be built. */
export const isClone = existsSync(join(projectRoot, "tsconfig.json"));

/** Runs a program and writes its output to a log. Returns stdout. Throws SetupError with the last lines if it fails. */
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
