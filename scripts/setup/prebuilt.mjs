/**
 * Installs a prebuilt native core from the registry instead of compiling, if the registry has a package for this platform,
 * version and hash of sources. `CARILLON_PREBUILT=0` turns it off.
 */
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { provideLibtorch, wheelBuild } from "./libtorch.mjs";
import { ADDON, sourcesHash } from "./native.mjs";
import { manifest, projectRoot, say } from "./run.mjs";

const PLATFORM = `@carillon/${process.platform}-${process.arch}`;
const FAIL_FAST = ["--fetch-retries=0", "--fetch-timeout=20000"];

/**
 * @returns whether a prebuilt core is installed; false if a core was built here, because that core takes precedence
 */
export function installPrebuilt() {
  if (process.env.CARILLON_PREBUILT === "0" || existsSync(join(projectRoot, ADDON.products[0]))) return false;
  const print = sourcesHash();
  // On a machine with a GPU, set-up installs a CUDA libtorch. The addons for this libtorch are in the package
  // whose name ends in -cuda.
  const hasGpu = wheelBuild() !== "cpu";
  const names = hasGpu ? [PLATFORM, `${PLATFORM}-cuda`] : [PLATFORM];
  if (!names.every((name) => isInstalled(name, print))) {
    if (!names.every((name) => published(name) === print)) return false;
    const packages = names.map((name) => `${name}@${manifest.version}`);
    say(`installing the prebuilt native core, ${packages.join(" and ")}`);
    const options = ["--no-save", "--ignore-scripts", "--no-audit", "--no-fund", ...FAIL_FAST];
    if (
      npm("install", ...options, ...packages) === null ||
      !names.every((name) => isInstalled(name, print))
    ) {
      say("the prebuilt native core could not be installed: building it instead");
      return false;
    }
  }
  if (hasGpu) provideLibtorch();
  return true;
}

function isInstalled(name, print) {
  const path = join(projectRoot, "node_modules", name, "package.json");
  return existsSync(path) && JSON.parse(readFileSync(path, "utf8")).carillon?.sources === print;
}

/**
 * Returns the source hash of this version of a published package; null if there is none or the registry does
 * not respond.
 */
function published(name) {
  const answer = npm("view", `${name}@${manifest.version}`, "carillon.sources", ...FAIL_FAST);
  return answer?.trim() || null;
}

function npm(...args) {
  const { status, stdout } = spawnSync("npm", args, { cwd: projectRoot, encoding: "utf8" });
  return status === 0 ? stdout : null;
}
