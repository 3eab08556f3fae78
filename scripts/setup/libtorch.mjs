/**
 * Finds libtorch, or installs it: LIBTORCH, the torch package of python3, the cached copy,
 * else the pinned wheel by pip, in the build that the driver and the GPU run.
 */
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { cacheRoot, runShown, SetupError, say } from "./run.mjs";
import { installPip } from "./system.mjs";

const PINNED = "2.13.0";
const OLDEST_MINOR = 11;
const NEWEST_MINOR = 14;

/** Returns { directory, version } of a libtorch with headers and libraries. */
export function provideLibtorch() {
  return findLibtorch() ?? installLibtorch();
}

/** The same, or null where this machine has none that `fits`; where LIBTORCH names one, no other is looked for. */
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
 * Builds of the wheel, newest first: the oldest driver that each runs on, and the compute capabilities that it has kernels
 * for (https://docs.nvidia.com/cuda/cuda-toolkit-release-notes, https://pytorch.org/get-started).
 */
const CUDA_BUILDS = [
  { build: "cu130", driver: 580, capabilities: [7.5, Number.POSITIVE_INFINITY] },
  { build: "cu128", driver: 570, capabilities: [7.5, 12.1] },
  { build: "cu126", driver: 525, capabilities: [5.0, 9.0] },
];
const WHEELS = "https://download.pytorch.org/whl";

let chosenBuild;

/** The build of the wheel for this machine: cpu, or one of CUDA_BUILDS by what NVIDIA's tool says of the first GPU. */
function wheelBuild() {
  chosenBuild ??= chooseBuild();
  return chosenBuild;
}

function chooseBuild() {
  const query = ["--query-gpu=driver_version,compute_cap,name", "--format=csv,noheader"];
  const { status, stdout } = spawnSync("nvidia-smi", query, { encoding: "utf8" });
  if (status !== 0 || stdout.trim() === "") return "cpu";
  const [driver, capability, name] = stdout.trim().split("\n")[0].split(", ");
  const fits = ({ driver: oldest, capabilities: [lowest, highest] }) =>
    Number.parseFloat(driver) >= oldest && Number(capability) >= lowest && Number(capability) <= highest;
  const build = CUDA_BUILDS.find(fits)?.build;
  if (build === undefined) {
    say(
      `THE GPU IS NOT USED: ${name} (compute capability ${capability}) with driver ${driver} runs no build of torch ${PINNED}. Install driver ${CUDA_BUILDS.at(-1).driver} or later, or set LIBTORCH to a build for it. Songs are made on the CPU`,
    );
  }
  return build ?? "cpu";
}

const cachedDirectory = () =>
  join(cacheRoot, "libtorch", `torch-${PINNED}${wheelBuild() === "cu130" ? "" : `+${wheelBuild()}`}`);

const fromCache = () => inspect(join(cachedDirectory(), "torch"));

/** Installs the pinned libtorch into the cache, in the build for this machine. */
export function installLibtorch() {
  installPip();
  const build = wheelBuild();
  const target = cachedDirectory();
  const partial = `${target}.part`;
  say(`installing libtorch ${PINNED}+${build} into ${target} (once per machine)`);
  const pip = (...args) => {
    rmSync(partial, { recursive: true, force: true });
    runShown("python3", ["-m", "pip", "install", "--target", partial, ...args]);
  };
  // Without CUDA the wheel's dependencies are Python's alone.
  const wheel = [...(build === "cpu" ? ["--no-deps"] : []), `torch==${PINNED}+${build}`];
  const attempts = [
    wheel, // as pip is set up here
    ["--extra-index-url", `${WHEELS}/${build}`, ...wheel],
    ...(build === "cpu" || build === "cu130" ? [[`torch==${PINNED}`]] : []),
  ];
  for (const [index, args] of attempts.entries()) {
    try {
      pip(...args);
      break;
    } catch (error) {
      if (index === attempts.length - 1) throw error;
      say(`that index has no such wheel; trying pip install ${attempts[index + 1].join(" ")}`);
    }
  }
  rmSync(target, { recursive: true, force: true });
  renameSync(partial, target);
  const found = fromCache();
  if (!found)
    throw new SetupError(`pip installed torch into ${target}, but no headers and libraries are there`);
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
