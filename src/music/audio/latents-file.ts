/**
 * Latents of a song as a safetensors file. The tensor `latents` [frames, channels] is F32 or BF16 and has 25
 * frames a second. The optional tensor `silence` [channels] is the first latent frame of silence, which
 * identifies the VAE. Optional metadata entries: `samples` is the song's length in samples at 48 kHz, `gain` the
 * factor from the decoded latents to the audio of the song, or to the parts of its source that the song keeps.
 */

import { writeFile } from "node:fs/promises";
import { SAMPLE_RATE, type SongLatents } from "../../engine/types.js";
import {
  type FloatTensor,
  readTensors,
  type StoredTensor,
  safetensorsChunks,
} from "../../engine/weight-file.js";
import { writeAtomically } from "../../system/atomic-file.js";
import { readRegular, UnusableFileError } from "../../system/regular-file.js";
import { RequestError } from "../errors.js";

/** Maximum file size: ten times the longest song of the published models. */
const MAX_BYTES = 64 * 2 ** 20;
/** Samples of one latent frame at SAMPLE_RATE. */
const SAMPLES_PER_FRAME = 1920;

export const LATENTS_EXTENSION = "safetensors";

/** @returns the size of the file */
export async function writeLatents(path: string, latents: SongLatents): Promise<number> {
  const { values, frames, samples, silentFrame, gain } = latents;
  const tensors = new Map<string, FloatTensor>([
    ["latents", { shape: [frames, values.length / frames], values: () => values }],
  ]);
  if (silentFrame !== null)
    tensors.set("silence", { shape: [silentFrame.length], values: () => silentFrame });
  const metadata = {
    samples: String(samples),
    sample_rate: String(SAMPLE_RATE),
    ...(gain !== null && { gain: String(gain) }),
  };
  const bytes = Buffer.concat([...safetensorsChunks(tensors, metadata)]);
  await writeAtomically(path, (partial) => writeFile(partial, bytes), { partial: `${path}.part` });
  return bytes.length;
}

/** Beginning of a latents file, which the values follow: float32, row-major. */
export function latentsHeader(frames: number, channels: number): Buffer {
  const tensors = new Map([["latents", { shape: [frames, channels], values: () => new Float32Array() }]]);
  return Buffer.concat([...safetensorsChunks(tensors, {})]);
}

/** @throws RequestError naming the parameter and the fault of the file */
export async function readLatents(path: string, name: string, maxSeconds: number): Promise<SongLatents> {
  const refuse = (fault: string): never => {
    throw new RequestError(`${name} ${fault}`);
  };
  const bytes = await readRegular(path, MAX_BYTES).catch((error: unknown) => {
    if (error instanceof UnusableFileError) return refuse(error.fault);
    throw error;
  });
  const { tensors, metadata } = readOr(bytes, () => refuse("is not a safetensors file, or is truncated"));
  const latents = tensors.get("latents") ?? refuse("holds no tensor `latents`");
  const { shape } = latents;
  const [frames = 0, channels = 0] = shape.length === 3 && shape[0] === 1 ? shape.slice(1) : shape;
  if (shape.length - (shape[0] === 1 ? 1 : 0) > 2 || frames < 1 || channels < 1) {
    refuse(`has the shape [${shape.join(", ")}]: latents are [frames, channels]`);
  }
  const values = floatsOf(latents) ?? refuse("holds latents of another type than F32 and BF16");
  if (!values.every(Number.isFinite)) refuse("holds a value that is not a number");
  const seconds = (frames * SAMPLES_PER_FRAME) / SAMPLE_RATE;
  if (seconds > maxSeconds) refuse(`lasts longer than ${maxSeconds} seconds`);
  const silence = tensors.get("silence");
  const gain = gainOf(metadata);
  if (gain === undefined) return refuse("states a gain that is not a positive number");
  return {
    values,
    frames,
    samples: samplesOf(metadata, frames) ?? refuse("states a length that does not match its frames"),
    silentFrame: silence === undefined ? null : floatsOf(silence),
    gain,
  };
}

function readOr(bytes: Buffer, refuse: () => never): ReturnType<typeof readTensors> {
  try {
    return readTensors(bytes);
  } catch {
    return refuse();
  }
}

/** Values of a tensor; null if its type is not supported or its bytes do not match its shape. */
function floatsOf({ dtype, shape, bytes }: StoredTensor): Float32Array | null {
  const count = shape.reduce((product, extent) => product * extent, 1);
  // Copies the bytes, because Float32Array needs an aligned offset.
  if (dtype === "F32" && bytes.length === 4 * count) return new Float32Array(new Uint8Array(bytes).buffer);
  if (dtype !== "BF16" || bytes.length !== 2 * count) return null;
  // A BF16 value is the upper half of a float.
  const words = Uint32Array.from({ length: count }, (_, i) => bytes.readUInt16LE(2 * i) << 16);
  return new Float32Array(words.buffer);
}

/** Gain from the metadata; null if it has none, undefined if it is not a positive number. */
function gainOf(metadata: Readonly<Record<string, string>>): number | null | undefined {
  if (metadata.gain === undefined) return null;
  const gain = Number(metadata.gain);
  return Number.isFinite(gain) && gain > 0 ? gain : undefined;
}

/**
 * Song length in samples, from the metadata. Without such metadata, it is the length of all frames. Null if
 * the length in the metadata does not end within the last frame.
 */
function samplesOf(metadata: Readonly<Record<string, string>>, frames: number): number | null {
  const whole = frames * SAMPLES_PER_FRAME;
  if (metadata.samples === undefined) return whole;
  const samples = Number(metadata.samples);
  const isWithin = Number.isSafeInteger(samples) && samples <= whole && samples > whole - SAMPLES_PER_FRAME;
  return isWithin ? samples : null;
}
