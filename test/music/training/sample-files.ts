/**
 * Writes small training samples in the file formats of other trainers.
 */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Checkpoints, EMBEDDED_MODEL } from "../../../src/engine/checkpoints.js";
import { writeSafetensors } from "../adapter-files.js";

/** A tensor whose values are floats, or booleans as bytes. */
export interface SampleTensor {
  shape: number[];
  values: Float32Array | Uint8Array;
}

export type SampleTensors = Record<string, SampleTensor>;

/** Widths of latents and conditions in the built-in model. */
function widths(): { latent: number; condition: number } {
  const { path: directory } = new Checkpoints("absent").renderer(EMBEDDED_MODEL).model;
  const config = JSON.parse(readFileSync(join(directory, "config.json"), "utf8"));
  return { latent: config.audio_acoustic_hidden_dim, condition: config.hidden_size };
}

/** Tensors of a sample for the built-in model, determined by the seed. */
export function sampleTensors(seed: number, frames = 16, tokens = 6): SampleTensors {
  const { latent, condition } = widths();
  const draw = numbersBetween(seed);
  const floats = (...shape: number[]): SampleTensor => ({
    shape,
    values: Float32Array.from({ length: shape.reduce((a, b) => a * b, 1) }, draw),
  });
  const context = floats(frames, 2 * latent);
  for (let i = 0; i < context.values.length; i++) {
    // The second half of every frame is the chunk mask.
    if (i % (2 * latent) >= latent) context.values[i] = 1;
  }
  return {
    target_latents: floats(frames, latent),
    attention_mask: { shape: [frames], values: new Float32Array(frames).fill(1) },
    encoder_hidden_states: floats(tokens, condition),
    encoder_attention_mask: { shape: [tokens], values: new Uint8Array(tokens).fill(1) },
    context_latents: context,
  };
}

/** Returns a linear congruential generator of uniform numbers in -1 .. 1. */
function numbersBetween(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1103515245 + 12345) % 2 ** 31;
    return state / 2 ** 30 - 1;
  };
}

/** Writes a directory of samples with a manifest. Sample `n` is drawn from the seed `n + 1`. */
export function writeSampleSet(directory: string, sampleCount: number, frames?: number): void {
  const names = Array.from({ length: sampleCount }, (_, index) => `sample${index}.pt`);
  for (const [index, name] of names.entries()) {
    writeSample(join(directory, name), sampleTensors(index + 1, frames));
  }
  const metadata = { name: "test set", custom_tag: "tag" };
  writeFileSync(
    join(directory, "manifest.json"),
    JSON.stringify({ metadata, samples: names, num_samples: names.length }),
  );
}

export function writeSample(path: string, tensors: SampleTensors): void {
  mkdirSync(join(path, ".."), { recursive: true });
  const entries = Object.entries(tensors);
  const files: [name: string, bytes: Buffer][] = [
    ["data.pkl", pickled(entries)],
    ...entries.map(([, { values }], index): [string, Buffer] => [
      `data/${index}`,
      Buffer.from(values.buffer, values.byteOffset, values.byteLength),
    ]),
    ["version", Buffer.from("3\n")],
  ];
  writeFileSync(path, storedZip(files.map(([name, bytes]) => [`sample/${name}`, bytes])));
}

/** Writes a sample as a safetensors file. Masks become floats. */
export function writeSafetensorsSample(path: string, tensors: SampleTensors): void {
  mkdirSync(join(path, ".."), { recursive: true });
  const entries = Object.entries(tensors).map(([name, { shape, values }]) => [
    name,
    { shape, values: Float32Array.from(values) },
  ]);
  writeSafetensors(path, Object.fromEntries(entries));
}

/** Pickles a dictionary of tensors with protocol 2. */
function pickled(entries: [string, SampleTensor][]): Buffer {
  const int = (value: number) => Buffer.concat([Buffer.from("J"), uint32(value)]);
  const text = (value: string) => {
    const bytes = Buffer.from(value);
    return Buffer.concat([Buffer.from("X"), uint32(bytes.length), bytes]);
  };
  const global = (module: string, name: string) => Buffer.from(`c${module}\n${name}\n`);
  const tuple = (...items: Buffer[]) => Buffer.concat([Buffer.from("("), ...items, Buffer.from("t")]);
  const tensor = ({ shape, values }: SampleTensor, index: number) => {
    const storageType = values instanceof Float32Array ? "FloatStorage" : "BoolStorage";
    const storage = tuple(
      text("storage"),
      global("torch", storageType),
      text(String(index)),
      text("cpu"),
      int(values.length),
    );
    const strides = shape.map((_, axis) => shape.slice(axis + 1).reduce((a, b) => a * b, 1));
    const content = tuple(
      Buffer.concat([storage, Buffer.from("Q")]),
      int(0),
      tuple(...shape.map(int)),
      tuple(...strides.map(int)),
      Buffer.from([0x89]),
      Buffer.concat([global("collections", "OrderedDict"), Buffer.from(")R")]),
    );
    return Buffer.concat([global("torch._utils", "_rebuild_tensor_v2"), content, Buffer.from("R")]);
  };
  const items = entries.flatMap(([name, value], index) => [text(name), tensor(value, index)]);
  return Buffer.concat([Buffer.from([0x80, 2]), Buffer.from("}("), ...items, Buffer.from("u.")]);
}

/** A ZIP archive without compression. */
function storedZip(files: [name: string, bytes: Buffer][]): Buffer {
  const parts: Buffer[] = [];
  const directory: Buffer[] = [];
  let offset = 0;
  for (const [name, bytes] of files) {
    const sizes = Buffer.concat([uint32(crc32(bytes)), uint32(bytes.length), uint32(bytes.length)]);
    const lengths = Buffer.concat([uint16(Buffer.byteLength(name)), uint16(0)]);
    // ZIP fields: version needed, flags, method (stored), time, date.
    const common = Buffer.concat([uint16(10), uint16(0), uint16(0), uint16(0), uint16(0), sizes, lengths]);
    const local = Buffer.concat([Buffer.from("PK\x03\x04"), common, Buffer.from(name), bytes]);
    // ZIP fields: comment length, disk, internal and external attributes.
    const tail = Buffer.concat([uint16(0), uint16(0), uint16(0), uint32(0), uint32(offset)]);
    directory.push(Buffer.concat([Buffer.from("PK\x01\x02"), uint16(20), common, tail, Buffer.from(name)]));
    parts.push(local);
    offset += local.length;
  }
  const listed = Buffer.concat(directory);
  const counts = Buffer.concat([uint16(0), uint16(0), uint16(files.length), uint16(files.length)]);
  const end = Buffer.concat([
    Buffer.from("PK\x05\x06"),
    counts,
    uint32(listed.length),
    uint32(offset),
    uint16(0),
  ]);
  return Buffer.concat([...parts, listed, end]);
}

function uint16(value: number): Buffer {
  const bytes = Buffer.alloc(2);
  bytes.writeUInt16LE(value);
  return bytes;
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value >>> 0);
  return bytes;
}

function crc32(bytes: Buffer): number {
  let crc = 0xffffffff;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
  }
  return ~crc;
}
