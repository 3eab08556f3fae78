/**
 * Latents as acestep.cpp's clients send and get them: float32 values without a header, 25 frames a second. Frames of the
 * published models have 64 values.
 */
import { createReadStream, createWriteStream } from "node:fs";
import { rm, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { pipeline } from "node:stream/promises";
import { latentsHeader } from "../audio/latents-file.js";
import { type UploadKind, type Uploads, uploadFieldName, uploadPath } from "../audio/uploads.js";
import { HttpError, RequestError } from "../errors.js";

const PUBLISHED_CHANNELS = 64;
const VALUE_BYTES = 4;
/** Ten minutes. */
const MAX_FRAMES = 15_000;
const KINDS = ["sourceLatents", "referenceLatents"] as const satisfies readonly UploadKind[];

/**
 * Replaces uploaded latents by safetensors files, which tasks read.
 * @param channels values in a frame of the model; null: not known yet
 * @throws RequestError, or HttpError 413 for more than ten minutes
 */
export async function withSafetensors(
  uploads: Uploads,
  channels: number | null,
  made: (path: string) => void,
): Promise<Uploads> {
  const width = channels ?? PUBLISHED_CHANNELS;
  const converted = { ...uploads };
  for (const kind of KINDS) {
    const path = uploads[kind]?.path;
    if (path == null) continue;
    const { size } = await stat(path);
    const frames = framesIn(size, width, uploadFieldName(kind));
    const file = uploadPath(dirname(path), kind, "latents.safetensors");
    made(file);
    const target = createWriteStream(file, { flags: "wx" });
    target.write(latentsHeader(frames, width));
    await pipeline(createReadStream(path), target);
    await rm(path, { force: true });
    converted[kind] = { path: file };
  }
  return converted;
}

function framesIn(bytes: number, channels: number, name: string): number {
  const frameBytes = channels * VALUE_BYTES;
  if (bytes === 0 || bytes % frameBytes !== 0) {
    throw new RequestError(
      `${name} must be float32 values, ${channels} a frame: a multiple of ${frameBytes} bytes, got ${bytes}`,
    );
  }
  const frames = bytes / frameBytes;
  if (frames <= MAX_FRAMES) return frames;
  throw new HttpError(413, `${name} holds ${frames} frames; the maximum is ${MAX_FRAMES}, ten minutes`);
}
