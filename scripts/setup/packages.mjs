/**
 * Installs npm packages in the versions of the lock file. Does not run `npm ci`, because `npm ci` rejects a lock file
 * without the optional packages of other platforms. Registries that mirror only some platforms cause such lock files.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { projectRoot, run, say } from "./run.mjs";
import { fingerprint, isStepDone, markStepDone } from "./stamp.mjs";

export function installPackages() {
  const print = fingerprint(["package.json", "package-lock.json"], process.version);
  if (existsSync(join(projectRoot, "node_modules")) && isStepDone("packages", print)) return;
  say("installing npm packages");
  run("npm", ["install", "--no-audit", "--no-fund"], { log: "npm" });
  markStepDone("packages", print);
}
