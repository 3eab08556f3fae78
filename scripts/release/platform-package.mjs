/**
 * Builds the two packages of this platform. One has the addon and libtorch for the CPU. The other has an addon for
 * every libtorch version, but no libtorch; its users install their own libtorch, mostly for CUDA.
 * src/libtorch/prebuilt.ts chooses between the two. Binaries are stripped and find each other by relative paths.
 */
import { createHash } from "node:crypto";
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { PINNED_VERSION } from "../setup/libtorch.mjs";
import { buildForRelease, sourcesHash } from "../setup/native.mjs";
import { projectRoot, run, SetupError, say } from "../setup/run.mjs";
import { checkSymbolVersions, librariesNeeded, setOwnFolderAsRunPath } from "./elf.mjs";
import { removeFolder, sharedPackageFields, writePackageJson } from "./stage.mjs";

const ADDON = "carillon.node";

export const platformName = `${process.platform}-${process.arch}`;

/** @throws SetupError if a binary requires a newer system than the supported ones */
export function stagePlatform(directory) {
  mkdirSync(removeFolder(directory), { recursive: true });
  const { addon, libtorch } = buildForRelease(PINNED_VERSION);
  if (existsSync(join(libtorch.directory, "lib/libtorch_cuda.so")))
    throw new SetupError(
      `torch ${PINNED_VERSION} from pip contains CUDA: set PIP_EXTRA_INDEX_URL to an index of CPU wheels`,
    );
  copyFileSync(addon, join(directory, ADDON));
  copyLibraries(ADDON, join(libtorch.directory, "lib"), directory);
  copyLicences(libtorch.directory, directory);
  finish(directory, {
    name: `@carillon/${platformName}`,
    description: `The native core of carillon for ${platformName}, with libtorch for the CPU`,
    carillon: { libtorch: libtorch.version, addons: { [minorOf(PINNED_VERSION)]: ADDON } },
  });
  return directory;
}

/**
 * @param versions libtorch versions, one per minor version
 * @param partial whether to skip versions that pip cannot install here, with a message, instead of failing
 */
export function stageAddons(directory, versions, partial) {
  mkdirSync(removeFolder(directory), { recursive: true });
  const addons = {};
  for (const version of versions) {
    try {
      const { addon } = buildForRelease(version);
      addons[minorOf(version)] = `carillon-${minorOf(version)}.node`;
      copyFileSync(addon, join(directory, addons[minorOf(version)]));
    } catch (error) {
      if (!partial || !(error instanceof SetupError)) throw error;
      say(`SKIPPED the addon for libtorch ${version}: ${error.message}`);
    }
  }
  finish(directory, {
    name: `@carillon/${platformName}-cuda`,
    description: `The native core of carillon for ${platformName}, for your own libtorch, for CUDA or the CPU`,
    carillon: { addons },
  });
  return directory;
}

function finish(directory, { carillon, ...fields }) {
  const binaries = readdirSync(directory).filter((name) => /\.(so|node)/.test(name));
  for (const name of binaries) {
    const path = join(directory, name);
    run("strip", ["--strip-unneeded", path]);
    setOwnFolderAsRunPath(path);
    checkSymbolVersions(path);
  }
  copyFileSync(join(projectRoot, "LICENSE"), join(directory, "LICENSE"));
  const under = existsSync(join(directory, "licenses"))
    ? "; libtorch is under the licences in licenses/"
    : "";
  writeFileSync(
    join(directory, "README.md"),
    `# ${fields.name}\n\n${fields.description}${under}. Installed beside [carillon](https://www.npmjs.com/package/carillon).\n`,
  );
  writePackageJson(directory, {
    ...fields,
    ...sharedPackageFields(),
    os: [process.platform],
    cpu: [process.arch],
    libc: ["glibc"],
    files: [...binaries, ...(under ? ["licenses"] : [])],
    preferUnplugged: true,
    carillon: { ...carillon, sources: sourcesHash(), files: contentsOf(directory, binaries) },
  });
}

function contentsOf(directory, names) {
  return Object.fromEntries(
    names.map((name) => {
      const bytes = readFileSync(join(directory, name));
      return [name, { bytes: bytes.length, sha256: createHash("sha256").update(bytes).digest("hex") }];
    }),
  );
}

const minorOf = (version) => version.split(".").slice(0, 2).join(".");

/** Copies the libraries of libtorch's folder that a binary needs, directly or indirectly. The others come from the system. */
function copyLibraries(name, from, to) {
  for (const library of librariesNeeded(join(to, name))) {
    if (!existsSync(join(from, library)) || existsSync(join(to, library))) continue;
    copyFileSync(join(from, library), join(to, library));
    copyLibraries(library, from, to);
  }
}

/** Copies the licences of libtorch and of the libraries in it. */
function copyLicences(libtorch, directory) {
  const wheel = readdirSync(dirname(libtorch)).find((name) => /^torch-.*\.dist-info$/.test(name));
  const licences = wheel && join(dirname(libtorch), wheel, "licenses");
  if (!licences || !existsSync(licences))
    throw new SetupError(`no libtorch licences beside ${libtorch}: use a libtorch that pip installed`);
  cpSync(licences, join(directory, "licenses"), { recursive: true });
}
