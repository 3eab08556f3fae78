/**
 * Brings a fresh clone to where it can serve; does nothing where nothing is missing. With `--programs` also the native
 * programs of tests and benchmarks.
 */
import { pathToFileURL } from "node:url";
import { ADDON, buildNative, PROGRAMS } from "./setup/native.mjs";
import { installPackages } from "./setup/packages.mjs";
import { takePrebuilt } from "./setup/prebuilt.mjs";
import { isClone, SetupError, say } from "./setup/run.mjs";
import { installAudioTools } from "./setup/system.mjs";
import { buildTypeScript } from "./setup/typescript.mjs";

/** @param nativeParts what to build beside the addon: parts as setup/native.mjs describes them */
export function setUp(...nativeParts) {
  if (isClone) installPackages();
  installAudioTools();
  const isPrebuilt = isClone && nativeParts.length === 0 && takePrebuilt();
  if (!isPrebuilt) buildNative([ADDON, ...nativeParts]);
  if (isClone) buildTypeScript();
}

/** Runs a script's main function; a SetupError is shown as one message without a stack. */
export async function main(body) {
  try {
    await body();
  } catch (error) {
    if (!(error instanceof SetupError)) throw error;
    say(error.message);
    process.exit(1);
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href)
  await main(() => setUp(...(process.argv.includes("--programs") ? [PROGRAMS] : [])));
