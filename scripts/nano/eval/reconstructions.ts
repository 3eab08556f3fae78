/** What the autoencoder makes of recordings: encoded and decoded again by the native core. */
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Stereo } from "../render/stereo.js";
import { decodeWav, encodeWav } from "../render/wav.js";

const program = fileURLToPath(new URL("../../../build/native/eval/carillon-vae-roundtrip", import.meta.url));

/** @returns a WAV file per recording, of the same name */
export function reconstruct(vaeDirectory: string, recordings: string[], directory: string): string[] {
  mkdirSync(directory, { recursive: true });
  return recordings.map((recording) => {
    const [input, output] = ["in.f32", "out.f32"].map((name) => join(directory, name)) as [string, string];
    const path = join(directory, basename(recording));
    writeFileSync(input, planar(decodeWav(readFileSync(recording))));
    execFileSync(program, [vaeDirectory, input, output], { stdio: ["ignore", "inherit", "inherit"] });
    writeFileSync(path, encodeWav(stereo(readFileSync(output))));
    for (const temporary of [input, output]) rmSync(temporary);
    return path;
  });
}

function planar({ left, right }: Stereo): Uint8Array {
  return Buffer.concat([left, right].map(({ buffer }) => new Uint8Array(buffer)));
}

function stereo(bytes: Buffer): Stereo {
  const samples = new Float32Array(new Uint8Array(bytes).buffer);
  const count = samples.length / 2;
  return { left: samples.subarray(0, count), right: samples.subarray(count) };
}
