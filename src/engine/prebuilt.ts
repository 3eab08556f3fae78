/**
 * The prebuilt addon of this platform: a package of its own beside ours, with the addon and a libtorch for the CPU. The
 * addon runs with any build of the libtorch minor that it was made for; the one that is opened first is the one it gets.
 */
import { existsSync, readFileSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { constants } from "node:os";
import { dirname, join } from "node:path";
import { EngineError } from "./errors.js";
import { listGpus } from "./gpus.js";

export const PLATFORM_PACKAGE = `@carillon/${process.platform}-${process.arch}`;

export interface Prebuilt {
  addon: string;
  /** What is opened before it, by full path and in this order. */
  libraries: string[];
}

/** What scripts/release writes into the package.json of a platform's package. */
interface Manifest {
  version: string;
  carillon: {
    /** The version of libtorch that the addon was built against and that lies beside it. */
    libtorch: string;
    /** Bytes of each file. */
    sizes: Record<string, number>;
  };
}

interface Libtorch {
  directory: string;
  version: string;
}

/** Of scripts/setup/libtorch.mjs, which knows where libtorch lies and which build a GPU runs. */
interface SetUp {
  findLibtorch(fits: (found: Libtorch) => boolean): Libtorch | null;
  installLibtorch(): Libtorch;
}

const require = createRequire(import.meta.url);
const LIBTORCH_LIBRARY = "libtorch_cpu.so";
/** Of glibc's dlfcn.h; Node names the other flags alone. */
const RTLD_NODELETE = 0x1000;

/**
 * @returns null where the package is not installed
 * @throws EngineError where it is damaged, of another version, or cannot be used beside what is loaded
 */
export function findPrebuilt(log: (message: string) => void, hasGpu: () => boolean): Prebuilt | null {
  const own = require("../../package.json") as { version: string };
  const found = findPackage();
  if (found === null) return null;
  const { directory, version, carillon } = found;
  if (version !== own.version) {
    throw refusal(
      `${PLATFORM_PACKAGE} is version ${version}, this is carillon ${own.version}. Run "npm install ${PLATFORM_PACKAGE}@${own.version}".`,
    );
  }
  checkFiles(directory, carillon.sizes);
  const libtorch = chooseLibtorch(directory, carillon.libtorch, log, hasGpu);
  refuseSecond(libtorch);
  return { addon: join(directory, "carillon.node"), libraries: librariesOf(libtorch) };
}

function findPackage(): (Manifest & { directory: string }) | null {
  let path: string;
  try {
    path = require.resolve(`${PLATFORM_PACKAGE}/package.json`);
  } catch {
    return null; // Not installed: the caller says what to do.
  }
  return { ...(JSON.parse(readFileSync(path, "utf8")) as Manifest), directory: dirname(path) };
}

const setUp = () => require("../../scripts/setup/libtorch.mjs") as SetUp;

function refusal(message: string): EngineError {
  return new EngineError("ADDON_MISSING", message);
}

/** A library cut short would end the process when it is mapped, not fail to load. */
function checkFiles(directory: string, sizes: Record<string, number>): void {
  for (const [name, bytes] of Object.entries(sizes)) {
    const found = statSync(join(directory, name), { throwIfNoEntry: false })?.size ?? 0;
    if (found === bytes) continue;
    throw refusal(
      `${join(directory, name)} has ${found} bytes of ${bytes}: the installation is damaged. Remove ${directory} and run "npm install" again.`,
    );
  }
}

/** The folder of libraries: of LIBTORCH, of a libtorch for CUDA where there is a GPU, else the package's own. */
function chooseLibtorch(
  own: string,
  builtAgainst: string,
  log: (message: string) => void,
  hasGpu: () => boolean,
): string {
  const isAsked = Boolean(process.env.LIBTORCH);
  if (!isAsked && !hasGpu()) return own;
  const minor = minorOf(builtAgainst);
  let found: Libtorch | null;
  try {
    found = setUp().findLibtorch(
      ({ directory, version }) =>
        minorOf(version) === minor && (isAsked || existsSync(join(directory, "lib/libtorch_cuda.so"))),
    );
  } catch (error) {
    throw refusal((error as Error).message);
  }
  if (found !== null) {
    log(`libtorch ${found.version} of ${found.directory}`);
    return join(found.directory, "lib");
  }
  if (isAsked)
    throw refusal(
      `LIBTORCH=${process.env.LIBTORCH} is no libtorch ${minor}, which the addon of ${PLATFORM_PACKAGE} is built for: name one, or none.`,
    );
  log(
    `the GPU is not used: neither python3 nor the cache has a libtorch ${minor} for CUDA. Run "npx carillon cuda install"`,
  );
  return own;
}

/**
 * Installs libtorch for the GPU of this machine into the cache, by pip.
 * @returns its folder, or that of one that is already there
 */
export function installCudaLibtorch(): string {
  if (listGpus().length === 0)
    throw refusal("nvidia-smi names no GPU here: install NVIDIA's driver first, then run this again.");
  const own = findPackage();
  const minor = own === null ? null : minorOf(own.carillon.libtorch);
  const { findLibtorch, installLibtorch } = setUp();
  const found = findLibtorch(
    ({ directory, version }) =>
      (minor === null || minorOf(version) === minor) && existsSync(join(directory, "lib/libtorch_cuda.so")),
  );
  return (found ?? installLibtorch()).directory;
}

const minorOf = (version: string) => version.split(".").slice(0, 2).join(".");

/** Two builds of libtorch in one process end it. */
function refuseSecond(directory: string): void {
  const maps = "/proc/self/maps";
  const lines = existsSync(maps) ? readFileSync(maps, "utf8").split("\n") : [];
  const loaded = lines.find((line) => line.endsWith(`/${LIBTORCH_LIBRARY}`));
  const path = loaded?.slice(loaded.indexOf("/"));
  if (path === undefined || dirname(path) === directory) return;
  throw refusal(
    `This process has loaded another libtorch already, ${path}, and runs with one alone: load carillon in a process of its own, or set LIBTORCH to that one.`,
  );
}

/** libtorch_cuda registers itself when it is opened: nothing refers to it. */
function librariesOf(directory: string): string[] {
  const names = ["libc10.so", LIBTORCH_LIBRARY, "libc10_cuda.so", "libtorch_cuda.so"];
  return names.map((name) => join(directory, name)).filter((path) => existsSync(path));
}

/**
 * Opens shared libraries for the whole process. Node opens any, complains that they are no addons, and closes them,
 * which these outlast.
 */
export function openLibraries(paths: readonly string[]): void {
  for (const path of paths) {
    try {
      process.dlopen({ exports: {} }, path, constants.dlopen.RTLD_LAZY | RTLD_NODELETE);
    } catch (error) {
      const { message } = error as Error;
      if (!message.includes("did not self-register")) throw refusal(`libtorch cannot be loaded: ${message}`);
    }
  }
}
