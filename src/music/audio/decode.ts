/** Reads recordings of any common format by way of the `ffmpeg` program. */
import { setImmediate } from "node:timers/promises";
import { type PlanarAudio, SAMPLE_RATE } from "../../engine/types.js";
import { FfmpegError, startFfmpeg } from "./ffmpeg.js";

/** The longest that a recording within its limits takes by far; beyond it the file is built to keep us busy. */
const TIMEOUT_SECONDS = 120;
/** Lossy formats pad: raw AAC by up to two of its frames, which this holds at 22 kHz. */
const PADDING_SECONDS = 0.1;
/** How long a request waits for a system that is short of descriptors; a job, which has been accepted, waits longer. */
const REQUEST_PATIENCE_SECONDS = 3;
const JOB_PATIENCE_SECONDS = 600;
/** Parts joined before others have their turn. */
const PARTS_PER_TURN = 32;

/**
 * What ffmpeg may take a file for: containers and streams of sound. Playlists and the like are no part of it, as they
 * make ffmpeg open files that nobody allowed.
 */
const DEMUXERS =
  "aac,ac3,aiff,amr,ape,asf,au,avi,caf,dsf,dts,eac3,flac,flv,matroska,mov,mp3,mpc,mpc8,mpeg,mpegts,ogg,oma,tak,tta,w64,wav,wv";

const IS_FILES_FAULT = {
  NOT_FOUND: true,
  UNDECODABLE: true,
  EMPTY: true,
  TOO_LONG: true,
  TIMEOUT: true,
  FFMPEG_MISSING: false,
  SYSTEM_BUSY: false,
};

export class DecodeError extends Error {
  constructor(
    readonly code: keyof typeof IS_FILES_FAULT,
    /** One line that tells nothing of the file's content or place. */
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.name = "DecodeError";
  }

  /** Whether another file would do; otherwise the installation or the system is at fault. */
  get isFilesFault(): boolean {
    return IS_FILES_FAULT[this.code];
  }
}

export interface DecodeJob {
  path: string;
  /** What messages call the recording, for example "src_audio". */
  name: string;
  /** No more than this is decoded; a little more in the file passes as padding. */
  maxSeconds: number;
  /** What becomes of a longer recording; absent: it is refused. */
  beyondMaximum?: "refuse" | "cut" | undefined;
  signal?: AbortSignal | undefined;
}

/**
 * For jobs: the recording as planar stereo at 48 kHz within -1 .. 1: a single channel twice, of more than two the first two.
 * @throws DecodeError, or the signal's reason
 */
export async function decodeAudio(job: DecodeJob): Promise<PlanarAudio> {
  const parts: Stereo[] = [];
  let frames = 0;
  for await (const part of decodedParts(job, JOB_PATIENCE_SECONDS)) {
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

export interface AudioMeasures {
  seconds: number;
  /** The largest magnitude of any sample, 0 to 1. */
  peak: number;
}

/**
 * For requests: decodes the recording without keeping it.
 * @throws DecodeError, or the signal's reason
 */
export async function measureAudio(job: DecodeJob): Promise<AudioMeasures> {
  let frames = 0;
  let peak = 0;
  for await (const { left, right } of decodedParts(job, REQUEST_PATIENCE_SECONDS)) {
    frames += left.length;
    peak = Math.max(peak, peakOf(left), peakOf(right));
  }
  return { seconds: frames / SAMPLE_RATE, peak };
}

export function peakOf(channel: Float32Array): number {
  let peak = 0;
  for (const sample of channel) peak = Math.max(peak, Math.abs(sample));
  return peak;
}

/** Two channels of one length. */
interface Stereo {
  left: Float32Array;
  right: Float32Array;
}

async function* decodedParts(job: DecodeJob, patienceSeconds: number): AsyncGenerator<Stereo> {
  const finished = new AbortController();
  const signal = AbortSignal.any([finished.signal, ...(job.signal === undefined ? [] : [job.signal])]);
  const stream = new AuStream();
  const maxFrames = Math.floor(job.maxSeconds * SAMPLE_RATE);
  let frames = 0;
  try {
    const { stdout, exited } = await startFfmpeg(argumentsOf(job), {
      stdin: "ignore",
      stdout: "pipe",
      fileBytes: 0,
      timeoutSeconds: TIMEOUT_SECONDS,
      patienceSeconds,
      signal,
    });
    for await (const bytes of stdout) {
      const part = stream.take(bytes);
      const allowed = beginningOf(part, Math.max(0, maxFrames - frames));
      frames += part.left.length;
      if (frames > maxFrames + PADDING_SECONDS * SAMPLE_RATE) {
        throw new DecodeError("TOO_LONG", `${job.name} lasts longer than ${job.maxSeconds} seconds`);
      }
      if (allowed.left.length > 0) yield allowed;
    }
    await exited;
    if (frames === 0) throw new DecodeError("EMPTY", `${job.name} is empty`);
  } catch (error) {
    job.signal?.throwIfAborted();
    throw decodeFailure(error, job.name);
  } finally {
    finished.abort();
  }
}

function argumentsOf({ path, maxSeconds, beyondMaximum }: DecodeJob): string[] {
  // A second more than allowed tells a longer recording from one of exactly that length.
  const seconds = beyondMaximum === "cut" ? maxSeconds : maxSeconds + 1;
  return [
    // One thread: more would multiply the memory that a file can make it take.
    ...["-threads", "1", "-protocol_whitelist", "file", "-format_whitelist", DEMUXERS, "-i", `file:${path}`],
    ...["-map", "0:a:0", "-t", String(seconds)],
    ...["-ar", String(SAMPLE_RATE), "-c:a", "pcm_f32be", "-f", "au", "pipe:1"],
  ];
}

function decodeFailure(error: unknown, name: string): unknown {
  if (!(error instanceof FfmpegError)) return error;
  if (error.code === "FFMPEG_MISSING") {
    return new DecodeError(error.code, `${error.message} to read audio`, { cause: error });
  }
  if (error.code === "SYSTEM_BUSY") return new DecodeError(error.code, error.message, { cause: error });
  if (error.code === "TIMEOUT") {
    const message = `${name} could not be decoded in ${TIMEOUT_SECONDS} seconds`;
    return new DecodeError(error.code, message, { cause: error });
  }
  if (error.complaint.includes("No such file or directory")) {
    return new DecodeError("NOT_FOUND", `${name} does not exist`, { cause: error });
  }
  return new DecodeError("UNDECODABLE", `${name} holds no audio that can be decoded`, { cause: error });
}

/** Takes an AU file of big-endian floats as its bytes arrive: it is the one format that tells the channels in passing. */
class AuStream {
  #pending: Buffer = Buffer.alloc(0);
  /** 0 until the header is complete. */
  #channels = 0;

  /** The frames that `bytes` completes. */
  take(bytes: Buffer): Stereo {
    this.#pending = this.#pending.length === 0 ? bytes : Buffer.concat([this.#pending, bytes]);
    if (this.#channels === 0) this.#readHeader();
    if (this.#channels === 0) return { left: new Float32Array(0), right: new Float32Array(0) };
    const frameBytes = 4 * this.#channels;
    const wholeBytes = this.#pending.length - (this.#pending.length % frameBytes);
    // A copy: it is aligned, and may be swapped in place.
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

function beginningOf({ left, right }: Stereo, frames: number): Stereo {
  return { left: left.subarray(0, frames), right: right.subarray(0, frames) };
}

/** Files of floats may hold anything; what is no number is silence. */
function sampleOf(value: number): number {
  return Number.isNaN(value) ? 0 : Math.min(1, Math.max(-1, value));
}
