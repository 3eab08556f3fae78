/**
 * Packs a city into a `.crp` file and unpacks it. The file has the header of a game package (magic `CRAP`,
 * little-endian, strings with a 7-bit length prefix) and one entry, the compressed city. The game cannot load
 * such a file. Checksum, sizes and version are checked before the content is read.
 */
import { webcrypto } from "node:crypto";
import { promisify } from "node:util";
import { deflate, inflate } from "node:zlib";

const MAGIC = "CRAP";
const CONTAINER_VERSION = 6;
const PACKAGE_NAME = "carillon";
const ENTRY_NAME = "carillon-city";
const ENTRY_TYPE_DATA = 52;
/** Maximum size of a save file and of its decompressed content; the largest possible city needs half of it. */
export const LARGEST_CITY_BYTES = 400 * 2 ** 20;

const compress = promisify<Buffer, { level: number }, Buffer>(deflate);
const decompress = promisify<Buffer, { maxOutputLength: number }, Buffer>(inflate);

/** The file cannot be loaded as a city; the message says why. */
export class SaveFileError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "SaveFileError";
  }
}

/** Packs a city into a .crp container. @param version format of the content, checked by `unpackCity` */
export async function packCity(content: Buffer, version: number): Promise<Buffer> {
  const payload = await compress(content, { level: 3 });
  const header = Buffer.concat([
    Buffer.from(MAGIC, "latin1"),
    uint(2, CONTAINER_VERSION),
    text(PACKAGE_NAME),
    text(PACKAGE_NAME),
    uint(4, version),
    text(ENTRY_NAME),
    uint(4, 1),
  ]);
  const entry = Buffer.concat([
    text(ENTRY_NAME),
    text(await sha256(payload)),
    uint(4, ENTRY_TYPE_DATA),
    uint(8, 0),
    uint(8, payload.length),
  ]);
  const dataOffset = uint(8, header.length + 8 + entry.length);
  return Buffer.concat([header, dataOffset, entry, payload]);
}

function uint(bytes: 2 | 4 | 8, value: number): Buffer {
  const whole = Buffer.alloc(8);
  whole.writeBigUInt64LE(BigInt(value));
  return whole.subarray(0, bytes);
}

/** All texts here are shorter than 128 bytes, so the length prefix is one byte. */
function text(value: string): Buffer {
  const bytes = Buffer.from(value, "utf8");
  return Buffer.concat([Buffer.of(bytes.length), bytes]);
}

/**
 * Extracts the content of a packed city.
 * @param newest the highest version that can be read
 * @throws SaveFileError if the file is damaged or truncated, has a newer version, or is from another program
 */
export async function unpackCity(
  file: Buffer,
  newest: number,
): Promise<{ content: Buffer; version: number }> {
  const { payload, expected, version } = readPayload(new Reader(file), file, newest);
  if ((await sha256(payload)) !== expected)
    throw new SaveFileError("the file is damaged: its checksum does not match");
  try {
    return { content: await decompress(payload, { maxOutputLength: LARGEST_CITY_BYTES }), version };
  } catch (error) {
    throw new SaveFileError("the compressed city is damaged", { cause: error });
  }
}

function readPayload(reader: Reader, file: Buffer, newest: number) {
  if (reader.bytes(4).toString("latin1") !== MAGIC) throw new SaveFileError("it is not a .crp package");
  const container = reader.uint(2);
  if (container !== CONTAINER_VERSION) {
    throw new SaveFileError(`the container version is ${container} instead of ${CONTAINER_VERSION}`);
  }
  reader.text();
  reader.text();
  const version = reader.uint(4);
  const mainAsset = reader.text();
  const entries = reader.uint(4);
  if (mainAsset !== ENTRY_NAME || entries !== 1) {
    throw new SaveFileError("it is a package of the game, not a city saved by Carillon");
  }
  if (version < 1 || version > newest)
    throw new SaveFileError(`the city version is ${version}; this version of Carillon reads 1 to ${newest}`);
  const dataOffset = reader.uint(8);
  reader.text();
  const expected = reader.text();
  reader.uint(4);
  const start = dataOffset + reader.uint(8);
  const size = reader.uint(8);
  if (file.length !== start + size) {
    throw new SaveFileError(
      `the file is truncated or too long: ${file.length} bytes instead of ${start + size}`,
    );
  }
  return { payload: file.subarray(start), expected, version };
}

/** Computed in another thread. */
export async function sha256(bytes: Buffer): Promise<string> {
  return Buffer.from(await webcrypto.subtle.digest("SHA-256", bytes)).toString("hex");
}

class Reader {
  readonly #file: Buffer;
  #offset = 0;

  constructor(file: Buffer) {
    this.#file = file;
  }

  bytes(count: number): Buffer {
    const end = this.#offset + count;
    if (end > this.#file.length) throw new SaveFileError("the file is truncated: it ends inside its header");
    const bytes = this.#file.subarray(this.#offset, end);
    this.#offset = end;
    return bytes;
  }

  uint(bytes: 2 | 4 | 8): number {
    const whole = Buffer.alloc(8);
    this.bytes(bytes).copy(whole);
    const value = whole.readBigUInt64LE();
    if (value > BigInt(Number.MAX_SAFE_INTEGER)) {
      throw new SaveFileError("the header contains an invalid size");
    }
    return Number(value);
  }

  text(): string {
    let length = 0;
    for (let shift = 0; shift < 28; shift += 7) {
      const byte = this.bytes(1)[0] as number;
      length |= (byte & 0x7f) << shift;
      if ((byte & 0x80) === 0) return this.bytes(length).toString("utf8");
    }
    throw new SaveFileError("the header contains an invalid text length");
  }
}
