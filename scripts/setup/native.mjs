/**
 * Builds the native side with cmake-js and keeps the result in the shared cache,
 * by the content of its sources: a second clone of the same state only copies it.
 */
import { spawnSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, renameSync } from "node:fs";
import { availableParallelism } from "node:os";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { provideLibtorch } from "./libtorch.mjs";
import { cacheRoot, projectRoot, run, SetupError, say } from "./run.mjs";
import { fingerprint, isDone, markDone } from "./stamp.mjs";
import { installBuildTools } from "./system.mjs";

/**
 * Serving needs the addon alone; tests, benchmarks, training and evaluation need the programs too. The unit tests under
 * the sanitizers are a build of their own.
 */
const PRODUCTS = {
  addon: ["build/Release/carillon.node"],
  programs: [
    "build/native/test/carillon-test",
    "build/native/test/carillon-parity",
    "build/native/bench/carillon-bench",
    "build/native/eval/carillon-vae-roundtrip",
    "build/native/pretraining/carillon-pretrain",
  ],
  sanitized: ["build/sanitized/native/test/carillon-test"],
};

export function buildNative({ programs = false, sanitized = false } = {}) {
  const libtorch = provideLibtorch();
  const compiler = spawnSync("c++", ["--version"], { encoding: "utf8" }).stdout ?? "";
  const print = fingerprint(
    ["native", "CMakeLists.txt"],
    libtorch.directory,
    libtorch.version,
    compiler,
    process.arch,
  );
  const cached = join(cacheRoot, "builds", print.slice(0, 24));
  const parts = ["addon", ...(programs ? ["programs"] : []), ...(sanitized ? ["sanitized"] : [])];
  const outdated = parts.filter((part) => !isDone(part, print) || !isWhole(part, projectRoot));
  const absent = outdated.filter((part) => !isWhole(part, cached));
  if (absent.length > 0) compile(libtorch, absent);
  for (const part of outdated) {
    if (absent.includes(part)) copyProducts(part, projectRoot, cached);
    else copyProducts(part, cached, projectRoot);
    markDone(part, print);
  }
}

function isWhole(part, directory) {
  return PRODUCTS[part].every((product) => existsSync(join(directory, product)));
}

function compile(libtorch, parts) {
  installBuildTools();
  const what = parts.join(", ");
  say(
    `building the native core (${what}) against libtorch ${libtorch.version} (some minutes, once per version)`,
  );
  const env = {
    ...process.env,
    LIBTORCH: libtorch.directory,
    CMAKE_BUILD_PARALLEL_LEVEL: process.env.CMAKE_BUILD_PARALLEL_LEVEL ?? String(availableParallelism()),
  };
  const cmakeJs = (command, ...args) => {
    const program = join(projectRoot, "node_modules/cmake-js/bin/cmake-js");
    run(process.execPath, [program, command, "--config", "Release", ...args], { env, log: command });
  };
  // By itself, build configures a new directory only, and would go on with an earlier libtorch or without the programs.
  const build = (programs, configuration = [], target = []) => {
    const options = [
      `--CDLIBTORCH=${libtorch.directory}`,
      `--CDCARILLON_PROGRAMS=${programs ? "ON" : "OFF"}`,
    ];
    cmakeJs("configure", ...options, ...configuration);
    cmakeJs("build", ...configuration, ...target);
  };
  if (parts.some((part) => part !== "sanitized")) build(parts.includes("programs"));
  if (parts.includes("sanitized"))
    build(true, ["--out", "build/sanitized", "--CDCARILLON_SANITIZE=ON"], ["--target", "carillon-test"]);
  if (!parts.every((part) => isWhole(part, projectRoot)))
    throw new SetupError("the native build ended without its products; remove build/ and try again");
}

/** File by file, each whole or absent: another process may read either side meanwhile. */
function copyProducts(part, from, to) {
  for (const product of PRODUCTS[part]) {
    const target = join(to, product);
    const partial = `${target}.part-${process.pid}`;
    mkdirSync(dirname(target), { recursive: true });
    copyFileSync(join(from, product), partial);
    renameSync(partial, target);
  }
}

// binding.gyp enters here.
if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) buildNative();
