/** Reads the headers of weight files, and writes safetensors files. */
import { closeSync, fstatSync, readSync } from "node:fs";
import { isObject } from "../parameters.js";
import { openRegularSync } from "../system/regular-file.js";

const LENGTH_BYTES = 8;
const FLOAT32_BYTES = 4;
const HEADER_ALIGNMENT_BYTES = 8;
/** Maximum header size of the format. */
const MAX_HEADER_BYTES = 100_000_000;
const MAX_GGUF_NAME_BYTES = 256;

export interface WeightFile {
  shapes: ReadonlyMap<string, readonly number[]>;
  /** Data types of the tensors, named as in the file, such as F32 or F8_E4M3. */
  types: ReadonlySet<string>;
  metadata: Readonly<Record<string, string>>;
}

/** Reads the header of a safetensors file. @throws Error that says what is wrong with the file */
export function readWeightFile(path: string): WeightFile {
  const { tensors, metadata } = withFile(path, readHeader);
  const entries = [...tensors];
  return {
    shapes: new Map(entries.map(([name, { shape }]) => [name, shape])),
    types: new Set(entries.map(([, { dtype }]) => dtype)),
    metadata,
  };
}

/** A tensor of a safetensors file, with its bytes as in the file. */
export interface StoredTensor {
  dtype: string;
  shape: readonly number[];
  bytes: Buffer;
}

/** Reads a whole safetensors file, which is in memory. @throws Error that says what is wrong with the file */
export function readTensors(file: Buffer) {
  const read = (position: number, length: number) => file.subarray(position, position + length);
  const { tensors, metadata, dataBegin } = readHeader(read, file.length);
  const stored = [...tensors].map(([name, { dtype, shape, begin, end }]): [string, StoredTensor] => [
    name,
    { dtype, shape, bytes: file.subarray(dataBegin + begin, dataBegin + end) },
  ]);
  return { tensors: new Map(stored), metadata };
}

/** Where the values of a tensor are in a safetensors file. @throws Error that says what is wrong with the file */
export function tensorRange(path: string, name: string): { begin: number; bytes: number } {
  return withFile(path, (read, size) => {
    const { tensors, dataBegin } = readHeader(read, size);
    const tensor = tensors.get(name);
    if (tensor === undefined) throw new Error(`it has no tensor '${name}'`);
    return { begin: dataBegin + tensor.begin, bytes: tensor.end - tensor.begin };
  });
}

function readHeader(read: (position: number, length: number) => Buffer, size: number) {
  const length = size < LENGTH_BYTES ? 0n : read(0, LENGTH_BYTES).readBigUInt64LE();
  if (length < 2n || length > MAX_HEADER_BYTES || Number(length) > size - LENGTH_BYTES) {
    throw new Error("it is not a safetensors file, or is truncated");
  }
  const dataBegin = LENGTH_BYTES + Number(length);
  const header: unknown = JSON.parse(read(LENGTH_BYTES, Number(length)).toString("utf8"));
  if (!isObject(header)) throw new Error("its header is not an object");
  const { __metadata__: metadata = {}, ...entries } = header;
  const tensors = new Map<string, { dtype: string; shape: readonly number[]; begin: number; end: number }>();
  for (const [name, entry] of Object.entries(entries)) {
    if (!isObject(entry) || !isShape(entry.shape)) throw new Error(`tensor '${name}' has no shape`);
    const [begin, end] = Array.isArray(entry.data_offsets) ? entry.data_offsets.map(Number) : [];
    if (begin === undefined || end === undefined || !(begin >= 0 && begin <= end && end <= size - dataBegin))
      throw new Error(`it is truncated: tensor '${name}' lies beyond the end of the file`);
    tensors.set(name, { dtype: String(entry.dtype), shape: entry.shape, begin, end });
  }
  const texts = isObject(metadata)
    ? Object.entries(metadata).map(([key, value]) => [key, String(value)])
    : [];
  return { tensors, metadata: Object.fromEntries(texts) as Record<string, string>, dataBegin };
}

/** A tensor in float32, row-major. */
export interface FloatTensor {
  shape: readonly number[];
  /** Converts the values when called, so that only one tensor at a time is in memory twice. */
  values: () => Float32Array;
}

/**
 * Yields the bytes of a safetensors file in pieces: the header's length, the header, its padding, and each
 * tensor.
 */
export function* safetensorsChunks(
  tensors: ReadonlyMap<string, FloatTensor>,
  metadata: Readonly<Record<string, string>>,
): Generator<Uint8Array> {
  let end = 0;
  const entries = [...tensors].map(([name, { shape }]) => {
    const begin = end;
    end += shape.reduce((count, extent) => count * extent, FLOAT32_BYTES);
    return [name, { dtype: "F32", shape, data_offsets: [begin, end] }];
  });
  const json = Buffer.from(JSON.stringify({ __metadata__: metadata, ...Object.fromEntries(entries) }));
  const padding = -json.length & (HEADER_ALIGNMENT_BYTES - 1);
  const length = Buffer.alloc(LENGTH_BYTES);
  length.writeBigUInt64LE(BigInt(json.length + padding));
  yield length;
  yield json;
  yield Buffer.alloc(padding, " ");
  for (const tensor of tensors.values()) {
    const { buffer, byteOffset, byteLength } = tensor.values();
    yield new Uint8Array(buffer, byteOffset, byteLength);
  }
}

/**
 * Value of `general.architecture` in a GGUF file. Reads only the first key, because all writers put this key
 * first; returns null if the first key is another one.
 * @throws Error that says what is wrong with the file
 */
export function ggufArchitecture(path: string): string | null {
  return withFile(path, (read, size) => {
    const bytes = read(0, Math.min(size, 2 * MAX_GGUF_NAME_BYTES));
    if (bytes.length < 32 || bytes.toString("latin1", 0, 4) !== "GGUF")
      throw new Error("it is not a GGUF file");
    const text = (at: number) => {
      const length = Number(bytes.readBigUInt64LE(at));
      return length > bytes.length - at - 8 ? "" : bytes.toString("utf8", at + 8, at + 8 + length);
    };
    // The first 24 bytes are magic, version and two counts. Then follow the first key, its value type and its
    // value.
    const key = text(24);
    const value = 24 + 8 + Buffer.byteLength(key) + 4;
    return key === "general.architecture" && value + 8 < bytes.length ? text(value) : null;
  });
}

function withFile<T>(
  path: string,
  work: (read: (position: number, length: number) => Buffer, size: number) => T,
): T {
  const file = openRegularSync(path, Number.POSITIVE_INFINITY);
  try {
    const { size } = fstatSync(file);
    return work((position, length) => {
      const buffer = Buffer.alloc(length);
      let filled = 0;
      while (filled < length) {
        const count = readSync(file, buffer, filled, length - filled, position + filled);
        if (count === 0) throw new Error("it is truncated");
        filled += count;
      }
      return buffer;
    }, size);
  } finally {
    closeSync(file);
  }
}

function isShape(value: unknown): value is number[] {
  return Array.isArray(value) && value.every((extent) => Number.isSafeInteger(extent) && extent >= 0);
}
