/**
 * Packs a city into a `.crp` file and unpacks it. The file has the header of a game package (magic `CRAP`,
 * little-endian, strings with a 7-bit length prefix) and one entry, the compressed city. The game cannot load
 * such a file. The header is always the same but for version, checksum and size, which are checked before the content is
 * read.
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
  return Buffer.concat([headerOf(version, await sha256(payload), payload.length), payload]);
}

function headerOf(version: number, checksum: string, payloadBytes: number): Buffer {
  const header = [
    ...[Buffer.from(MAGIC), uint(2, CONTAINER_VERSION), text(PACKAGE_NAME), text(PACKAGE_NAME)],
    ...[uint(4, version), text(ENTRY_NAME), uint(4, 1)],
  ];
  const entry = [
    text(ENTRY_NAME),
    text(checksum),
    uint(4, ENTRY_TYPE_DATA),
    uint(8, 0),
    uint(8, payloadBytes),
  ];
  const bytes = [...header, ...entry].reduce((sum, { length }) => sum + length, 8);
  return Buffer.concat([...header, uint(8, bytes), ...entry]);
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

/** The parts of a header that differ between saves, as in an empty one. */
const NO_CHECKSUM = "-".repeat(64);
const EMPTY_HEADER = headerOf(0, NO_CHECKSUM, 0);
const HEADER_BYTES = EMPTY_HEADER.length;
const CHECKSUM_AT = EMPTY_HEADER.indexOf(NO_CHECKSUM);
const VERSION_AT = EMPTY_HEADER.indexOf(ENTRY_NAME) - 5;

/**
 * Extracts the content of a packed city.
 * @param newest the highest version that can be read
 * @throws SaveFileError if the file is damaged or truncated, has a newer version, or is from another program
 */
export async function unpackCity(
  file: Buffer,
  newest: number,
): Promise<{ content: Buffer; version: number }> {
  const { payload, expected, version } = readPayload(file, newest);
  if ((await sha256(payload)) !== expected)
    throw new SaveFileError("the file is damaged: its checksum does not match");
  try {
    return { content: await decompress(payload, { maxOutputLength: LARGEST_CITY_BYTES }), version };
  } catch (error) {
    throw new SaveFileError("the compressed city is damaged", { cause: error });
  }
}

function readPayload(file: Buffer, newest: number) {
  const isPackage = file.toString("latin1", 0, MAGIC.length) === MAGIC;
  if (!isPackage && file.length >= MAGIC.length) throw new SaveFileError("it is not a .crp package");
  if (file.length < HEADER_BYTES) throw new SaveFileError("the file is truncated: it ends inside its header");
  const version = file.readUInt32LE(VERSION_AT);
  const expected = file.toString("latin1", CHECKSUM_AT, CHECKSUM_AT + NO_CHECKSUM.length);
  const bytes = Number(file.readBigUInt64LE(HEADER_BYTES - 8));
  if (!file.subarray(0, HEADER_BYTES).equals(headerOf(version, expected, bytes)))
    throw new SaveFileError("it is a package of the game, not a city saved by Carillon");
  if (version < 1 || version > newest)
    throw new SaveFileError(`the city version is ${version}; this version of Carillon reads 1 to ${newest}`);
  const payload = file.subarray(HEADER_BYTES);
  if (payload.length !== bytes) {
    throw new SaveFileError(
      `the file is truncated or too long: ${file.length} bytes instead of ${HEADER_BYTES + bytes}`,
    );
  }
  return { payload, expected, version };
}

/** Computed in another thread. */
export async function sha256(bytes: Buffer): Promise<string> {
  return Buffer.from(await webcrypto.subtle.digest("SHA-256", bytes)).toString("hex");
}
