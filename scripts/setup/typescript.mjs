/** dist/ from src/. An installed package has dist/ and no src/. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { projectRoot, run, say } from "./run.mjs";
import { fingerprint, isDone, markDone } from "./stamp.mjs";

export function buildTypeScript() {
  if (!existsSync(join(projectRoot, "src"))) return;
  const print = fingerprint(["src", "tsconfig.json", "tsconfig.build.json", "package-lock.json"]);
  if (isDone("typescript", print) && existsSync(join(projectRoot, "dist/cli.js"))) return;
  say("compiling TypeScript");
  run(process.execPath, [join(projectRoot, "node_modules/typescript/bin/tsc"), "-p", "tsconfig.build.json"]);
  markDone("typescript", print);
}
