/** The package carillon: JavaScript, types, pages, the embedded model, and the sources of the native core. */
import { cpSync, mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { projectRoot, run } from "../setup/run.mjs";
import { commonFields, emptyFolder, manifest, writeManifest } from "./stage.mjs";

/** Commands of an installed package; the others are for those who change it. */
const COMMANDS = ["setup"];

/** @param platforms those that have a package of this version, as linux-x64 */
export function stageMain(directory, platforms) {
  emptyFolder(directory);
  for (const path of packedFiles()) {
    mkdirSync(dirname(join(directory, path)), { recursive: true });
    cpSync(join(projectRoot, path), join(directory, path));
  }
  const scripts = Object.fromEntries(COMMANDS.map((name) => [name, manifest.scripts[name]]));
  const optional = platforms.map((platform) => [`@carillon/${platform}`, manifest.version]);
  const { devDependencies: _, ...fields } = manifest;
  writeManifest(directory, {
    ...fields,
    ...commonFields(),
    scripts,
    optionalDependencies: Object.fromEntries(optional),
  });
  return directory;
}

function packedFiles() {
  const output = run("npm", ["pack", "--dry-run", "--json", "--ignore-scripts"]);
  const [{ files }] = Object.values(JSON.parse(output));
  return files.map(({ path }) => path);
}
