/** Atomic file writes. */
import { randomUUID } from "node:crypto";
import { open as openFile, rename, rm } from "node:fs/promises";

/** Suffix of a file that is still being written. */
export const PARTIAL_SUFFIX = ".part";

/**
 * Writes a file atomically: temporary file, fsync, rename. If that fails, the temporary file is deleted.
 * @param write writes the content to the temporary path
 * @param options.partial temporary path, if other code must know it; default: a unique path
 * @throws the error of `write` or of the disk
 */
export async function writeAtomically(
  path: string,
  write: (partial: string) => Promise<unknown>,
  { partial = `${path}.${randomUUID()}${PARTIAL_SUFFIX}`, open = openFile } = {},
): Promise<void> {
  try {
    await write(partial);
    // fsync needs no write access. Opening for writing would fail for a copy of a read-only file.
    const file = await open(partial, "r");
    await file.sync().finally(() => file.close());
    await rename(partial, path);
  } catch (error) {
    await rm(partial, { force: true });
    throw error;
  }
}
