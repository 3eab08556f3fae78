/**
 * Finds libtorch at LIBTORCH, in python3's torch package, or in the cache. Can also install the pinned version with
 * pip, in the build for this driver and GPU. This file is plain JavaScript, because set-up runs before TypeScript is
 * compiled.
 */
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { cacheRoot, canRun, runWithOutput, SetupError, say } from "./programs.mjs";

export const hasPip = () => canRun("python3", ["-m", "pip", "--version"]);

export const PINNED_VERSION = "2.13.0";
const OLDEST_MINOR = 11;
const NEWEST_MINOR = 14;

/** @returns the first libtorch that `fits` accepts, or null. If LIBTORCH is set, only that folder is tried. */
export function findLibtorch(fits = () => true) {
  for (const find of process.env.LIBTORCH ? [fromEnvironment] : [fromPython, fromCache]) {
    const found = find();
    if (found && fits(found)) return found;
  }
  return null;
}

function fromEnvironment() {
  const directory = process.env.LIBTORCH;
  const found = inspect(directory);
  if (!found)
    throw new SetupError(
      `LIBTORCH=${directory} has no include/ATen/ATen.h and lib/. Unset it or point it at libtorch.`,
    );
  if (!supported(found.version)) {
    throw new SetupError(
      `LIBTORCH=${directory} is libtorch ${found.version}; supported are 2.${OLDEST_MINOR} to 2.${NEWEST_MINOR}.`,
    );
  }
  return found;
}

function fromPython() {
  const code =
    "import importlib.util as u; s = u.find_spec('torch'); print(s.submodule_search_locations[0] if s else '')";
  const result = spawnSync("python3", ["-c", code], { encoding: "utf8" });
  const directory = result.status === 0 ? result.stdout.trim() : "";
  const found = directory && inspect(directory);
  if (!found) return null;
  const fault = !supported(found.version)
    ? `outside 2.${OLDEST_MINOR} to 2.${NEWEST_MINOR}`
    : wheelBuild() !== "cpu" && !existsSync(join(directory, "lib/libtorch_cuda.so"))
      ? "built for the CPU, and this machine has a GPU"
      : null;
  if (fault === null) return found;
  say(`python3 has torch ${found.version}, ${fault}; not used`);
  return null;
}

/**
 * CUDA builds of the torch wheel, newest first. `driver` is the oldest driver that runs the build. `capabilities` are
 * the lowest and the highest compute capability that the build supports. Sources:
 * https://docs.nvidia.com/cuda/cuda-toolkit-release-notes, https://pytorch.org/get-started
 */
const CUDA_BUILDS = [
  { build: "cu130", driver: 580, capabilities: [7.5, Number.POSITIVE_INFINITY] },
  { build: "cu128", driver: 570, capabilities: [7.5, 12.1] },
  { build: "cu126", driver: 525, capabilities: [5.0, 9.0] },
];
const WHEELS = "https://download.pytorch.org/whl";

let choice;

/** Build of the wheel for this machine: cpu, or one of CUDA_BUILDS, chosen for the first GPU that nvidia-smi lists. */
export function wheelBuild() {
  if (choice === undefined && chooseBuild().fault)
    say(`THE GPU IS NOT USED: ${choice.fault}. Songs are made on the CPU`);
  return chooseBuild().build;
}

/** Why this machine's GPU is not supported, and what to do; undefined if it is supported or absent. */
export const gpuFault = () => chooseBuild().fault;

function chooseBuild() {
  choice ??= choose();
  return choice;
}

function choose() {
  const query = ["--query-gpu=driver_version,compute_cap,name", "--format=csv,noheader"];
  const { status, stdout } = spawnSync("nvidia-smi", query, { encoding: "utf8" });
  if (status !== 0 || stdout.trim() === "") return { build: "cpu" };
  const [driver, capability, name] = stdout.trim().split("\n")[0].split(", ");
  const fits = ({ driver: oldest, capabilities: [lowest, highest] }) =>
    Number.parseFloat(driver) >= oldest && Number(capability) >= lowest && Number(capability) <= highest;
  const build = CUDA_BUILDS.find(fits)?.build;
  if (build !== undefined) return { build };
  const fault = `${name} (compute capability ${capability}) with driver ${driver} cannot run any build of torch ${PINNED_VERSION}. Install driver ${CUDA_BUILDS.at(-1).driver} or later, or set LIBTORCH to a build for it`;
  return { build: "cpu", fault };
}

const LIBTORCHES = join(cacheRoot, "libtorch");

const cachedDirectory = (version, build) =>
  join(LIBTORCHES, `torch-${version}${build === "cu130" ? "" : `+${build}`}`);

const DOWNLOADED = /^torch-[\d.]+-downloaded$/;

/** libtorch in the cache: the pinned version, or else the newest that cuda-install.ts has downloaded. */
function fromCache() {
  const pinned = inspect(join(cachedDirectory(PINNED_VERSION, wheelBuild()), "torch"));
  if (pinned !== null || wheelBuild() !== "cu130" || !existsSync(LIBTORCHES)) return pinned;
  const downloaded = readdirSync(LIBTORCHES).filter((name) => DOWNLOADED.test(name));
  return downloaded.length === 0 ? null : inspect(join(LIBTORCHES, downloaded.sort().at(-1), "torch"));
}

/** Directory of a CUDA 13 libtorch that cuda-install.ts downloads without pip. */
export const downloadedLibtorchDirectory = (version) => join(LIBTORCHES, `torch-${version}-downloaded`);

/** Installs the pinned libtorch into the cache with pip, in the build for this machine. */
export function installLibtorch() {
  const build = wheelBuild();
  // Do not install the dependencies of the CPU wheel, because only Python code needs them.
  const wheel = build === "cpu" ? ["--no-deps"] : [];
  return installWheel(PINNED_VERSION, build, cachedDirectory(PINNED_VERSION, build), wheel);
}

/** Cached CPU build of libtorch `version`, used to compile and to package; null if it is not installed. */
export const findCpuLibtorch = (version) => inspect(join(cachedDirectory(version, "cpu"), "torch"));

export function installCpuLibtorch(version) {
  return installWheel(version, "cpu", cachedDirectory(version, "cpu"), ["--no-deps"]);
}

function installWheel(version, build, target, options) {
  const partial = `${target}.part`;
  say(`installing libtorch ${version}+${build} into ${target} (once per machine)`);
  const wheel = [...options, `torch==${version}+${build}`];
  const attempts = [
    wheel, // from the index in pip's configuration
    ["--extra-index-url", `${WHEELS}/${build}`, ...wheel],
    ...(build === "cpu" || build === "cu130" ? [[...options, `torch==${version}`]] : []),
  ];
  for (const [index, args] of attempts.entries()) {
    rmSync(partial, { recursive: true, force: true });
    try {
      runWithOutput("python3", ["-m", "pip", "install", "--target", partial, ...args]);
      break;
    } catch (error) {
      rmSync(partial, { recursive: true, force: true });
      if (index === attempts.length - 1) throw error;
      say(`pip install failed; now trying: pip install ${attempts[index + 1].join(" ")}`);
    }
  }
  rmSync(target, { recursive: true, force: true });
  renameSync(partial, target);
  const found = inspect(join(target, "torch"));
  if (!found)
    throw new SetupError(`pip installed torch into ${target}, but its headers or libraries are missing`);
  return found;
}

function inspect(directory) {
  if (!existsSync(join(directory, "include/ATen/ATen.h")) || !existsSync(join(directory, "lib"))) return null;
  return { directory, version: versionOf(directory) };
}

function versionOf(directory) {
  const python = join(directory, "version.py");
  if (existsSync(python))
    return /__version__ = '([^']+)'/.exec(readFileSync(python, "utf8"))?.[1] ?? "unknown";
  const plain = join(directory, "build-version");
  return existsSync(plain) ? readFileSync(plain, "utf8").trim() : "unknown";
}

function supported(version) {
  const match = /^2\.(\d+)\./.exec(version);
  return match !== null && Number(match[1]) >= OLDEST_MINOR && Number(match[1]) <= NEWEST_MINOR;
}
