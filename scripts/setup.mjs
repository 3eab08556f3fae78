/**
 * Installs and builds everything that a fresh clone needs to run the server. Skips finished steps. With
 * `--programs` it also builds the native test and benchmark programs.
 */
import { pathToFileURL } from "node:url";
import { ADDON, buildNative, PROGRAMS } from "./setup/native.mjs";
import { installPackages } from "./setup/packages.mjs";
import { installPrebuilt } from "./setup/prebuilt.mjs";
import { isClone, SetupError, say } from "./setup/run.mjs";
import { installAudioTools } from "./setup/system.mjs";
import { buildTypeScript } from "./setup/typescript.mjs";

/** @param nativeParts native parts to build in addition to the addon; setup/native.mjs defines them */
export function setUp(...nativeParts) {
  if (isClone) installPackages();
  installAudioTools();
  const isPrebuilt = isClone && nativeParts.length === 0 && installPrebuilt();
  if (!isPrebuilt) buildNative([ADDON, ...nativeParts]);
  if (isClone) buildTypeScript();
}

/** Runs a script's main function. Prints the message of a SetupError without a stack. */
export async function runScript(body) {
  try {
    await body();
  } catch (error) {
    if (!(error instanceof SetupError)) throw error;
    say(error.message);
    process.exit(1);
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href)
  await runScript(() => setUp(...(process.argv.includes("--programs") ? [PROGRAMS] : [])));
