/** Other versions of Node for tests, from the registry's package `node`. */
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { cacheRoot, canRun, run, SetupError, say } from "../setup/run.mjs";

/** The oldest and the newest version that CI tests. */
const OLDEST = "20";
const NEWEST = "24";

/** The newest version; the oldest if this process runs the newest. */
export const otherVersion = process.versions.node.startsWith(`${NEWEST}.`) ? OLDEST : NEWEST;

/**
 * Returns a PATH with a version of Node in front. Installs the version into the cache if it is missing.
 * @param {string} version such as 24 or 22.12.0
 */
export function pathWithNode(version) {
  if (!/^\d+(\.\d+){0,2}$/.test(version))
    throw new SetupError(`--node ${version}: not a version of Node, such as 24 or 22.12.0`);
  const folder = join(cacheRoot, `node-${version}`);
  const programs = join(folder, "node_modules/.bin");
  const program = join(programs, "node");
  if (!canRun(program)) {
    say(`installing Node ${version} for tests`);
    mkdirSync(folder, { recursive: true });
    if (!existsSync(join(folder, "package.json"))) writeFileSync(join(folder, "package.json"), "{}\n");
    run("npm", ["install", "--no-audit", "--no-fund", `node@${version}`], { cwd: folder, log: "node" });
    if (!canRun(program))
      throw new SetupError(`${program} does not run: remove ${folder} to install it again`);
  }
  return `${programs}${delimiter}${process.env.PATH}`;
}
