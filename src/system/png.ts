/** Writes PNG files with a palette. */
import { promisify } from "node:util";
import { crc32, deflate } from "node:zlib";

export type Rgb = readonly [red: number, green: number, blue: number];

interface Picture {
  width: number;
  height: number;
  /** Palette index per pixel, row by row from the top. */
  pixels: Uint8Array;
  palette: readonly Rgb[];
}

const SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
const BIT_DEPTH = 8;
const INDEXED_COLOR = 3;
const NO_FILTER = 0;
const compress = promisify<Buffer, Buffer>(deflate);

/** Node's zlib compresses in another thread. */
export async function encodePng({ width, height, pixels, palette }: Picture): Promise<Buffer> {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header[8] = BIT_DEPTH;
  header[9] = INDEXED_COLOR;
  const rows = Buffer.alloc((width + 1) * height, NO_FILTER);
  for (let y = 0; y < height; y++) rows.set(pixels.subarray(y * width, (y + 1) * width), y * (width + 1) + 1);
  return Buffer.concat([
    SIGNATURE,
    chunk("IHDR", header),
    chunk("PLTE", Buffer.from(palette.flat())),
    chunk("IDAT", await compress(rows)),
    chunk("IEND", Buffer.alloc(0)),
  ]);
}

function chunk(type: string, data: Buffer): Buffer {
  const typed = Buffer.concat([Buffer.from(type, "latin1"), data]);
  const [length, checksum] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(data.length);
  checksum.writeUInt32BE(crc32(typed));
  return Buffer.concat([length, typed, checksum]);
}
