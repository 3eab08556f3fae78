/**
 * The native addon without the engine above it (`carillon/native`), and what makes its token ids. It is found as
 * `CARILLON_ADDON`, else as the one built from the sources here, else in this platform's package.
 */
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { sep } from "node:path";
import { fileURLToPath } from "node:url";
import type { NativeAddon } from "./addon.js";
import { EngineError } from "./errors.js";
import { listGpus } from "./gpus.js";
import { adviceFor, findPrebuilt, openLibraries, PLATFORM_PACKAGE } from "./prebuilt.js";

export type * from "./addon.js";
export { type Checkpoint, Checkpoints, type RendererCheckpoint } from "./checkpoints.js";
export { encodeLyricPrompt, encodeTextPrompt, instructionOf } from "./conditioning.js";
export { EngineError } from "./errors.js";
export { codesPrompt } from "./prompts.js";
export { renderParametersOf } from "./render-parameters.js";
export { type PromptPart, Tokenizer } from "./tokenizer.js";

/** Where the build leaves the addon. This file is two folders below the package root, in src/ as in dist/. */
const BUILT_ADDON = fileURLToPath(new URL("../../build/Release/carillon.node", import.meta.url));

/** What makes the addon, in a clone and in an application that has installed the package. */
const SETUP_COMMAND = BUILT_ADDON.includes(`${sep}node_modules${sep}`)
  ? "npm explore carillon -- npm run setup"
  : "npm run setup";

/**
 * Loads the addon; Node keeps one instance however often it is asked.
 * @param log is told which libtorch is used in place of the package's own, and which is not and why
 * @param hasGpu whether a libtorch for CUDA is to be looked for
 * @throws EngineError ADDON_MISSING: says what is needed, what was found, what to run.
 */
export function loadAddon(
  log: (message: string) => void = () => {},
  hasGpu = () => listGpus().length > 0,
): NativeAddon {
  // Large pages for libtorch's memory: a process of gigabytes that starts ffmpeg copies the table of its pages meanwhile.
  process.env.THP_MEM_ALLOC_ENABLE ??= "1";
  // libgomp's threads wait for work by spinning, by default for milliseconds: half of a song's CPU time, and on a busy machine
  // the time of those that have work. This long covers what lies between two products.
  if (process.env.OMP_WAIT_POLICY === undefined) process.env.GOMP_SPINCOUNT ??= "10000";
  const path = process.env.CARILLON_ADDON || (existsSync(BUILT_ADDON) ? BUILT_ADDON : null);
  if (path !== null) return load(path);
  const prebuilt = findPrebuilt(log, hasGpu);
  if (prebuilt === null) {
    throw new EngineError(
      "ADDON_MISSING",
      `There is no native addon: ${PLATFORM_PACKAGE} is not installed (an optional dependency: --omit=optional leaves it out, and there is none for every platform) and none is built here`,
      { advice: `Install it, or build one with "${SETUP_COMMAND}", or set CARILLON_ADDON to one.` },
    );
  }
  openLibraries(prebuilt.libraries);
  return load(prebuilt.addon);
}

function load(path: string): NativeAddon {
  if (!existsSync(path)) {
    throw new EngineError("ADDON_MISSING", `The native addon ${path} does not exist`, {
      advice: `Run "${SETUP_COMMAND}", or set CARILLON_ADDON to one that does.`,
    });
  }
  try {
    return createRequire(import.meta.url)(path) as NativeAddon;
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new EngineError("ADDON_MISSING", `The native addon ${path} cannot be loaded (${reason})`, {
      advice: `${adviceFor(reason)} Run "${SETUP_COMMAND}" to build it here.`,
      cause: error,
    });
  }
}
