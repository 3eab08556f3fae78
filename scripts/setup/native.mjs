/**
 * Builds the native code with cmake-js and stores the result in the shared cache under a hash of its sources, so that a
 * second clone with the same sources only copies it.
 */
import { spawnSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, renameSync } from "node:fs";
import { availableParallelism } from "node:os";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { findLibtorch, provideCpuLibtorch, provideLibtorch } from "./libtorch.mjs";
import { cacheRoot, manifest, projectRoot, run, SetupError, say } from "./run.mjs";
import { fingerprint, isStepDone, markStepDone } from "./stamp.mjs";
import { installBuildTools } from "./system.mjs";

/**
 * The parts that can be built. `options`: CMake options in addition to those of the addon. `products`: files that
 * the build produces. `directory`: build directory, if it is not the common one.
 */
export const ADDON = { name: "addon", products: ["build/Release/carillon.node"] };
export const PROGRAMS = {
  name: "programs",
  options: ["CARILLON_PROGRAMS"],
  products: [
    "build/native/test/carillon-test",
    "build/native/test/carillon-parity",
    "build/native/test/carillon-device-test",
    "build/native/test/fake_cuda/libtorch_cuda.so",
    "build/native/bench/carillon-bench",
  ],
};
/** Unit tests, built with the address and undefined-behaviour sanitizers. */
export const SANITIZED_TESTS = {
  name: "sanitized",
  options: ["CARILLON_PROGRAMS", "CARILLON_SANITIZE"],
  directory: "build/sanitized",
  target: "carillon-test",
  products: ["build/sanitized/native/test/carillon-test"],
};

/** Hash of the native sources. */
export const sourcesHash = () => fingerprint(["native", "CMakeLists.txt"]);

/**
 * Builds the addon for a package, and returns the path of the addon and the libtorch that it was built with. The
 * addon also runs with other builds of the same libtorch version.
 */
export function buildForRelease(version) {
  const libtorch = provideCpuLibtorch(version);
  const directory = `build/libtorch-${version}`;
  const part =
    findLibtorch()?.directory === libtorch.directory
      ? ADDON
      : {
          name: `addon-${version}`,
          options: ["CARILLON_ANY_LIBTORCH"],
          directory,
          target: "carillon",
          products: [`${directory}/Release/carillon.node`],
        };
  buildNative([part], libtorch);
  return { addon: join(projectRoot, part.products[0]), libtorch };
}

export function buildNative(parts = [ADDON], libtorch = provideLibtorch()) {
  const compiler = spawnSync("c++", ["--version"], { encoding: "utf8" }).stdout ?? "";
  const environment = [libtorch.directory, libtorch.version, compiler, process.arch];
  const outdated = parts
    .map((part) => ({
      ...part,
      print: fingerprint(["native", "CMakeLists.txt"], ...environment),
    }))
    .filter((part) => !isStepDone(part.name, part.print) || !isWhole(part, projectRoot));
  const absent = outdated.filter((part) => !isWhole(part, cachedBuild(part)));
  if (absent.length > 0) compile(libtorch, absent);
  for (const part of outdated) {
    if (absent.includes(part)) copyProducts(part, projectRoot, cachedBuild(part));
    else copyProducts(part, cachedBuild(part), projectRoot);
    markStepDone(part.name, part.print);
  }
}

function cachedBuild({ print }) {
  return join(cacheRoot, "builds", print.slice(0, 24));
}

function isWhole({ products }, root) {
  return products.every((product) => existsSync(join(root, product)));
}

function compile(libtorch, parts) {
  installBuildTools();
  const what = parts.map(({ name }) => name).join(", ");
  say(
    `building the native core (${what}) against libtorch ${libtorch.version} (some minutes, once per version)`,
  );
  const apart = parts.filter(({ directory }) => directory !== undefined);
  const together = parts.filter(({ directory }) => directory === undefined);
  if (together.length > 0) runCmake(libtorch, { options: together.flatMap(({ options = [] }) => options) });
  for (const part of apart) runCmake(libtorch, part);
  if (!parts.every((part) => isWhole(part, projectRoot)))
    throw new SetupError("the native build finished, but files are missing; remove build/ and try again");
}

const CMAKE_OPTIONS = ["CARILLON_PROGRAMS", "CARILLON_SANITIZE", "CARILLON_ANY_LIBTORCH"];

/**
 * Configures every time, because `cmake-js build` configures only new directories and would keep an earlier
 * libtorch or earlier options.
 */
function runCmake(libtorch, { options, directory = "build", target }) {
  const env = {
    ...process.env,
    LIBTORCH: libtorch.directory,
    CMAKE_BUILD_PARALLEL_LEVEL: process.env.CMAKE_BUILD_PARALLEL_LEVEL ?? String(availableParallelism()),
  };
  // In a clone cmake-js is installed; for an installed package npm fetches it.
  const program = [
    "exec",
    "--yes",
    `--package=cmake-js@${manifest.devDependencies["cmake-js"]}`,
    "--",
    "cmake-js",
  ];
  const common = ["--directory", projectRoot, "--config", "Release", "--out", join(projectRoot, directory)];
  const cmakeJs = (command, ...args) =>
    run("npm", [...program, command, ...common, ...args], { env, log: command });
  const switches = CMAKE_OPTIONS.map((name) => `--CD${name}=${options.includes(name) ? "ON" : "OFF"}`);
  cmakeJs("configure", `--CDLIBTORCH=${libtorch.directory}`, ...switches);
  cmakeJs("build", ...(target === undefined ? [] : ["--target", target]));
}

/** Copies each file atomically, because other processes may read or copy the same files. */
function copyProducts({ products }, from, to) {
  for (const product of products) {
    const target = join(to, product);
    const partial = `${target}.part-${process.pid}`;
    mkdirSync(dirname(target), { recursive: true });
    copyFileSync(join(from, product), partial);
    renameSync(partial, target);
  }
}

// Entry point of binding.gyp.
if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) buildNative();
