/** Stores recordings that clients send for a data set. */
import { createWriteStream } from "node:fs";
import { extname, join } from "node:path";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { PARTIAL_SUFFIX, writeAtomically } from "../../system/atomic-file.js";
import { RequestError } from "../errors.js";
import { createOutputDirectory, type PermittedRoot } from "../storage/permitted-root.js";
import { AUDIO_EXTENSIONS } from "./scan.js";

const MAX_NAME = 120;

/**
 * Writes the recording to ROOT/folder/file, replacing an earlier one. A failure leaves no file.
 * @returns the folder, as POST /v1/dataset/scan takes it
 * @throws RequestError for an unusable name, or a recording that is empty or beyond `maxBytes`
 */
export async function storeRecording(
  root: PermittedRoot,
  { folder, file }: { folder: string; file: string },
  content: Readable,
  maxBytes: number,
): Promise<{ audio_dir: string; bytes: number }> {
  requireName("folder", folder);
  requireName("file", file);
  if (!AUDIO_EXTENSIONS.includes(extname(file).toLowerCase())) {
    throw new RequestError(`file must end in one of ${AUDIO_EXTENSIONS.join(", ")}, got ${file}`);
  }
  const directory = await root.resolve(folder);
  await createOutputDirectory(directory, folder);
  const path = join(directory, file);
  let bytes = 0;
  async function* limited(): AsyncGenerator<Buffer> {
    // destroyOnReturn would close the connection after a failure, before the client has read the response.
    for await (const chunk of content.iterator({ destroyOnReturn: false })) {
      bytes += chunk.length;
      if (bytes > maxBytes) {
        throw new RequestError(`${file} is larger than the limit of ${maxBytes} bytes (SVC_UPLOAD_MAX_MB)`);
      }
      yield chunk;
    }
  }
  const write = async (partial: string) => {
    await pipeline(limited, createWriteStream(partial));
    if (bytes === 0) throw new RequestError(`${file} is empty`);
  };
  await writeAtomically(path, write, { partial: path + PARTIAL_SUFFIX });
  return { audio_dir: folder, bytes };
}

function requireName(field: string, name: string): void {
  const isPlain = name.length <= MAX_NAME && !/^\.|[\\/\0]/.test(name) && name.trim() !== "";
  if (!isPlain) throw new RequestError(`${field} must be a plain name of at most ${MAX_NAME} characters`);
}
