/** Files that appear whole or not at all: until then there is the old one, or none. */
import { randomUUID } from "node:crypto";
import { open as openFile, rename, rm } from "node:fs/promises";

/** Suffix of a file that is still being written. */
export const PARTIAL_SUFFIX = ".part";

/**
 * Puts what `write` makes in the place of whatever is at `path`, at once and only when all of it is on the disk.
 * @param write is told where to write it
 * @param options.partial where that is, if others have to know the name; otherwise it is nobody else's
 * @throws what `write` or the disk throws; nothing then stays of the new file
 */
export async function writeWhole(
  path: string,
  write: (partial: string) => Promise<unknown>,
  { partial = `${path}.${randomUUID()}${PARTIAL_SUFFIX}`, open = openFile } = {},
): Promise<void> {
  try {
    await write(partial);
    // To read is all that a copy of a protected file allows.
    const file = await open(partial, "r");
    await file.sync().finally(() => file.close());
    await rename(partial, path);
  } catch (error) {
    await rm(partial, { force: true });
    throw error;
  }
}
