import { writeFile } from "node:fs/promises";

const ALIGNMENT = 32;
const CODES_PER_BLOCK = 32;
const F32 = 0;
const Q8_0 = 8;

interface Header {
  [name: string]: { dtype: string; shape: number[]; data_offsets: [number, number] };
}

/** Converts a safetensors file of bfloat16 or float32 to GGUF: matrices as Q8_0, the rest as F32. */
export async function writeGguf(path: string, safetensors: Buffer): Promise<void> {
  const headerBytes = Number(safetensors.readBigUInt64LE(0));
  const { __metadata__, ...header } = JSON.parse(safetensors.toString("utf8", 8, 8 + headerBytes)) as Header;
  const entries: Buffer[] = [];
  const data: Buffer[] = [];
  let offset = 0;
  for (const [name, { dtype, shape, data_offsets: at }] of Object.entries(header)) {
    const numbers = floatsOf(safetensors.subarray(8 + headerBytes + at[0], 8 + headerBytes + at[1]), dtype);
    const isMatrix = shape.length === 2 && (shape[1] as number) % CODES_PER_BLOCK === 0;
    const bytes = isMatrix ? q8Of(numbers) : Buffer.from(numbers.buffer);
    const extents = shape.toReversed().map(uint64);
    entries.push(text(name), uint32(shape.length), ...extents, uint32(isMatrix ? Q8_0 : F32), uint64(offset));
    data.push(padded(bytes));
    offset += padded(bytes).length;
  }
  const metadata = [text("general.architecture"), uint32(8), text("test")];
  const start = [Buffer.from("GGUF"), uint32(3), uint64(data.length), uint64(1), ...metadata];
  await writeFile(path, Buffer.concat([padded(Buffer.concat([...start, ...entries])), ...data]));
}

function floatsOf(bytes: Buffer, dtype: string): Float32Array {
  if (dtype === "F32") return new Float32Array(new Uint8Array(bytes).buffer);
  if (dtype !== "BF16") throw new Error(`cannot read ${dtype}`);
  const upper = new Uint16Array(new Uint8Array(bytes).buffer);
  return new Float32Array(Uint32Array.from(upper, (half) => half << 16).buffer);
}

/** Quantizes to blocks of a float16 scale and 32 int8 values. */
function q8Of(numbers: Float32Array): Buffer {
  const blocks = Array.from({ length: numbers.length / CODES_PER_BLOCK }, (_, index) => {
    const block = numbers.subarray(index * CODES_PER_BLOCK, (index + 1) * CODES_PER_BLOCK);
    const [bits, scale] = half(Math.fround(block.reduce((most, x) => Math.max(most, Math.abs(x)), 0) / 127));
    const bytes = Buffer.alloc(2 + CODES_PER_BLOCK);
    bytes.writeUInt16LE(bits);
    if (scale === 0) return bytes;
    block.forEach((x, i) => {
      bytes.writeInt8(Math.max(-127, Math.min(127, roundToEven(Math.fround(x / scale)))), 2 + i);
    });
    return bytes;
  });
  return Buffer.concat(blocks);
}

/** Rounds a number from 0 to 1 to float16. Returns its bits and its value. */
function half(x: number): [bits: number, value: number] {
  const exponent = Math.max(Math.floor(Math.log2(x)), -14);
  const mantissa = roundToEven(x * 2 ** (10 - exponent));
  const bits = mantissa < 1024 ? mantissa : ((exponent + 14) << 10) + mantissa;
  return [bits, mantissa * 2 ** (exponent - 10)];
}

function roundToEven(x: number): number {
  const rounded = Math.round(x);
  return Math.abs(x % 1) === 0.5 && rounded % 2 !== 0 ? rounded - 1 : rounded;
}

function padded(bytes: Buffer): Buffer {
  return Buffer.concat([bytes, Buffer.alloc((ALIGNMENT - (bytes.length % ALIGNMENT)) % ALIGNMENT)]);
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}

function uint64(value: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt(value));
  return bytes;
}

function text(value: string): Buffer {
  return Buffer.concat([uint64(Buffer.byteLength(value)), Buffer.from(value)]);
}
