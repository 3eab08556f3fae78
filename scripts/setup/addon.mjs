/**
 * Builds the native side with cmake-js and keeps the result in the shared cache,
 * by the content of its sources: a second clone of the same state only copies it.
 */
import { spawnSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { availableParallelism } from "node:os";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { provideLibtorch } from "./libtorch.mjs";
import { cacheRoot, projectRoot, run, SetupError, say } from "./run.mjs";
import { fingerprint, isDone, markDone } from "./stamp.mjs";
import { installBuildTools } from "./system.mjs";

const PRODUCTS = [
  "build/Release/carillon.node",
  "build/native/test/carillon-test",
  "build/native/test/carillon-parity",
  "build/native/bench/carillon-bench",
  "build/native/eval/carillon-vae-roundtrip",
  "build/native/pretraining/carillon-pretrain",
];

export function buildAddon() {
  const libtorch = provideLibtorch();
  const compiler = spawnSync("c++", ["--version"], { encoding: "utf8" }).stdout ?? "";
  const print = fingerprint(
    ["native", "CMakeLists.txt"],
    libtorch.directory,
    libtorch.version,
    compiler,
    process.arch,
  );
  const whole = (directory) => PRODUCTS.every((product) => existsSync(join(directory, product)));
  if (isDone("addon", print) && whole(projectRoot)) return;

  const cached = join(cacheRoot, "builds", print.slice(0, 24));
  if (whole(cached)) {
    copyProducts(cached, projectRoot);
  } else {
    compile(libtorch);
    if (!whole(projectRoot))
      throw new SetupError("the native build ended without its products; remove build/ and try again");
    const partial = `${cached}.part-${process.pid}`;
    copyProducts(projectRoot, partial);
    rmSync(cached, { recursive: true, force: true });
    renameSync(partial, cached);
  }
  markDone("addon", print);
}

function compile(libtorch) {
  installBuildTools();
  say(`building the native core against libtorch ${libtorch.version} (some minutes, once per version)`);
  const env = {
    ...process.env,
    LIBTORCH: libtorch.directory,
    CMAKE_BUILD_PARALLEL_LEVEL: process.env.CMAKE_BUILD_PARALLEL_LEVEL ?? String(availableParallelism()),
  };
  const cmakeJs = join(projectRoot, "node_modules/cmake-js/bin/cmake-js");
  run(process.execPath, [cmakeJs, "build", "--config", "Release", `--CDLIBTORCH=${libtorch.directory}`], {
    env,
    log: "addon",
  });
}

function copyProducts(from, to) {
  for (const product of PRODUCTS) {
    mkdirSync(dirname(join(to, product)), { recursive: true });
    copyFileSync(join(from, product), join(to, product));
  }
}

// binding.gyp enters here.
if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) buildAddon();
