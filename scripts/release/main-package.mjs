/** The package carillon: JavaScript, types, pages, the built-in model, and the sources of the native core. */
import { cpSync, mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { manifest, projectRoot, run } from "../setup/run.mjs";
import { removeFolder, sharedPackageFields, writePackageJson } from "./stage.mjs";

/** Scripts and development dependencies of the published package. The script `setup` needs cmake-js. */
const SETUP = {
  scripts: { setup: manifest.scripts.setup },
  devDependencies: { "cmake-js": manifest.devDependencies["cmake-js"] },
};

/** @param platforms platforms that have a package of this version, such as linux-x64 */
export function stageMainPackage(directory, platforms) {
  removeFolder(directory);
  for (const path of packedFiles()) {
    mkdirSync(dirname(join(directory, path)), { recursive: true });
    cpSync(join(projectRoot, path), join(directory, path));
  }
  const optional = platforms.map((platform) => [`@carillon/${platform}`, manifest.version]);
  writePackageJson(directory, {
    ...manifest,
    ...sharedPackageFields(),
    ...SETUP,
    optionalDependencies: Object.fromEntries(optional),
  });
  return directory;
}

function packedFiles() {
  const output = run("npm", ["pack", "--dry-run", "--json", "--ignore-scripts"]);
  const [{ files }] = Object.values(JSON.parse(output));
  return files.map(({ path }) => path);
}
