/** npm packages, exactly as the lock file has them. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { projectRoot, run, say } from "./run.mjs";
import { fingerprint, isDone, markDone } from "./stamp.mjs";

export function installPackages() {
  const print = fingerprint(["package.json", "package-lock.json"], process.version);
  if (existsSync(join(projectRoot, "node_modules")) && isDone("packages", print)) return;
  say("installing npm packages");
  run("npm", ["ci", "--no-audit", "--no-fund"], { log: "npm" });
  markDone("packages", print);
}
