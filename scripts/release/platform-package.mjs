/**
 * The package of this platform: the addon, and the libraries of libtorch for the CPU that it opens, stripped, all found
 * from where they lie. The addon runs with a libtorch for CUDA as well, where src/engine/prebuilt.ts finds one.
 */
import { copyFileSync, cpSync, existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { provideLibtorch } from "../setup/libtorch.mjs";
import { projectRoot, run, SetupError } from "../setup/run.mjs";
import { checkSymbolVersions, findBesideItself, librariesNeeded } from "./elf.mjs";
import { commonFields, emptyFolder, writeManifest } from "./stage.mjs";

const ADDON = "carillon.node";

export const platformName = `${process.platform}-${process.arch}`;

/** @throws SetupError where the addon asks for a newer system than is promised */
export function stagePlatform(directory) {
  if (process.platform !== "linux") throw new SetupError("packages with binaries are made on Linux alone");
  const libtorch = provideLibtorch();
  if (existsSync(join(libtorch.directory, "lib/libtorch_cuda.so")))
    throw new SetupError(`${libtorch.directory} is for CUDA: set LIBTORCH to a libtorch for the CPU`);
  mkdirSync(emptyFolder(directory), { recursive: true });
  copyFileSync(join(projectRoot, "build/Release", ADDON), join(directory, ADDON));
  copyLibraries(ADDON, join(libtorch.directory, "lib"), directory);
  const binaries = readdirSync(directory);
  for (const name of binaries) {
    const path = join(directory, name);
    run("strip", ["--strip-unneeded", path]);
    findBesideItself(path);
    checkSymbolVersions(path);
  }
  copyLicences(libtorch.directory, directory);
  const sizes = Object.fromEntries(binaries.map((name) => [name, statSync(join(directory, name)).size]));
  writeManifest(directory, {
    name: `@carillon/${platformName}`,
    description: `The native core of carillon for ${platformName}, with libtorch for the CPU`,
    ...commonFields(),
    os: [process.platform],
    cpu: [process.arch],
    libc: ["glibc"],
    main: ADDON,
    files: [...binaries, "LICENSE", "licenses"],
    preferUnplugged: true,
    carillon: { libtorch: libtorch.version, sizes },
  });
  return directory;
}

/** Those of libtorch's folder that a binary needs, and those that they need; the others are the system's. */
function copyLibraries(name, from, to) {
  for (const library of librariesNeeded(join(to, name))) {
    if (!existsSync(join(from, library)) || existsSync(join(to, library))) continue;
    copyFileSync(join(from, library), join(to, library));
    copyLibraries(library, from, to);
  }
}

/** Ours, and libtorch's with those of what is inside it. */
function copyLicences(libtorch, directory) {
  copyFileSync(join(projectRoot, "LICENSE"), join(directory, "LICENSE"));
  const wheel = readdirSync(dirname(libtorch)).find((name) => /^torch-.*\.dist-info$/.test(name));
  const licences = wheel && join(dirname(libtorch), wheel, "licenses");
  if (!licences || !existsSync(licences))
    throw new SetupError(`the licences of libtorch are not beside ${libtorch}: take the wheel of pip`);
  cpSync(licences, join(directory, "licenses"), { recursive: true });
  writeFileSync(
    join(directory, "README.md"),
    `# @carillon/${platformName}\n\nThe native core of [carillon](https://www.npmjs.com/package/carillon) and libtorch for the CPU, which is under the licences in licenses/.\n`,
  );
}
