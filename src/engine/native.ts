/**
 * Entry point `carillon/native`: the native addon, and the tokenizer that makes its token ids. Loads the addon from
 * `CARILLON_ADDON`, else from the local build, else from the platform package.
 */
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { sep } from "node:path";
import { fileURLToPath } from "node:url";
import { listGpus } from "../libtorch/gpus.js";
import { adviceForLoaderError, findPrebuilt, openLibraries, PLATFORM_PACKAGE } from "../libtorch/prebuilt.js";
import { AdvisedError } from "../system/config-error.js";
import type { NativeAddon } from "./addon.js";
import { EngineError } from "./errors.js";

export type * from "./addon.js";
export { type Checkpoint, Checkpoints, type RendererCheckpoint } from "./checkpoints.js";
export { encodeLyricPrompt, encodeTextPrompt, instructionOf } from "./conditioning.js";
export { EngineError } from "./errors.js";
export { codesPrompt } from "./prompts.js";
export { renderParametersOf } from "./render-parameters.js";
export { type PromptPart, Tokenizer } from "./tokenizer.js";

/** Addon built here. The relative path is the same from src/engine/ and dist/engine/. */
const BUILT_ADDON = fileURLToPath(new URL("../../build/Release/carillon.node", import.meta.url));

/** Commands that build the addon, in a clone and in an application that depends on the package. */
const SETUP_COMMAND = BUILT_ADDON.includes(`${sep}node_modules${sep}`)
  ? "npm explore carillon -- npm run setup"
  : "npm run setup";

/**
 * Loads the addon; Node caches the instance.
 * @param log receives messages on the choice of libtorch
 * @param hasGpu whether to look for a CUDA build of libtorch
 * @throws EngineError ADDON_MISSING; the error says how to get the addon
 */
export function loadAddon(
  log: (message: string) => void = () => {},
  hasGpu = () => listGpus().length > 0,
): NativeAddon {
  // Let libtorch use huge pages. Forking ffmpeg copies the page tables, and huge pages keep these tables small.
  process.env.THP_MEM_ALLOC_ENABLE ??= "1";
  // Threads of libgomp spin while they wait for work. By default they spin for milliseconds, which takes half of a
  // song's CPU time, and beside other programs they spin while the thread that they wait for has no processor. This
  // limit covers the gap between two matrix products; without any, an idle machine takes a fifth longer.
  if (process.env.OMP_WAIT_POLICY === undefined) process.env.GOMP_SPINCOUNT ??= "1000";
  const path = process.env.CARILLON_ADDON || (existsSync(BUILT_ADDON) ? BUILT_ADDON : null);
  if (path !== null) return load(path);
  const prebuilt = openPrebuilt(log, hasGpu);
  if (prebuilt === null) {
    throw new EngineError(
      "ADDON_MISSING",
      `There is no native addon: ${PLATFORM_PACKAGE} is not installed (optional dependency; missing with --omit=optional and on unsupported platforms), and there is no local build`,
      { advice: `Install it, build one with "${SETUP_COMMAND}", or set CARILLON_ADDON to its path.` },
    );
  }
  return load(prebuilt.addon);
}

/** Finds the addon of the installed package and loads its libraries; null if no package is installed. */
function openPrebuilt(...choice: Parameters<typeof findPrebuilt>): ReturnType<typeof findPrebuilt> {
  try {
    const prebuilt = findPrebuilt(...choice);
    if (prebuilt !== null) openLibraries(prebuilt.libraries);
    return prebuilt;
  } catch (error) {
    if (!(error instanceof AdvisedError)) throw error;
    throw new EngineError("ADDON_MISSING", error.fault, { advice: error.advice, cause: error });
  }
}

function load(path: string): NativeAddon {
  if (!existsSync(path)) {
    throw new EngineError("ADDON_MISSING", `The native addon ${path} does not exist`, {
      advice: `Run "${SETUP_COMMAND}", or set CARILLON_ADDON to an existing addon.`,
    });
  }
  try {
    return createRequire(import.meta.url)(path) as NativeAddon;
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new EngineError("ADDON_MISSING", `The native addon ${path} cannot be loaded (${reason})`, {
      advice: `${adviceForLoaderError(reason)} Run "${SETUP_COMMAND}" to build it here.`,
      cause: error,
    });
  }
}
