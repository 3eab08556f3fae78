/**
 * The prebuilt addons of this platform, in packages beside ours: one with a libtorch for the CPU, and one with an addon
 * for each libtorch minor that people bring. An addon runs with any build of its minor, for the CPU as for CUDA; the
 * libtorch that is opened first is the one it gets.
 */
import { createHash } from "node:crypto";
import { existsSync, readFileSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { constants } from "node:os";
import { dirname, join } from "node:path";
import { EngineError } from "./errors.js";

export const PLATFORM_PACKAGE = `@carillon/${process.platform}-${process.arch}`;
const PACKAGES = [PLATFORM_PACKAGE, `${PLATFORM_PACKAGE}-cuda`];

export interface Prebuilt {
  addon: string;
  /** What is opened before it, by full path and in this order. */
  libraries: string[];
}

/** What scripts/release writes into the package.json of a platform's package. */
interface Manifest {
  version: string;
  carillon: {
    /** The version of the libtorch that lies beside the addon; absent where none does. */
    libtorch?: string;
    /** The file of each addon, by the minor version of libtorch that it runs with. */
    addons: Record<string, string>;
    files: Record<string, { bytes: number; sha256: string }>;
  };
}

type Package = Manifest & { name: string; directory: string };

export interface Libtorch {
  directory: string;
  version: string;
}

/** What is used of scripts/setup/libtorch.mjs, which knows where libtorch lies and which build a GPU runs. */
export interface SetUp {
  findLibtorch(fits: (found: Libtorch) => boolean): Libtorch | null;
  installLibtorch(): Libtorch;
  /** The build of libtorch for this machine's GPU: cu130, ..., or cpu where it runs none. */
  wheelBuild(): string;
  /** Why it runs none. */
  gpuFault(): string | undefined;
  downloadedDirectory(version: string): string;
  hasPip(): boolean;
}

const require = createRequire(import.meta.url);
const LIBTORCH_LIBRARY = "libtorch_cpu.so";
/** As in glibc's dlfcn.h; Node names the other flags alone. */
const RTLD_NODELETE = 0x1000;

export const setUp = () => require("../../scripts/setup/libtorch.mjs") as SetUp;

export const minorOf = (version: string) => version.split(".").slice(0, 2).join(".");

export const isForCuda = ({ directory }: Libtorch) => existsSync(join(directory, "lib/libtorch_cuda.so"));

export function refusal(fault: string, advice?: string): EngineError {
  return new EngineError("ADDON_MISSING", fault, advice === undefined ? {} : { advice });
}

/**
 * @returns null where no package is installed
 * @throws EngineError where one is damaged, of another version, or cannot be used beside what is loaded
 */
export function findPrebuilt(log: (message: string) => void, hasGpu: () => boolean): Prebuilt | null {
  const packages = findPackages();
  if (packages.length === 0) return null;
  const { folder, version } = chooseLibtorch(packages, log, hasGpu);
  const minor = minorOf(version);
  const holder = packages.find(({ carillon }) => minor in carillon.addons) as Package;
  const addon = holder.carillon.addons[minor] as string;
  checkSizes(holder);
  checkContent(holder, addon);
  refuseSecond(folder);
  return { addon: join(holder.directory, addon), libraries: librariesOf(folder) };
}

/** The libtorch minors that the installed packages hold an addon for. */
export function prebuiltMinors(): string[] {
  return minorsOf(findPackages());
}

const minorsOf = (packages: readonly Package[]) =>
  [...new Set(packages.flatMap(({ carillon }) => Object.keys(carillon.addons)))].sort();

function findPackages(): Package[] {
  const own = require("../../package.json") as { version: string };
  return PACKAGES.flatMap((name) => {
    let path: string;
    try {
      path = require.resolve(`${name}/package.json`);
    } catch {
      return []; // Not installed: the caller says what to do where it finds none.
    }
    const found = { ...(JSON.parse(readFileSync(path, "utf8")) as Manifest), name, directory: dirname(path) };
    if (found.version === own.version) return [found];
    throw refusal(
      `${name} is version ${found.version}, this is carillon ${own.version}`,
      `Run "npm install ${name}@${own.version}".`,
    );
  });
}

/** A library cut short would end the process when it is mapped, not fail to load. */
function checkSizes({ directory, carillon }: Package): void {
  for (const [name, { bytes }] of Object.entries(carillon.files)) {
    const found = statSync(join(directory, name), { throwIfNoEntry: false })?.size ?? 0;
    if (found !== bytes) throw damaged(directory, `${join(directory, name)} has ${found} bytes of ${bytes}`);
  }
}

function checkContent({ directory, carillon }: Package, name: string): void {
  const sum = createHash("sha256")
    .update(readFileSync(join(directory, name)))
    .digest("hex");
  if (sum !== carillon.files[name]?.sha256)
    throw damaged(directory, `${join(directory, name)} is not the file that was packed`);
}

function damaged(directory: string, what: string): EngineError {
  return refusal(`${what}: the installation is damaged`, `Remove ${directory} and run "npm install" again.`);
}

/**
 * Reads every file of the installed packages, half a second's work.
 * @throws EngineError naming one that is not what was packed
 */
export function checkPackages(): void {
  for (const found of findPackages()) {
    checkSizes(found);
    for (const name of Object.keys(found.carillon.files)) checkContent(found, name);
  }
}

/** The folder of libraries: of LIBTORCH, of a libtorch for CUDA where there is a GPU, else the package's own. */
function chooseLibtorch(
  packages: readonly Package[],
  log: (message: string) => void,
  hasGpu: () => boolean,
): { folder: string; version: string } {
  const own = packages.flatMap(({ directory, carillon: { libtorch } }) =>
    libtorch === undefined ? [] : [{ folder: directory, version: libtorch }],
  )[0];
  const isAsked = Boolean(process.env.LIBTORCH);
  if (!isAsked && own !== undefined && !hasGpu()) return own;
  const minors = minorsOf(packages);
  const found = findLibtorch(
    (one) => minors.includes(minorOf(one.version)) && (isAsked || own === undefined || isForCuda(one)),
  );
  if (found !== null) {
    log(`libtorch ${found.version} of ${found.directory}`);
    return { folder: join(found.directory, "lib"), version: found.version };
  }
  const runWith = `libtorch ${minors.join(", ")}, for which the installed packages hold an addon`;
  if (isAsked)
    throw refusal(
      `LIBTORCH=${process.env.LIBTORCH} is no ${runWith}: name one, or none${adviceForMinors(packages)}.`,
    );
  if (own === undefined)
    throw refusal(
      `There is no ${runWith}: set LIBTORCH to one, run "npx carillon cuda install", or "npm install ${PLATFORM_PACKAGE}".`,
    );
  log(
    `the GPU is not used: neither python3 nor the cache has a CUDA build of ${runWith}. Run "npx carillon cuda install"`,
  );
  return own;
}

function findLibtorch(fits: (found: Libtorch) => boolean): Libtorch | null {
  try {
    return setUp().findLibtorch(fits);
  } catch (error) {
    throw refusal((error as Error).message);
  }
}

function adviceForMinors(packages: readonly Package[]): string {
  const absent = PACKAGES.find((name) => packages.every((found) => found.name !== name));
  return absent === undefined ? "" : `, or "npm install ${absent}", which holds others`;
}

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
      if (message.includes("did not self-register")) continue;
      throw refusal(`libtorch cannot be loaded: ${message}`, adviceFor(message));
    }
  }
}

/** What helps where the system's loader refuses a library; it names it and says why. */
export function adviceFor(reason: string): string {
  const symbols = /version `(GLIBC(?:XX)?|CXXABI)_([\d.]+)' not found/.exec(reason);
  if (symbols !== null)
    return `It needs ${symbols[1]} ${symbols[2]} or later, which this system is older than: Debian 10, RHEL 8 and Ubuntu 20.04 have what the packages need.`;
  if (/lib(cu|nv|nccl)\w*\.so/.test(reason))
    return `NVIDIA's libraries are not where this libtorch looks for them. Run "npx carillon cuda install", or set LIBTORCH to a libtorch that has them.`;
  if (/lib(torch|c10)/.test(reason))
    return "libtorch was not found where the addon was built against it, or is another one. Set LIBTORCH to a libtorch 2.11 to 2.14.";
  return "It may have been built for another platform.";
}
