/** The embedded model: random weights until a trained one ships, made once per machine. */
import { existsSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { cacheRoot, run, say } from "./run.mjs";
import { fingerprint } from "./stamp.mjs";

export function makeEmbeddedModel() {
  const target = join(cacheRoot, "checkpoints", "carillon-nano");
  const mark = join(target, `made-by-${fingerprint(["scripts/make_checkpoint.py"]).slice(0, 16)}`);
  if (existsSync(mark)) return;
  say("making the embedded model carillon-nano (random weights)");
  const partial = `${target}.part-${process.pid}`;
  run("python3", ["scripts/make_checkpoint.py", "--size", "nano", "--out", partial]);
  run("touch", [join(partial, mark.slice(target.length + 1))]);
  rmSync(target, { recursive: true, force: true });
  renameSync(partial, target);
}
