/** Finds and loads the native addon. */
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { sep } from "node:path";
import { fileURLToPath } from "node:url";
import type { NativeAddon } from "./addon.js";
import { EngineError } from "./errors.js";

/** Where the build leaves the addon. This file is two folders below the package root, in src/ as in dist/. */
const BUILT_ADDON = fileURLToPath(new URL("../../build/Release/carillon.node", import.meta.url));

/** What makes the addon, in a clone and in an application that has installed the package. */
const SETUP_COMMAND = BUILT_ADDON.includes(`${sep}node_modules${sep}`)
  ? "npm explore carillon -- npm run setup"
  : "npm run setup";

/** The file that is loaded: `CARILLON_ADDON`, for embedding in another package layout, else the built one. */
export function addonPath(): string {
  return process.env.CARILLON_ADDON || BUILT_ADDON;
}

/**
 * Loads the addon; Node keeps one instance however often it is asked.
 * @throws EngineError ADDON_MISSING: says what to run.
 */
export function loadAddon(path = addonPath()): NativeAddon {
  if (!existsSync(path)) {
    throw new EngineError(
      "ADDON_MISSING",
      `The native addon is not built: ${path} does not exist. Run "${SETUP_COMMAND}", or set CARILLON_ADDON to one.`,
    );
  }
  try {
    return createRequire(import.meta.url)(path) as NativeAddon;
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    const advice = /lib(torch|c10)/.test(reason)
      ? "libtorch was not found where the addon was built against it. Set LIBTORCH to a libtorch 2.11 to 2.14 and"
      : "It may have been built for another platform.";
    throw new EngineError(
      "ADDON_MISSING",
      `The native addon ${path} cannot be loaded (${reason}). ${advice} Run "${SETUP_COMMAND}" to build it again.`,
      { cause: error },
    );
  }
}
