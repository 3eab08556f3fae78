/**
 * Songs as data URLs in JSON. A long song exceeds the maximum string length, and several may exceed the memory. So the
 * text contains placeholders, and the songs are read, encoded and sent in pieces.
 */
import { randomUUID } from "node:crypto";
import { type FileHandle, open } from "node:fs/promises";
import { Readable, type Writable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { contentTypeOf } from "./formats.js";

/** Bytes encoded at once; a multiple of three, so that pieces join without padding. */
const PIECE_BYTES = 48 * 1024;

interface OpenSong {
  mark: string;
  url: string;
  file: FileHandle;
  bytes: number;
}

export class DataUrls {
  private constructor(private readonly songs: readonly OpenSong[]) {}

  /** Opens the files, so that songs deleted meanwhile can still be sent. The caller closes them. */
  static async open(paths: readonly string[]): Promise<DataUrls> {
    const songs: OpenSong[] = [];
    try {
      for (const path of paths) {
        const file = await open(path);
        const mark = randomUUID();
        const url = `data:${contentTypeOf(path)};base64,${mark}`;
        songs.push({ mark, url, file, bytes: 0 });
        (songs.at(-1) as OpenSong).bytes = (await file.stat()).size;
      }
      return new DataUrls(songs);
    } catch (error) {
      await new DataUrls(songs).close();
      throw error;
    }
  }

  /** Placeholders that stand for the songs in the text. Use each placeholder once, in this order. */
  get urls(): string[] {
    return this.songs.map(({ url }) => url);
  }

  /** Like `urls`, but for the base64 text alone. */
  get data(): string[] {
    return this.songs.map(({ mark }) => mark);
  }

  /** Number of bytes of the text once the songs replace their placeholders. */
  byteLength(text: string): number {
    const added = this.songs.map(({ mark, bytes }) => 4 * Math.ceil(bytes / 3) - mark.length);
    return added.reduce((sum, bytes) => sum + bytes, Buffer.byteLength(text));
  }

  /** Writes the text and its songs, with backpressure. An error destroys the destination. */
  async send(text: string, destination: Writable, end: boolean): Promise<void> {
    await pipeline(Readable.from(this.#pieces(text), { highWaterMark: 1 }), destination, { end });
  }

  async *#pieces(text: string): AsyncGenerator<string> {
    let at = 0;
    for (const { mark, file, bytes } of this.songs) {
      const markAt = text.indexOf(mark, at);
      if (markAt < 0) continue;
      yield text.slice(at, markAt);
      yield* encoded(file, bytes);
      at = markAt + mark.length;
    }
    yield text.slice(at);
  }

  async close(): Promise<void> {
    for (const { file } of this.songs) await file.close();
  }
}

async function* encoded(file: FileHandle, bytes: number): AsyncGenerator<string> {
  const piece = Buffer.allocUnsafe(PIECE_BYTES);
  for (let begin = 0; begin < bytes; begin += PIECE_BYTES) {
    const length = Math.min(PIECE_BYTES, bytes - begin);
    for (let filled = 0; filled < length; ) {
      const { bytesRead } = await file.read(piece, filled, length - filled, begin + filled);
      if (bytesRead === 0) throw new Error(`a song file shrank below ${bytes} bytes while it was sent`);
      filled += bytesRead;
    }
    yield piece.toString("base64", 0, length);
  }
}
