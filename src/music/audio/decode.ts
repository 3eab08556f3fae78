/** Decodes recordings of any common format with `ffmpeg`. */
import type { FileHandle } from "node:fs/promises";
import { setImmediate } from "node:timers/promises";
import { type PlanarAudio, SAMPLE_RATE } from "../../engine/types.js";
import { say } from "../../notes.js";
import { openRegular, UnusableFileError } from "../../system/regular-file.js";
import { FfmpegError, INPUT_PATH, retryWhileBusy, startFfmpeg } from "./ffmpeg.js";

/**
 * Time limit of decoding, far above the time for any valid recording: a file that takes longer is malicious.
 */
const TIMEOUT_SECONDS = 120;
/** Maximum file size, enough for an hour and a half of eight 32-bit channels at 192 kHz. */
const MAX_RECORDING_BYTES = 32 * 2 ** 30;
/**
 * Tolerated extra length, because lossy formats add padding. Raw AAC adds up to two frames, which are shorter than
 * this at 22 kHz.
 */
const PADDING_SECONDS = 0.1;
/** How long a request waits for free file descriptors; an accepted job waits longer. */
const REQUEST_WAIT_SECONDS = 3;
const JOB_WAIT_SECONDS = 600;
/** Number of decoded chunks copied before yielding to the event loop. */
const PARTS_PER_TURN = 32;

/** Allowed formats. Playlists and the like are excluded, because they make ffmpeg open other files. */
const DEMUXERS =
  "aac,ac3,aiff,amr,ape,asf,au,avi,caf,dsf,dts,eac3,flac,flv,matroska,mov,mp3,mpc,mpc8,mpeg,mpegts,ogg,oma,tak,tta,w64,wav,wv";

/** The recording is unusable. Faults of the server are other errors. */
export class DecodeError extends Error {
  constructor(
    readonly code: "NOT_FOUND" | "UNDECODABLE" | "EMPTY" | "TOO_LONG" | "TIMEOUT",
    /** One line that quotes neither the file's content nor its path. */
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.name = "DecodeError";
  }
}

export interface DecodeJob {
  path: string;
  /** Name of the recording in messages, for example "src_audio". */
  name: string;
  /** Maximum length of the recording; PADDING_SECONDS more are tolerated as padding. */
  maxSeconds: number;
  /** Whether a longer recording is rejected (default) or cut. */
  beyondMaximum?: "refuse" | "cut" | undefined;
  signal?: AbortSignal | undefined;
}

/**
 * Decodes a recording for a job: planar stereo at 48 kHz within -1 .. 1. Mono is doubled; further channels are
 * dropped.
 * @throws DecodeError, FfmpegError for a fault of the server, or the signal's reason
 */
export async function decodeAudio(job: DecodeJob): Promise<PlanarAudio> {
  const parts: Stereo[] = [];
  let frames = 0;
  for await (const part of decodedParts(job, JOB_WAIT_SECONDS)) {
    parts.push(part);
    frames += part.left.length;
  }
  const audio = new Float32Array(2 * frames);
  let end = 0;
  for (const [index, { left, right }] of parts.entries()) {
    if (index % PARTS_PER_TURN === 0) await setImmediate();
    audio.set(left, end);
    audio.set(right, frames + end);
    end += left.length;
  }
  job.signal?.throwIfAborted();
  return audio;
}

/**
 * Decodes a recording like `decodeAudio` and measures it, but keeps no samples. `peak` is the largest absolute sample.
 * @throws DecodeError, FfmpegError for a fault of the server, or the signal's reason
 */
export async function measureAudio(job: DecodeJob): Promise<{ seconds: number; peak: number }> {
  let frames = 0;
  let peak = 0;
  for await (const { left, right } of decodedParts(job, REQUEST_WAIT_SECONDS)) {
    frames += left.length;
    peak = Math.max(peak, peakOf(left), peakOf(right));
  }
  return { seconds: frames / SAMPLE_RATE, peak };
}

export function peakOf(channel: Float32Array): number {
  let peak = 0;
  // An iterator takes ten times as long.
  for (let at = 0; at < channel.length; at++) peak = Math.max(peak, Math.abs(channel[at] as number));
  return peak;
}

interface Stereo {
  left: Float32Array;
  right: Float32Array;
}

async function* decodedParts(job: DecodeJob, maxWaitSeconds: number): AsyncGenerator<Stereo> {
  const finished = new AbortController();
  const signal = AbortSignal.any([finished.signal, ...(job.signal === undefined ? [] : [job.signal])]);
  const stream = new AuStream();
  const maxFrames = Math.floor(job.maxSeconds * SAMPLE_RATE);
  let frames = 0;
  try {
    const file = await openRecording(job.path, { maxWaitSeconds, signal });
    const { stdout, exited } = await startFfmpeg(argumentsOf(job), {
      stdin: "ignore",
      stdout: "pipe",
      input: { path: job.path, file },
      fileBytes: 0,
      timeoutSeconds: TIMEOUT_SECONDS,
      maxWaitSeconds,
      signal,
    }).finally(() => file.close());
    for await (const bytes of stdout) {
      const part = stream.take(bytes);
      const end = Math.max(0, maxFrames - frames);
      const allowed = { left: part.left.subarray(0, end), right: part.right.subarray(0, end) };
      frames += part.left.length;
      if (frames > maxFrames + PADDING_SECONDS * SAMPLE_RATE) {
        throw new DecodeError(
          "TOO_LONG",
          say("recording_too_long", { name: job.name, seconds: job.maxSeconds }),
        );
      }
      if (allowed.left.length > 0) yield allowed;
    }
    await exited;
    if (frames === 0) throw new DecodeError("EMPTY", say("recording_empty", { name: job.name }));
  } catch (error) {
    job.signal?.throwIfAborted();
    throw decodeFailure(error, job.name);
  } finally {
    finished.abort();
  }
}

/** @throws UnusableFileError, FfmpegError SYSTEM_BUSY, or the signal's reason */
export function openRecording(
  path: string,
  wait: { maxWaitSeconds: number; signal: AbortSignal | undefined },
): Promise<FileHandle> {
  return retryWhileBusy(() => openRegular(path, MAX_RECORDING_BYTES), wait);
}

function argumentsOf({ maxSeconds, beyondMaximum }: DecodeJob): string[] {
  // Decodes one second more than the maximum, to detect a longer recording.
  const seconds = beyondMaximum === "cut" ? maxSeconds : maxSeconds + 1;
  return [
    // Only one thread, because each thread needs memory in proportion to the file.
    ...["-threads", "1", "-protocol_whitelist", "file", "-format_whitelist", DEMUXERS],
    ...["-i", `file:${INPUT_PATH}`, "-map", "0:a:0", "-t", String(seconds)],
    ...["-ar", String(SAMPLE_RATE), "-c:a", "pcm_f32be", "-f", "au", "pipe:1"],
  ];
}

function decodeFailure(error: unknown, name: string): unknown {
  if (error instanceof UnusableFileError) {
    const code = error.reason === "absent" ? "NOT_FOUND" : "UNDECODABLE";
    return new DecodeError(code, `${name} ${error.fault}`, { cause: error });
  }
  if (!(error instanceof FfmpegError) || error.isServerFault) return error;
  if (error.code === "TIMEOUT") {
    const message = `${name} took longer than ${TIMEOUT_SECONDS} seconds to decode`;
    return new DecodeError(error.code, message, { cause: error });
  }
  return new DecodeError("UNDECODABLE", say("recording_undecodable", { name }), { cause: error });
}

/** Streaming parser of AU files with big-endian floats, the only format whose header contains the channel count. */
class AuStream {
  #pending: Buffer = Buffer.alloc(0);
  /** Number of channels; 0 until the header is complete. */
  #channels = 0;

  /** Returns the frames completed by `bytes`. */
  take(bytes: Buffer): Stereo {
    this.#pending = this.#pending.length === 0 ? bytes : Buffer.concat([this.#pending, bytes]);
    if (this.#channels === 0) this.#readHeader();
    if (this.#channels === 0) return { left: new Float32Array(0), right: new Float32Array(0) };
    const frameBytes = 4 * this.#channels;
    const wholeBytes = this.#pending.length - (this.#pending.length % frameBytes);
    // Copy the frames, to align them and to swap their bytes in place.
    const whole = new Uint8Array(wholeBytes);
    whole.set(this.#pending.subarray(0, wholeBytes));
    this.#pending = this.#pending.subarray(wholeBytes);
    Buffer.from(whole.buffer).swap32();
    return firstTwoChannels(new Float32Array(whole.buffer), this.#channels);
  }

  #readHeader(): void {
    if (this.#pending.length < 24) return;
    const dataOffset = this.#pending.readUInt32BE(4);
    if (this.#pending.length < dataOffset) return;
    this.#channels = this.#pending.readUInt32BE(20);
    this.#pending = this.#pending.subarray(dataOffset);
  }
}

function firstTwoChannels(interleaved: Float32Array, channels: number): Stereo {
  const frames = interleaved.length / channels;
  const left = new Float32Array(frames);
  const right = new Float32Array(frames);
  const second = channels > 1 ? 1 : 0;
  for (let frame = 0; frame < frames; frame++) {
    left[frame] = sampleOf(interleaved[frame * channels] as number);
    right[frame] = sampleOf(interleaved[frame * channels + second] as number);
  }
  return { left, right };
}

/** Clips a sample to -1 .. 1; NaN counts as silence. */
function sampleOf(value: number): number {
  return Number.isNaN(value) ? 0 : Math.min(1, Math.max(-1, value));
}
