/** Writes rendered audio to a file, in the formats that a song can be delivered in: wav here, the others by `ffmpeg`. */
import { open, stat } from "node:fs/promises";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { PARTIAL_SUFFIX, writeWhole } from "../../whole-file.js";
import type { AudioFormat } from "../request/schema.js";
import { FfmpegError, startFfmpeg, withPatience } from "./ffmpeg.js";

/** How a format is named, and how it is written. */
export interface AudioProfile {
  extension: string;
  contentType: string;
  /** Muxer and codec of ffmpeg, lossy rates chosen to be transparent for music; or what a sample is in a wav file. */
  writer: readonly string[] | "int16" | "float32";
}

export const AUDIO_PROFILES: Readonly<Record<AudioFormat, AudioProfile>> = {
  mp3: {
    extension: "mp3",
    contentType: "audio/mpeg",
    writer: ["-f", "mp3", "-c:a", "libmp3lame", "-b:a", "256k"],
  },
  flac: {
    extension: "flac",
    contentType: "audio/flac",
    writer: ["-f", "flac", "-c:a", "flac", "-sample_fmt", "s16"],
  },
  opus: {
    extension: "opus",
    contentType: "audio/ogg",
    writer: ["-f", "opus", "-c:a", "libopus", "-b:a", "160k"],
  },
  aac: {
    extension: "aac",
    contentType: "audio/aac",
    writer: ["-f", "adts", "-c:a", "aac", "-b:a", "256k"],
  },
  wav: {
    extension: "wav",
    contentType: "audio/wav",
    writer: "int16",
  },
  wav32: {
    extension: "wav",
    contentType: "audio/wav",
    writer: "float32",
  },
};

/** The content type of a finished file. */
export function contentTypeOf(path: string): string {
  const extension = path.slice(path.lastIndexOf(".") + 1);
  const profile = Object.values(AUDIO_PROFILES).find((format) => format.extension === extension);
  return profile?.contentType ?? "application/octet-stream";
}

/** Frames interleaved at a time: large enough to be cheap, small enough not to hold up the event loop. */
const CHUNK_FRAMES = 16_384;
/** How long a finished song waits for a system that is short of descriptors. */
const PATIENCE_SECONDS = 600;
/** The longest song takes a tenth of it on a slow machine. */
const TIMEOUT_SECONDS = 600;
/** Headers, and frames that end beyond the last sample; the rest is never larger than the samples as floats. */
const OVERHEAD_BYTES = 2 ** 20;

export class EncodeError extends Error {
  constructor(
    readonly code: "FFMPEG_MISSING" | "SYSTEM_BUSY" | "DISK_FULL" | "ENCODE_FAILED",
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
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

/**
 * Encodes and resolves with the file's size in bytes. Equal audio gives equal bytes.
 * @throws EncodeError, or the signal's reason
 */
export async function encodeAudio(job: EncodeJob): Promise<number> {
  const patience = { patienceSeconds: PATIENCE_SECONDS, signal: job.signal };
  const openPatiently: typeof open = (...file) => withPatience(() => open(...file), patience);
  const { writer } = AUDIO_PROFILES[job.format];
  const write = async (partial: string) => {
    if (typeof writer !== "string") return runFfmpeg(job, writer, partial);
    const stream = (await openPatiently(partial, "w")).createWriteStream();
    await pipeline(Readable.from(wavOf(job, writer)), stream, { signal: job.signal });
  };
  try {
    await writeWhole(job.path, write, { partial: job.path + PARTIAL_SUFFIX, open: openPatiently });
    return (await stat(job.path)).size;
  } catch (error) {
    job.signal?.throwIfAborted();
    throw encodeFailure(error);
  }
}

async function runFfmpeg(
  job: EncodeJob,
  muxerAndCodec: readonly string[],
  outputPath: string,
): Promise<void> {
  const input = ["-f", "f32le", "-ar", String(job.sampleRate), "-ac", "2", "-i", "pipe:0"];
  // bitexact keeps versions and dates out of the file.
  const output = ["-map_metadata", "-1", "-fflags", "+bitexact", "-flags:a", "+bitexact"];
  const args = [
    "-xerror", // else a full disk while closing the file goes by with exit status 0
    "-y",
    ...input,
    ...muxerAndCodec,
    ...output,
    `file:${outputPath}`,
  ];
  const { stdin, exited } = await startFfmpeg(args, {
    stdin: "pipe",
    stdout: "ignore",
    fileBytes: job.audio.byteLength + OVERHEAD_BYTES,
    timeoutSeconds: TIMEOUT_SECONDS,
    patienceSeconds: PATIENCE_SECONDS,
    signal: job.signal,
  });
  const fed = pipeline(
    Readable.from(interleave(job.audio, job.samplesPerChannel), { objectMode: true }),
    stdin,
  );
  const [exit, feed] = await Promise.allSettled([exited, fed]);
  // When ffmpeg gives up, the broken pipe is a consequence: its own message says why.
  if (exit.status === "rejected") throw exit.reason;
  if (feed.status === "rejected") throw feed.reason;
}

function encodeFailure(error: unknown): unknown {
  const { code, complaint = "" } = error as { code?: string; complaint?: string };
  if (isFullDisk(code, complaint)) {
    return new EncodeError("DISK_FULL", "the disk with the audio folder is full", { cause: error });
  }
  if (!(error instanceof FfmpegError)) return error;
  const { message } = error;
  if (error.code === "FFMPEG_MISSING") {
    return new EncodeError(error.code, `${message}; without it songs are written as wav alone`, {
      cause: error,
    });
  }
  if (error.code === "SYSTEM_BUSY") return new EncodeError(error.code, message, { cause: error });
  const lastLine = complaint.split("\n").at(-1);
  return new EncodeError("ENCODE_FAILED", message + (lastLine ? `: ${lastLine}` : ""), { cause: error });
}

/** A quota counts as a disk. Some file systems tell only when the file is synchronised. */
function isFullDisk(code: string | undefined, complaint: string): boolean {
  if (code === "ENOSPC" || code === "EDQUOT") return true;
  return /No space left on device|Disk quota exceeded/.test(complaint);
}

const WAV_HEADER_BYTES = 44;
const WAV_TAGS = { int16: 1, float32: 3 };

/**
 * The RIFF header of stereo: https://www.mmsp.ece.mcgill.ca/Documents/AudioFormats/WAVE/WAVE.html. A length that is not
 * known, as infinity, is the greatest there is: players read such files to their end.
 */
export function wavHeader(
  sample: "int16" | "float32",
  sampleRate: number,
  samplesPerChannel: number,
): Uint8Array {
  const frameBytes = sample === "int16" ? 4 : 8;
  const dataBytes = Math.min(samplesPerChannel * frameBytes, 2 ** 32 - WAV_HEADER_BYTES);
  const header = Buffer.alloc(WAV_HEADER_BYTES);
  header.write("RIFF", 0);
  header.writeUInt32LE(WAV_HEADER_BYTES - 8 + dataBytes, 4);
  header.write("WAVEfmt ", 8);
  header.writeUInt32LE(16, 16);
  header.writeUInt16LE(WAV_TAGS[sample], 20);
  header.writeUInt16LE(2, 22);
  header.writeUInt32LE(sampleRate, 24);
  header.writeUInt32LE(sampleRate * frameBytes, 28);
  header.writeUInt16LE(frameBytes, 32);
  header.writeUInt16LE(frameBytes * 4, 34);
  header.write("data", 36);
  header.writeUInt32LE(dataBytes, 40);
  return header;
}

function* wavOf(job: EncodeJob, sample: "int16" | "float32"): Generator<Uint8Array> {
  yield wavHeader(sample, job.sampleRate, job.samplesPerChannel);
  for (const piece of interleave(job.audio, job.samplesPerChannel)) {
    yield sample === "float32" ? piece : int16Of(new Float32Array(piece.buffer));
  }
}

/** Rounded and clipped, under a gain that goes evenly from one to the other. */
export function int16Of(samples: Float32Array, from = 1, to = from): Uint8Array {
  const clipped = new Int16Array(samples.length);
  const step = (to - from) / samples.length;
  for (let index = 0; index < samples.length; index++) {
    const scaled = Math.round((samples[index] as number) * (from + step * (index + 1)) * 32768);
    clipped[index] = Math.max(-32768, Math.min(32767, scaled));
  }
  return new Uint8Array(clipped.buffer);
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
