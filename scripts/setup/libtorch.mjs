/**
 * Finds libtorch, or installs it: LIBTORCH, the torch package of python3, the cached copy,
 * else the pinned wheel by pip (the CPU build where no NVIDIA driver is present).
 */
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { cacheRoot, exists, run, SetupError, say } from "./run.mjs";

const PINNED = "2.13.0";
const OLDEST_MINOR = 11;
const NEWEST_MINOR = 14;

/** Returns { directory, version } of a libtorch with headers and libraries. */
export function provideLibtorch() {
  return fromEnvironment() ?? fromPython() ?? fromCache() ?? install();
}

function fromEnvironment() {
  const directory = process.env.LIBTORCH;
  if (!directory) return null;
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
  if (supported(found.version)) return found;
  say(`python3 has torch ${found.version}, outside 2.${OLDEST_MINOR} to 2.${NEWEST_MINOR}; not used`);
  return null;
}

const hasDriver = () => exists("nvidia-smi", ["-L"]);
const cachedDirectory = () => join(cacheRoot, "libtorch", `torch-${PINNED}${hasDriver() ? "" : "+cpu"}`);

const fromCache = () => inspect(join(cachedDirectory(), "torch"));

function install() {
  const target = cachedDirectory();
  const partial = `${target}.part`;
  rmSync(partial, { recursive: true, force: true });
  say(`installing libtorch ${PINNED} into ${target} (several hundred MB, once per machine)`);
  const pip = (...args) =>
    run("python3", ["-m", "pip", "install", "--quiet", "--target", partial, ...args], { log: "pip" });
  if (hasDriver()) {
    pip(`torch==${PINNED}`);
  } else {
    try {
      pip("--no-deps", `torch==${PINNED}+cpu`);
    } catch (error) {
      say(
        `no CPU wheel of torch ${PINNED} in pip's index (PIP_EXTRA_INDEX_URL can name one); taking the default wheel`,
      );
      try {
        pip(`torch==${PINNED}`);
      } catch {
        throw error;
      }
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
