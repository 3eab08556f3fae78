/**
 * Brings a fresh clone to where it can serve; does nothing where nothing is missing. With `--programs` also the native
 * programs: tests, benchmarks, training, evaluation; with `sanitized` the unit tests under the sanitizers as well.
 */
import { pathToFileURL } from "node:url";
import { installPackages } from "./setup/packages.mjs";
import { SetupError, say } from "./setup/run.mjs";

export async function setUp({ programs = false, sanitized = false } = {}) {
  installPackages();
  const { installAudioTools } = await import("./setup/system.mjs");
  const { buildNative } = await import("./setup/native.mjs");
  const { buildTypeScript } = await import("./setup/typescript.mjs");
  installAudioTools();
  buildNative({ programs, sanitized });
  buildTypeScript();
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
  await main(() => setUp({ programs: process.argv.includes("--programs") }));
