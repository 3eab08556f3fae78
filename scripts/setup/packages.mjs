/**
 * Installs npm packages in the versions of the lock file. Not `npm ci`: it refuses a lock file that lacks the optional packages
 * of other platforms, and registries that mirror only some platforms write such lock files.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { projectRoot, run, say } from "./run.mjs";
import { fingerprint, isDone, markDone } from "./stamp.mjs";

export function installPackages() {
  const print = fingerprint(["package.json", "package-lock.json"], process.version);
  if (existsSync(join(projectRoot, "node_modules")) && isDone("packages", print)) return;
  say("installing npm packages");
  run("npm", ["install", "--no-audit", "--no-fund"], { log: "npm" });
  markDone("packages", print);
}
