/** Atomic file writes. */
import { randomUUID } from "node:crypto";
import { open as openFile, rename, rm } from "node:fs/promises";

/** Suffix of an incomplete file. */
export const PARTIAL_SUFFIX = ".part";

/**
 * Writes a file atomically: temporary file, fsync, rename. A failed write leaves no temporary file.
 * @param write called with the temporary path
 * @param options.partial temporary path, if others must know it; default: unique
 * @throws the error of `write` or the disk
 */
export async function writeAtomically(
  path: string,
  write: (partial: string) => Promise<unknown>,
  { partial = `${path}.${randomUUID()}${PARTIAL_SUFFIX}`, open = openFile } = {},
): Promise<void> {
  try {
    await write(partial);
    // Opens for reading: that suffices for fsync, and a copy of a read-only file cannot be opened for writing.
    const file = await open(partial, "r");
    await file.sync().finally(() => file.close());
    await rename(partial, path);
  } catch (error) {
    await rm(partial, { force: true });
    throw error;
  }
}
