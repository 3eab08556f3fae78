/** Downloads one file, or resumes its partial download, and verifies the checksum. */
import { createHash } from "node:crypto";
import { type FileHandle, mkdir, open, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { withTimeLimit } from "../system/time-limit.js";
import { PullError } from "./errors.js";
import type { Hub, HubFile } from "./hub.js";

/** A download fails if it receives less than PROGRESS_BYTES in this time. */
const SILENCE_SECONDS = 60;
const PROGRESS_BYTES = 64 * 1024;
const NO_SPACE = ["ENOSPC", "EDQUOT"];

/** Source of the file: Hugging Face or another host. */
export type FileSource = Pick<Hub, "signal" | "read">;

/**
 * Downloads `file` to `path`.
 * @throws PullError CHECKSUM if the checksum is wrong; the file is then removed. After other errors the partial
 * file stays, so that the download can resume.
 */
export async function download(
  file: HubFile,
  path: string,
  source: FileSource,
  onBytes: (count: number) => void,
): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  const handle = await open(path, "a+");
  let hex: string;
  try {
    hex = await complete(handle, file, source, onBytes);
    await handle.sync();
  } catch (error) {
    throw NO_SPACE.includes((error as NodeJS.ErrnoException).code ?? "") ? diskFull(path, error) : error;
  } finally {
    await handle.close();
  }
  if (hex === file.checksum.hex) return;
  await rm(path);
  throw new PullError(
    "CHECKSUM",
    `${file.path} of ${file.repository} does not match its checksum: its ${file.checksum.algorithm} is ${hex}, not ` +
      `${file.checksum.hex}. It was removed; pull the model again to download it once more.`,
  );
}

/** Appends the missing bytes to the file and returns the checksum of the whole file. */
async function complete(
  handle: FileHandle,
  file: HubFile,
  source: FileSource,
  onBytes: (count: number) => void,
): Promise<string> {
  const hash =
    file.checksum.algorithm === "sha256"
      ? createHash("sha256")
      : createHash("sha1").update(`blob ${file.sizeBytes}\0`);
  let sizeBytes = 0;
  const take = (chunk: Uint8Array) => {
    hash.update(chunk);
    sizeBytes += chunk.length;
    onBytes(chunk.length);
  };
  if ((await handle.stat()).size > file.sizeBytes) await handle.truncate();
  // A stream created with an aborted signal would emit an error before anything listens for it.
  source.signal.throwIfAborted();
  const present = handle.createReadStream({ start: 0, autoClose: false, signal: source.signal });
  for await (const chunk of present) take(chunk as Uint8Array);
  if (sizeBytes < file.sizeBytes) {
    const limit = { ms: SILENCE_SECONDS * 1000, signal: source.signal, error: () => stalled(file) };
    await withTimeLimit(limit, async (signal, restart) => {
      let goalBytes = sizeBytes + PROGRESS_BYTES;
      for await (const chunk of source.read(file, sizeBytes, signal)) {
        // Excess bytes go into the checksum, which then fails, but are not written.
        take(chunk);
        if (sizeBytes > file.sizeBytes) break;
        await handle.appendFile(chunk);
        if (sizeBytes < goalBytes) continue;
        goalBytes = sizeBytes + PROGRESS_BYTES;
        restart();
      }
    });
  }
  return hash.digest("hex");
}

function stalled({ path, repository }: HubFile): PullError {
  return new PullError(
    "CONNECTION_LOST",
    `The download of ${path} of ${repository} stalled: less than ${PROGRESS_BYTES / 1024} KiB arrived in ${SILENCE_SECONDS} seconds. ` +
      "Check the network and start the download again to resume.",
  );
}

function diskFull(path: string, cause: unknown): PullError {
  return new PullError(
    "DISK_FULL",
    `The disk is full at ${path}. Free some space and pull the model again to resume.`,
    { cause },
  );
}
