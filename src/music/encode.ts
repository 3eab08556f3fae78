/** Writes rendered audio to a file by way of the `ffmpeg` program: any version works, and it cannot crash us. */
import { spawn } from "node:child_process";
import { open, rename, rm, stat } from "node:fs/promises";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { AUDIO_PROFILES } from "./audio-profiles.js";
import type { AudioFormat } from "./request/schema.js";

/** Frames interleaved at a time: large enough to be cheap, small enough not to hold up the event loop. */
const CHUNK_FRAMES = 16_384;
const STDERR_LIMIT = 4096;

export class EncodeError extends Error {
  constructor(
    readonly code: "FFMPEG_MISSING" | "DISK_FULL" | "ENCODE_FAILED",
    message: string,
  ) {
    super(message);
    this.name = "EncodeError";
  }
}

export interface EncodeJob {
  /** Planar stereo: all of the left channel, then all of the right. */
  audio: Float32Array;
  samplesPerChannel: number;
  /** Hertz */
  sampleRate: number;
  format: AudioFormat;
  /** The file to write. It appears complete or not at all. */
  path: string;
  signal?: AbortSignal | undefined;
}

/** Suffix of a file that is still being written. */
export const PARTIAL_SUFFIX = ".part";

/**
 * Encodes and resolves with the file's size in bytes. Equal audio gives equal bytes.
 * @throws EncodeError, or the signal's reason
 */
export async function encodeAudio(job: EncodeJob): Promise<number> {
  const partial = job.path + PARTIAL_SUFFIX;
  try {
    await runFfmpeg(job, partial);
    const file = await open(partial, "r+");
    try {
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(partial, job.path);
    return (await stat(job.path)).size;
  } catch (error) {
    await rm(partial, { force: true });
    job.signal?.throwIfAborted();
    throw error;
  }
}

async function runFfmpeg(job: EncodeJob, outputPath: string): Promise<void> {
  const input = ["-f", "f32le", "-ar", String(job.sampleRate), "-ac", "2", "-i", "pipe:0"];
  // bitexact keeps versions and dates out of the file.
  const output = ["-map_metadata", "-1", "-fflags", "+bitexact", "-flags:a", "+bitexact"];
  const child = spawn(
    "ffmpeg",
    [
      "-hide_banner",
      "-loglevel",
      "error",
      "-nostdin",
      "-xerror", // else a full disk while closing the file goes by with exit status 0
      "-y",
      ...input,
      ...AUDIO_PROFILES[job.format].ffmpegArguments,
      ...output,
      `file:${outputPath}`,
    ],
    { stdio: ["pipe", "ignore", "pipe"], killSignal: "SIGKILL", signal: job.signal },
  );
  let complaint = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    if (complaint.length < STDERR_LIMIT) complaint += text;
  });
  const exited = new Promise<void>((resolve, reject) => {
    child.on("error", (error) => reject(startFailure(error)));
    child.on("close", (code, killedBy) => {
      if (code === 0) resolve();
      else reject(exitFailure(complaint, code === null ? `signal ${killedBy}` : `exit status ${code}`));
    });
  });
  const fed = pipeline(
    Readable.from(interleave(job.audio, job.samplesPerChannel), { objectMode: true }),
    child.stdin,
  );
  const [exit, feed] = await Promise.allSettled([exited, fed]);
  // When ffmpeg gives up, the broken pipe is a consequence: its own message says why.
  if (exit.status === "rejected") throw exit.reason;
  if (feed.status === "rejected") throw feed.reason;
}

function startFailure(error: NodeJS.ErrnoException): Error {
  if (error.code !== "ENOENT") return error;
  return new EncodeError(
    "FFMPEG_MISSING",
    "the ffmpeg program is not on the PATH; install it to encode audio",
  );
}

function exitFailure(complaint: string, how: string): EncodeError {
  if (complaint.includes("No space left on device")) {
    return new EncodeError("DISK_FULL", "the disk with the audio folder is full");
  }
  const lastLine = complaint.trim().split("\n").at(-1);
  return new EncodeError("ENCODE_FAILED", `ffmpeg failed (${how})${lastLine ? `: ${lastLine}` : ""}`);
}

/** Planar stereo to little-endian interleaved bytes, chunk by chunk. */
export function* interleave(planar: Float32Array, samplesPerChannel: number): Generator<Uint8Array> {
  for (let start = 0; start < samplesPerChannel; start += CHUNK_FRAMES) {
    const frames = Math.min(CHUNK_FRAMES, samplesPerChannel - start);
    const chunk = new Float32Array(frames * 2);
    for (let frame = 0; frame < frames; frame++) {
      chunk[2 * frame] = planar[start + frame] as number;
      chunk[2 * frame + 1] = planar[samplesPerChannel + start + frame] as number;
    }
    yield new Uint8Array(chunk.buffer);
  }
}
