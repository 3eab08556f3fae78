/**
 * The `.crp` container of a saved city: the package header the game uses (magic `CRAP`, little-endian, strings with a
 * 7-bit length prefix) around one data entry, which is the compressed city. The game cannot load such a file and need
 * not; the checksum, the sizes and the version are checked before anything is read from it.
 */
import { createHash } from "node:crypto";
import { promisify } from "node:util";
import { deflate, inflate } from "node:zlib";

const MAGIC = "CRAP";
const CONTAINER_VERSION = 6;
const PACKAGE_NAME = "carillon";
const ENTRY_NAME = "carillon-city";
const ENTRY_TYPE_DATA = 52;
/** A city is far smaller than this; anything larger is not one. */
const LARGEST_CITY_BYTES = 1 << 30;

const compress = promisify<Buffer, { level: number }, Buffer>(deflate);
const decompress = promisify<Buffer, { maxOutputLength: number }, Buffer>(inflate);

/** A file cannot be loaded as a city. The message says why. */
export class SaveFileError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "SaveFileError";
  }
}

/** @param version of the content, checked when it is read again */
export async function packCity(content: Buffer, version: number): Promise<Buffer> {
  const payload = await compress(content, { level: 3 });
  const writer = new Writer();
  writer.bytes(Buffer.from(MAGIC, "latin1"));
  writer.uint16(CONTAINER_VERSION);
  writer.string(PACKAGE_NAME);
  writer.string(PACKAGE_NAME);
  writer.uint32(version);
  writer.string(ENTRY_NAME);
  writer.uint32(1);
  const entry = new Writer();
  entry.string(ENTRY_NAME);
  entry.string(checksum(payload));
  entry.uint32(ENTRY_TYPE_DATA);
  entry.uint64(0);
  entry.uint64(payload.length);
  const entryBytes = entry.finish();
  writer.uint64(writer.length + 8 + entryBytes.length);
  writer.bytes(entryBytes);
  writer.bytes(payload);
  return writer.finish();
}

/**
 * The content of a packed city.
 * @throws SaveFileError for a file that is foreign, of another version, truncated or damaged
 */
export async function unpackCity(file: Buffer, version: number): Promise<Buffer> {
  const payload = readPayload(new Reader(file), file, version);
  try {
    return await decompress(payload, { maxOutputLength: LARGEST_CITY_BYTES });
  } catch (error) {
    throw new SaveFileError("the compressed city is damaged", { cause: error });
  }
}

function readPayload(reader: Reader, file: Buffer, version: number): Buffer {
  if (reader.bytes(4).toString("latin1") !== MAGIC) throw new SaveFileError("it is not a .crp package");
  const container = reader.uint16();
  if (container !== CONTAINER_VERSION) {
    throw new SaveFileError(`its container version is ${container}, not ${CONTAINER_VERSION}`);
  }
  reader.string();
  reader.string();
  const found = reader.uint32();
  const mainAsset = reader.string();
  const entries = reader.uint32();
  if (mainAsset !== ENTRY_NAME || entries !== 1) {
    throw new SaveFileError("it is a package of the game, not a city of this program");
  }
  if (found !== version)
    throw new SaveFileError(`its city version is ${found}, this program reads ${version}`);
  const dataOffset = reader.uint64();
  reader.string();
  const expected = reader.string();
  reader.uint32();
  const start = dataOffset + reader.uint64();
  const size = reader.uint64();
  if (file.length !== start + size) {
    throw new SaveFileError(`it is truncated or overlong: ${file.length} bytes instead of ${start + size}`);
  }
  const payload = file.subarray(start);
  if (checksum(payload) !== expected)
    throw new SaveFileError("its checksum does not match: the file is damaged");
  return payload;
}

function checksum(bytes: Buffer): string {
  return createHash("sha256").update(bytes).digest("hex");
}

class Writer {
  private readonly parts: Buffer[] = [];
  length = 0;

  bytes(bytes: Buffer): void {
    this.parts.push(bytes);
    this.length += bytes.length;
  }

  uint16(value: number): void {
    const bytes = Buffer.alloc(2);
    bytes.writeUInt16LE(value);
    this.bytes(bytes);
  }

  uint32(value: number): void {
    const bytes = Buffer.alloc(4);
    bytes.writeUInt32LE(value);
    this.bytes(bytes);
  }

  uint64(value: number): void {
    const bytes = Buffer.alloc(8);
    bytes.writeBigUInt64LE(BigInt(value));
    this.bytes(bytes);
  }

  /** All strings here are shorter than 128 bytes, so the length prefix is one byte. */
  string(text: string): void {
    const bytes = Buffer.from(text, "utf8");
    this.bytes(Buffer.from([bytes.length]));
    this.bytes(bytes);
  }

  finish(): Buffer {
    return Buffer.concat(this.parts);
  }
}

class Reader {
  private offset = 0;

  constructor(private readonly file: Buffer) {}

  bytes(count: number): Buffer {
    const end = this.offset + count;
    if (end > this.file.length) throw new SaveFileError("it ends inside its header: the file is truncated");
    const bytes = this.file.subarray(this.offset, end);
    this.offset = end;
    return bytes;
  }

  uint16(): number {
    return this.bytes(2).readUInt16LE();
  }

  uint32(): number {
    return this.bytes(4).readUInt32LE();
  }

  uint64(): number {
    const value = this.bytes(8).readBigUInt64LE();
    if (value > BigInt(Number.MAX_SAFE_INTEGER))
      throw new SaveFileError("its header holds an impossible size");
    return Number(value);
  }

  string(): string {
    let length = 0;
    for (let shift = 0; shift < 28; shift += 7) {
      const byte = this.bytes(1)[0] as number;
      length |= (byte & 0x7f) << shift;
      if ((byte & 0x80) === 0) return this.bytes(length).toString("utf8");
    }
    throw new SaveFileError("its header holds an impossible text length");
  }
}
