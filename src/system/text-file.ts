/** Reads text files that users bring: UTF-8 with or without a byte order mark, or UTF-16 with one. */
import { readRegular, readRegularSync, UnusableFileError } from "./regular-file.js";

/** Reads a whole text file, without its byte order mark. @throws the errors of readRegular; UnusableFileError */
export async function readTextFile(path: string, maxBytes: number): Promise<string> {
  return decodeText(await readRegular(path, maxBytes), path);
}

/** Synchronous readTextFile. */
export function readTextFileSync(path: string, maxBytes: number): string {
  return decodeText(readRegularSync(path, maxBytes), path);
}

function decodeText(bytes: Buffer, path: string): string {
  try {
    const text = new TextDecoder(encodingOf(bytes), { fatal: true }).decode(bytes);
    if (!text.includes("\0")) return text;
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
  }
  throw new UnusableFileError(path, "not text", "is not text in UTF-8 or UTF-16: save it as UTF-8");
}

/** The encoding that the byte order mark names, else UTF-8. */
function encodingOf([first, second]: Buffer): string {
  if (first === 0xff && second === 0xfe) return "utf-16le";
  return first === 0xfe && second === 0xff ? "utf-16be" : "utf-8";
}
