/**
 * Finds the prebuilt addon for this platform. One package contains libtorch for the CPU and an addon for it. Another
 * package contains an addon for each supported minor version of libtorch. An addon works with CPU and CUDA builds of
 * its minor version, because it references no CUDA symbol. It uses the libtorch that was opened first.
 */
import { createHash } from "node:crypto";
import { existsSync, readFileSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { constants } from "node:os";
import { dirname, join } from "node:path";
// This relative path is valid from src/libtorch/ and from dist/libtorch/.
import * as libtorch from "../../src/libtorch/find-libtorch.mjs";
import { AdvisedError } from "../system/config-error.js";

type Libtorch = libtorch.Libtorch;

export const PLATFORM_PACKAGE = `@carillon/${process.platform}-${process.arch}`;
const PACKAGES = [PLATFORM_PACKAGE, `${PLATFORM_PACKAGE}-cuda`];

/** Manifest in a platform package, written by scripts/release. */
interface Manifest {
  version: string;
  carillon: {
    /** Version of the bundled libtorch; absent if none is bundled. */
    libtorch?: string;
    /** Addon file for each minor version of libtorch, such as 2.13. */
    addons: Record<string, string>;
    files: Record<string, { bytes: number; sha256: string }>;
  };
}

type Package = Manifest & { name: string; directory: string };

const require = createRequire(import.meta.url);
const LIBTORCH_LIBRARY = "libtorch_cpu.so";
/** Flag of dlopen in glibc's dlfcn.h; Node lacks a constant for it. */
const RTLD_NODELETE = 0x1000;

export const minorOf = (version: string) => version.split(".").slice(0, 2).join(".");

export const isCudaBuild = ({ directory }: Libtorch) => existsSync(join(directory, "lib/libtorch_cuda.so"));

/**
 * Chooses the addon and the libraries to open before it, as full paths in this order; null if no package is installed.
 * @throws AdvisedError if a package is damaged or belongs to another version of carillon
 */
export function findPrebuilt(
  log: (message: string) => void,
  hasGpu: () => boolean,
): { addon: string; libraries: string[] } | null {
  const packages = findPackages();
  if (packages.length === 0) return null;
  const { folder, version } = chooseLibtorch(packages, log, hasGpu);
  const minor = minorOf(version);
  const holder = packages.find(({ carillon }) => minor in carillon.addons) as Package;
  const addon = holder.carillon.addons[minor] as string;
  checkSizes(holder);
  checkContent(holder, addon);
  assertOneLibtorch(folder);
  return { addon: join(holder.directory, addon), libraries: librariesOf(folder) };
}

/** Minor versions of libtorch supported by the installed packages. */
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
      return []; // The package is not installed. Callers report an error if no package is installed.
    }
    const found = { ...(JSON.parse(readFileSync(path, "utf8")) as Manifest), name, directory: dirname(path) };
    if (found.version === own.version) return [found];
    throw new AdvisedError(`${name} is version ${found.version}, but carillon is ${own.version}`, {
      advice: `Run "npm install ${name}@${own.version}".`,
    });
  });
}

/** Checks file sizes first, because loading a truncated library would crash the process. */
function checkSizes({ directory, carillon }: Package): void {
  for (const [name, { bytes }] of Object.entries(carillon.files)) {
    const found = statSync(join(directory, name), { throwIfNoEntry: false })?.size ?? 0;
    if (found !== bytes)
      throw damaged(directory, `${join(directory, name)} has ${found} bytes instead of ${bytes}`);
  }
}

function checkContent({ directory, carillon }: Package, name: string): void {
  const sum = createHash("sha256")
    .update(readFileSync(join(directory, name)))
    .digest("hex");
  if (sum !== carillon.files[name]?.sha256)
    throw damaged(directory, `${join(directory, name)} differs from the published file`);
}

function damaged(directory: string, what: string): AdvisedError {
  return new AdvisedError(`${what}: the installation is damaged`, {
    advice: `Remove ${directory} and run "npm install" again.`,
  });
}

/** Verifies every file of the installed packages. @throws AdvisedError naming a file that differs */
export function checkPackages(): void {
  for (const found of findPackages()) {
    checkSizes(found);
    for (const name of Object.keys(found.carillon.files)) checkContent(found, name);
  }
}

/** Chooses a libtorch: the one at LIBTORCH, or a CUDA build if there is a GPU, or the one in the package. */
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
    (one) => minors.includes(minorOf(one.version)) && (isAsked || own === undefined || isCudaBuild(one)),
  );
  if (found !== null) {
    log(`using libtorch ${found.version} in ${found.directory}`);
    return { folder: join(found.directory, "lib"), version: found.version };
  }
  const required = `libtorch ${minors.join(" or ")} (the installed addons support no other version)`;
  if (isAsked)
    throw new AdvisedError(
      `LIBTORCH=${process.env.LIBTORCH} is not ${required}: point it at one, or unset it${adviceForMinors(packages)}.`,
    );
  if (own === undefined)
    throw new AdvisedError(
      `There is no ${required}: point LIBTORCH at one, run "npx carillon cuda install", or "npm install ${PLATFORM_PACKAGE}".`,
    );
  log(
    `the GPU is not used: neither python3 nor the cache has a CUDA build of ${required}. Run "npx carillon cuda install"`,
  );
  return own;
}

function findLibtorch(fits: (found: Libtorch) => boolean): Libtorch | null {
  try {
    return libtorch.findLibtorch(fits);
  } catch (error) {
    throw new AdvisedError((error as Error).message);
  }
}

function adviceForMinors(packages: readonly Package[]): string {
  const absent = PACKAGES.find((name) => packages.every((found) => found.name !== name));
  return absent === undefined ? "" : `, or "npm install ${absent}" for other versions`;
}

/** Two libtorch builds in one process crash it. */
function assertOneLibtorch(directory: string): void {
  const maps = "/proc/self/maps";
  const lines = existsSync(maps) ? readFileSync(maps, "utf8").split("\n") : [];
  const loaded = lines.find((line) => line.endsWith(`/${LIBTORCH_LIBRARY}`));
  const path = loaded?.slice(loaded.indexOf("/"));
  if (path === undefined || dirname(path) === directory) return;
  throw new AdvisedError(
    `This process has already loaded another libtorch, ${path}: load carillon in a separate process, or set LIBTORCH to that one.`,
  );
}

/** libtorch_cuda is opened explicitly, because nothing links to it. It registers its kernels when opened. */
function librariesOf(directory: string): string[] {
  const names = ["libc10.so", LIBTORCH_LIBRARY, "libc10_cuda.so", "libtorch_cuda.so"];
  return names.map((name) => join(directory, name)).filter((path) => existsSync(path));
}

/**
 * Loads shared libraries that are not addons into the process. Node closes such libraries at once, but RTLD_NODELETE
 * keeps them in memory.
 */
export function openLibraries(paths: readonly string[]): void {
  for (const path of paths) {
    try {
      process.dlopen({ exports: {} }, path, constants.dlopen.RTLD_LAZY | RTLD_NODELETE);
    } catch (error) {
      const { message } = error as Error;
      if (message.includes("did not self-register")) continue;
      throw new AdvisedError(`libtorch cannot be loaded: ${message}`, {
        advice: adviceForLoaderError(message),
      });
    }
  }
}

/** Advice for an error message of the dynamic loader. */
export function adviceForLoaderError(reason: string): string {
  const symbols = /version `(GLIBC(?:XX)?|CXXABI)_([\d.]+)' not found/.exec(reason);
  if (symbols !== null)
    return `It needs ${symbols[1]} ${symbols[2]} or later, and this system is older: the packages need at least Debian 10, RHEL 8 or Ubuntu 20.04.`;
  if (/lib(cu|nv|nccl)\w*\.so/.test(reason))
    return `This libtorch does not find NVIDIA's libraries. Run "npx carillon cuda install", or set LIBTORCH to a libtorch that includes them.`;
  if (/lib(torch|c10)/.test(reason))
    return "libtorch is not at the path that the addon was built with, or has another version. Set LIBTORCH to a libtorch 2.11 to 2.14.";
  return "It may be built for another platform.";
}
