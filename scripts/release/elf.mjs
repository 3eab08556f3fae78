/** System requirements of a shared library, read with binutils. */
import { readFileSync, writeFileSync } from "node:fs";
import { basename } from "node:path";
import { run, SetupError } from "../setup/run.mjs";

/** Newest symbol versions that a package may require; Debian 10, RHEL 8 and Ubuntu 20.04 provide them. */
const NEWEST = { GLIBC: "2.28", GLIBCXX: "3.4.25", CXXABI: "1.3.11" };

export function librariesNeeded(path) {
  return [...run("readelf", ["-dW", path]).matchAll(/\(NEEDED\).*\[(.+)\]/g)].map(([, name]) => name);
}

/** @throws SetupError that names a symbol whose required version exceeds NEWEST */
export function checkSymbolVersions(path) {
  for (const [line, family, version] of run("readelf", ["--dyn-syms", "-W", path]).matchAll(
    /^.*\bUND\b.*@(GLIBC|GLIBCXX|CXXABI)_([\d.]+).*$/gm,
  )) {
    if (compareVersions(version, NEWEST[family]) <= 0) continue;
    const symbol = line.trim().split(/\s+/)[7];
    throw new SetupError(
      `${basename(path)} requires ${symbol}, newer than ${family}_${NEWEST[family]}: add the symbol to native/addon/old_symbols.cpp, or build on a system with an older glibc and compiler`,
    );
  }
}

function compareVersions(a, b) {
  const [left, right] = [a, b].map((version) => version.split(".").map(Number));
  const index = left.findIndex((part, i) => part !== (right[i] ?? 0));
  return index < 0 ? left.length - right.length : left[index] - (right[index] ?? 0);
}

/** Sets the library search path to the library's own folder, by overwriting the path in the file. */
export function setOwnFolderAsRunPath(path) {
  const runPath = /\((?:RUNPATH|RPATH)\).*\[(.*)\]/.exec(run("readelf", ["-dW", path]))?.[1];
  if (runPath === undefined || runPath === "$ORIGIN") return;
  const bytes = readFileSync(path);
  const at = bytes.indexOf(`${runPath}\0`);
  const origin = Buffer.alloc(runPath.length);
  if (at < 0 || origin.write("$ORIGIN") < "$ORIGIN".length)
    throw new SetupError(`cannot replace the run path ${runPath} of ${path} by $ORIGIN`);
  origin.copy(bytes, at);
  writeFileSync(path, bytes);
}
