/** Stores a content hash of the inputs of each set-up step, so that finished steps are skipped. */
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { projectRoot } from "./run.mjs";

/** Hash of files, of all files below folders except Markdown, which no step compiles, and of additional strings. */
export function fingerprint(paths, ...extra) {
  const hash = createHash("sha256");
  for (const path of paths) {
    for (const file of filesBelow(join(projectRoot, path))) {
      hash.update(relative(projectRoot, file)).update("\0").update(readFileSync(file)).update("\0");
    }
  }
  for (const text of extra) hash.update(String(text)).update("\0");
  return hash.digest("hex");
}

function filesBelow(path) {
  if (!existsSync(path)) return [];
  if (!statSync(path).isDirectory()) return [path];
  return readdirSync(path)
    .filter((name) => !name.endsWith(".md"))
    .sort()
    .flatMap((name) => filesBelow(join(path, name)));
}

const stampFile = (name) => join(projectRoot, "build", "stamps", name);

export function isStepDone(name, hash) {
  return existsSync(stampFile(name)) && readFileSync(stampFile(name), "utf8") === hash;
}

export function markStepDone(name, hash) {
  mkdirSync(dirname(stampFile(name)), { recursive: true });
  writeFileSync(stampFile(name), hash);
}
