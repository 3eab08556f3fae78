/**
 * Latents of a song as a safetensors file. The tensor `latents` [frames, channels] is F32 or BF16 and has 25
 * frames a second. The optional tensor `silence` [channels] is the first latent frame of silence, which
 * identifies the VAE. Optional metadata entries: `samples` is the song's length in samples at 48 kHz, `gain` the
 * factor from the decoded latents to the audio of the song.
 */

import { writeFile } from "node:fs/promises";
import { SAMPLE_RATE, type SongLatents } from "../../engine/types.js";
import { type FloatTensor, safetensorsChunks } from "../../engine/weight-file.js";
import { isObject } from "../../parameters.js";
import { writeAtomically } from "../../system/atomic-file.js";
import { readRegular, UnusableFileError } from "../../system/regular-file.js";
import { RequestError } from "../errors.js";

const LENGTH_BYTES = 8;
const VALUE_BYTES = 4;
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

/** @throws RequestError naming the parameter and the fault of the file */
export async function readLatents(path: string, name: string, maxSeconds: number): Promise<SongLatents> {
  const refuse = (fault: string): never => {
    throw new RequestError(`${name} ${fault}`);
  };
  const bytes = await readRegular(path, MAX_BYTES).catch((error: unknown) => {
    if (error instanceof UnusableFileError) return refuse(error.fault);
    throw error;
  });
  const { header, data } = split(bytes) ?? refuse("is not a safetensors file, or is truncated");
  const shape = shapeOf(header.latents) ?? refuse("holds no tensor `latents`");
  const [frames = 0, channels = 0] = shape.length === 3 && shape[0] === 1 ? shape.slice(1) : shape;
  if (shape.length - (shape[0] === 1 ? 1 : 0) > 2 || frames < 1 || channels < 1) {
    refuse(`has the shape [${shape.join(", ")}]: latents are [frames, channels]`);
  }
  const values =
    floatsOf(header.latents, frames * channels, data) ??
    refuse("holds latents of another type than F32 and BF16, or is truncated");
  if (!values.every(Number.isFinite)) refuse("holds a value that is not a number");
  const seconds = (frames * SAMPLES_PER_FRAME) / SAMPLE_RATE;
  if (seconds > maxSeconds) refuse(`lasts longer than ${maxSeconds} seconds`);
  const [silenceLength = 0] = shapeOf(header.silence) ?? [];
  const gain = gainOf(header.__metadata__);
  if (gain === undefined) return refuse("states a gain that is not a positive number");
  return {
    values,
    frames,
    samples:
      samplesOf(header.__metadata__, frames) ?? refuse("states a length that does not match its frames"),
    silentFrame: floatsOf(header.silence, silenceLength, data),
    gain,
  };
}

function split(bytes: Buffer): { header: Record<string, unknown>; data: Buffer } | null {
  if (bytes.length < LENGTH_BYTES) return null;
  const length = bytes.readBigUInt64LE();
  if (length > bytes.length - LENGTH_BYTES) return null;
  const begin = LENGTH_BYTES + Number(length);
  try {
    const header: unknown = JSON.parse(bytes.toString("utf8", LENGTH_BYTES, begin));
    return isObject(header) ? { header, data: bytes.subarray(begin) } : null;
  } catch {
    return null;
  }
}

function shapeOf(entry: unknown): number[] | null {
  const isSize = (size: unknown) => Number.isSafeInteger(size) && (size as number) >= 0;
  return isObject(entry) && Array.isArray(entry.shape) && entry.shape.every(isSize) ? entry.shape : null;
}

/** Values of a tensor; null if its type is not supported or its offsets do not match its size. */
function floatsOf(entry: unknown, count: number, data: Buffer): Float32Array | null {
  if (!isObject(entry) || !Array.isArray(entry.data_offsets)) return null;
  const [begin, end] = entry.data_offsets;
  const width = entry.dtype === "F32" ? VALUE_BYTES : entry.dtype === "BF16" ? 2 : 0;
  if (!Number.isSafeInteger(begin) || begin < 0 || end > data.length || end - begin !== count * width)
    return null;
  if (width === 0) return null;
  if (width === VALUE_BYTES)
    return new Float32Array(data.buffer.slice(data.byteOffset + begin, data.byteOffset + end));
  // A BF16 value is the upper half of a float.
  const words = Uint32Array.from({ length: count }, (_, i) => data.readUInt16LE(begin + 2 * i) << 16);
  return new Float32Array(words.buffer);
}

/** Gain from the metadata; null if it has none, undefined if it is not a positive number. */
function gainOf(metadata: unknown): number | null | undefined {
  const stated = isObject(metadata) ? metadata.gain : undefined;
  if (stated === undefined) return null;
  const gain = Number(stated);
  return Number.isFinite(gain) && gain > 0 ? gain : undefined;
}

/**
 * Song length in samples, from the metadata. Without such metadata, it is the length of all frames. Null if
 * the length in the metadata does not end within the last frame.
 */
function samplesOf(metadata: unknown, frames: number): number | null {
  const whole = frames * SAMPLES_PER_FRAME;
  const stated = isObject(metadata) ? metadata.samples : undefined;
  if (stated === undefined) return whole;
  const samples = Number(stated);
  const isWithin = Number.isSafeInteger(samples) && samples <= whole && samples > whole - SAMPLES_PER_FRAME;
  return isWithin ? samples : null;
}
