/** What the autoencoder makes of recordings: encoded and decoded again by the native core. */
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Stereo } from "../render/stereo.js";
import { decodeWav, encodeWav } from "../render/wav.js";
import { weightsVersion } from "./versions.js";

const program = fileURLToPath(new URL("../../../build/nano/carillon-vae-roundtrip", import.meta.url));

interface Recording {
  id: string;
  path: string;
}

/** @returns a WAV file per recording, in a folder of this autoencoder; what is there already stays */
export function reconstruct(vaeDirectory: string, recordings: Recording[], directory: string): string[] {
  const own = join(directory, weightsVersion(vaeDirectory));
  mkdirSync(own, { recursive: true });
  return recordings.map(({ id, path }) => {
    const output = join(own, `${id}.wav`);
    if (!existsSync(output)) roundTrip(vaeDirectory, path, output);
    return output;
  });
}

function roundTrip(vaeDirectory: string, input: string, output: string): void {
  const [before, after, partial] = [".in.f32", ".out.f32", ".part"].map((ending) => output + ending) as [
    string,
    string,
    string,
  ];
  writeFileSync(before, planar(decodeWav(readFileSync(input))));
  execFileSync(program, [vaeDirectory, before, after], { stdio: ["ignore", "inherit", "inherit"] });
  writeFileSync(partial, encodeWav(stereo(readFileSync(after))));
  renameSync(partial, output);
  for (const temporary of [before, after]) rmSync(temporary);
}

function planar({ left, right }: Stereo): Uint8Array {
  return Buffer.concat([left, right].map(({ buffer }) => new Uint8Array(buffer)));
}

function stereo(bytes: Buffer): Stereo {
  const samples = new Float32Array(new Uint8Array(bytes).buffer);
  const count = samples.length / 2;
  return { left: samples.subarray(0, count), right: samples.subarray(count) };
}
