/** Staging folders: each holds the files and the package.json of one npm package. */
import { rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { manifest, run, say } from "../setup/run.mjs";

const BYTES_PER_MEGABYTE = 1e6;

/** Fields of package.json that all packages of one version share. */
export function sharedPackageFields() {
  const { version, license, engines } = manifest;
  const { GITHUB_SERVER_URL, GITHUB_REPOSITORY } = process.env;
  const url = GITHUB_REPOSITORY ? `git+${GITHUB_SERVER_URL}/${GITHUB_REPOSITORY}.git` : null;
  return { version, license, engines, ...(url === null ? {} : { repository: { type: "git", url } }) };
}

export function removeFolder(directory) {
  rmSync(directory, { recursive: true, force: true });
  return directory;
}

export function writePackageJson(directory, fields) {
  writeFileSync(join(directory, "package.json"), `${JSON.stringify(fields, null, 2)}\n`);
}

/** Packs a staged folder; returns the path of the tarball. */
export function packFolder(directory, destination) {
  const output = run("npm", ["pack", "--json", "--ignore-scripts", "--pack-destination", destination], {
    cwd: directory,
  });
  const [{ name, filename, unpackedSize }] = Object.values(JSON.parse(output));
  const path = join(destination, filename);
  const inMegabytes = (bytes) => `${(bytes / BYTES_PER_MEGABYTE).toFixed(1)} MB`;
  say(`${name}: ${path}, ${inMegabytes(statSync(path).size)}, ${inMegabytes(unpackedSize)} unpacked`);
  return path;
}
