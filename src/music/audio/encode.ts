/** Encodes rendered audio to a file: plain wav here, other formats with `ffmpeg`. */
import { open, stat } from "node:fs/promises";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { PlanarAudio } from "../../engine/types.js";
import { PARTIAL_SUFFIX, writeAtomically } from "../../system/atomic-file.js";
import { type OutputParameters, outputParametersOf } from "../request/output-parameters.js";
import { peakOf } from "./decode.js";
import { FfmpegError, retryWhileBusy, startFfmpeg } from "./ffmpeg.js";
import { AUDIO_PROFILES, type AudioFormat, type AudioProfile } from "./formats.js";
import { type MeasuredLevel, measureLoudness } from "./loudness.js";
import { gainWithClipping } from "./peaks.js";
import { ffmpegTagArguments, type SongTags, wavInfoChunk } from "./tags.js";

/** Number of frames interleaved at once, few enough not to block the event loop. */
const CHUNK_FRAMES = 16_384;
/** How long a finished song waits for free file descriptors. */
const MAX_WAIT_SECONDS = 600;
/** Time limit of ffmpeg. On a slow machine, the longest song takes a tenth of this time. */
const TIMEOUT_SECONDS = 600;
/** Audio with a lower peak is not normalised. */
const SILENT_PEAK = 1e-6;
/** Highest peak of songs that are brought to a loudness, unless the request sets one. */
const DEFAULT_PEAK_DB = -1;
/** The file size limit is four bytes per sample, plus this number of bytes for headers. */
const OVERHEAD_BYTES = 2 ** 20;

export class EncodeError extends Error {
  constructor(
    readonly code: "DISK_FULL" | "ENCODE_FAILED",
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.name = "EncodeError";
  }
}

export interface EncodeJob {
  audio: PlanarAudio;
  samplesPerChannel: number;
  sampleRate: number;
  format: AudioFormat;
  /** Factor of the audio, before the output parameters apply; default 1. */
  gain?: number;
  /** Output parameters; absent ones have their defaults. */
  finish?: Partial<OutputParameters>;
  tags?: SongTags | undefined;
  /** Path of the output file, which is written atomically. */
  path: string;
  signal?: AbortSignal | undefined;
  /** Called with the part of the samples that the encoder took. */
  onProgress?: ((progress: { done: number; total: number }) => void) | undefined;
}

export interface EncodedFile extends MeasuredLevel {
  bytes: number;
}

/** Equal audio gives equal bytes. @throws EncodeError, FfmpegError, or the signal's reason */
export async function encodeAudio(job: EncodeJob): Promise<EncodedFile> {
  const wait = { maxWaitSeconds: MAX_WAIT_SECONDS, signal: job.signal };
  const openWhenFree: typeof open = (...file) => retryWhileBusy(() => open(...file), wait);
  const { sample }: AudioProfile = AUDIO_PROFILES[job.format];
  const finish = outputParametersOf(job.finish ?? {});
  const level = await levelOf(job, finish);
  const write = async (partial: string) => {
    if (sample === undefined || finish.sampleRate !== job.sampleRate)
      return runFfmpeg(job, finish, level, partial);
    const stream = (await openWhenFree(partial, "w")).createWriteStream();
    await pipeline(Readable.from(wavOf(job, sample, level)), stream, { signal: job.signal });
  };
  try {
    await writeAtomically(job.path, write, { partial: job.path + PARTIAL_SUFFIX, open: openWhenFree });
    return { bytes: (await stat(job.path)).size, loudness: level.loudness, peak: level.peak };
  } catch (error) {
    job.signal?.throwIfAborted();
    throw encodeFailure(error);
  }
}

/** Level of a song from its first to its last frame. */
export interface SongLevel {
  gain: number;
  /** Lengths of the linear fades, in frames. */
  fadeIn: number;
  fadeOut: number;
}

/** What the output parameters make of the level of a song, and its loudness in LUFS and its peak afterwards. */
async function levelOf(
  { audio, samplesPerChannel, sampleRate, gain: given = 1 }: EncodeJob,
  { normalizationDb, loudness: wanted, peakClip, fadeInSeconds, fadeOutSeconds }: OutputParameters,
): Promise<SongLevel & MeasuredLevel> {
  const found = await measureLoudness(audio);
  const peak = peakOf(audio);
  const gainToPeak = (decibels: number) =>
    given * peak < SILENT_PEAK ? given : 10 ** (decibels / 20) / peak;
  let gain = given;
  if (peakClip !== null) gain = await gainWithClipping(audio, peakClip);
  else if (wanted !== null && found !== null)
    gain = Math.min(10 ** ((wanted - found) / 20), gainToPeak(normalizationDb ?? DEFAULT_PEAK_DB));
  else if (normalizationDb !== null) gain = gainToPeak(normalizationDb);
  const framesOf = (seconds: number) => Math.min(Math.round(seconds * sampleRate), samplesPerChannel);
  return {
    gain,
    fadeIn: framesOf(fadeInSeconds),
    fadeOut: framesOf(fadeOutSeconds ?? 0),
    loudness: found === null ? null : found + 20 * Math.log10(gain),
    peak: Math.min(1, gain * peak),
  };
}

async function runFfmpeg(
  job: EncodeJob,
  { sampleRate, mp3Bitrate }: OutputParameters,
  level: Awaited<ReturnType<typeof levelOf>>,
  outputPath: string,
): Promise<void> {
  const input = ["-f", "f32le", "-ar", String(job.sampleRate), "-ac", "2", "-i", "pipe:0"];
  // bitexact keeps version numbers and dates out of the file, so equal audio gives equal bytes.
  const output = ["-map_metadata", "-1", "-fflags", "+bitexact", "-flags:a", "+bitexact"];
  const args = [
    "-xerror", // without this, ffmpeg exits with 0 if the disk is full when it closes the file
    "-y",
    ...input,
    ...["-ar", String(sampleRate)],
    ...AUDIO_PROFILES[job.format].ffmpeg,
    ...(job.format === "mp3" && mp3Bitrate !== null ? ["-b:a", mp3Bitrate] : []),
    ...output,
    ...(job.tags === undefined ? [] : ffmpegTagArguments({ ...job.tags, ...level }, job.format)),
    `file:${outputPath}`,
  ];
  const { stdin, exited } = await startFfmpeg(args, {
    stdin: "pipe",
    stdout: "ignore",
    fileBytes: job.audio.byteLength * Math.max(1, sampleRate / job.sampleRate) + OVERHEAD_BYTES,
    timeoutSeconds: TIMEOUT_SECONDS,
    maxWaitSeconds: MAX_WAIT_SECONDS,
    signal: job.signal,
  });
  const fed = pipeline(Readable.from(samplesOf(job, level), { objectMode: true }), stdin);
  const [exit, feed] = await Promise.allSettled([exited, fed]);
  // A failure of ffmpeg also breaks the pipe to its stdin. Only the rejection of `exited` has the reason.
  if (exit.status === "rejected") throw exit.reason;
  if (feed.status === "rejected") throw feed.reason;
}

function encodeFailure(error: unknown): unknown {
  const { code, stderr = "" } = error as { code?: string; stderr?: string };
  if (isFullDisk(code, stderr)) {
    return new EncodeError("DISK_FULL", "the disk of the audio folder is full; free some space", {
      cause: error,
    });
  }
  if (!(error instanceof FfmpegError) || error.isServerFault) return error;
  const lastLine = stderr.split("\n").at(-1);
  return new EncodeError("ENCODE_FAILED", error.message + (lastLine ? `: ${lastLine}` : ""), {
    cause: error,
  });
}

/** Whether the disk is full or a quota is exceeded. */
function isFullDisk(code: string | undefined, stderr: string): boolean {
  if (code === "ENOSPC" || code === "EDQUOT") return true;
  return /No space left on device|Disk quota exceeded/.test(stderr);
}

const WAV_HEADER_BYTES = 44;
const WAV_TAGS = { int16: 1, float32: 3 };

/**
 * WAV header for stereo: https://www.mmsp.ece.mcgill.ca/Documents/AudioFormats/WAVE/WAVE.html
 * @param samplesPerChannel Infinity if unknown; players then read to the end of the file
 * @param furtherBytes number of bytes after the samples
 */
export function wavHeader(
  sample: "int16" | "float32",
  sampleRate: number,
  samplesPerChannel: number,
  furtherBytes = 0,
): Uint8Array {
  const frameBytes = sample === "int16" ? 4 : 8;
  const dataBytes = Math.min(samplesPerChannel * frameBytes, 2 ** 32 - WAV_HEADER_BYTES);
  const header = Buffer.alloc(WAV_HEADER_BYTES);
  header.write("RIFF", 0);
  header.writeUInt32LE(Math.min(WAV_HEADER_BYTES - 8 + dataBytes + furtherBytes, 2 ** 32 - 1), 4);
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

function* wavOf(job: EncodeJob, sample: "int16" | "float32", level: SongLevel): Generator<Uint8Array> {
  const info = job.tags === undefined ? new Uint8Array() : wavInfoChunk(job.tags);
  yield wavHeader(sample, job.sampleRate, job.samplesPerChannel, info.length);
  for (const piece of samplesOf(job, level)) {
    yield sample === "float32" ? piece : int16Of(new Float32Array(piece.buffer));
  }
  if (info.length > 0) yield info;
}

/** Interleaved samples. The encoder reads them as fast as it encodes. */
function* samplesOf(job: EncodeJob, level: SongLevel): Generator<Uint8Array> {
  const { audio, samplesPerChannel: total, onProgress } = job;
  let done = 0;
  for (const piece of interleave(audio, total, level)) {
    yield piece;
    done = Math.min(done + CHUNK_FRAMES, total);
    onProgress?.({ done, total });
  }
}

/** Rounds and clips samples to 16 bits. The gain changes linearly from `startGain` to `endGain`. */
export function int16Of(samples: Float32Array, startGain = 1, endGain = startGain): Uint8Array {
  const clipped = new Int16Array(samples.length);
  const step = (endGain - startGain) / samples.length;
  for (let index = 0; index < samples.length; index++) {
    const scaled = Math.round((samples[index] as number) * (startGain + step * (index + 1)) * 32768);
    clipped[index] = Math.max(-32768, Math.min(32767, scaled));
  }
  return new Uint8Array(clipped.buffer);
}

/** Planar stereo to little-endian interleaved bytes, in chunks. Samples are clipped to full scale if the gain is not 1. */
export function* interleave(
  planar: PlanarAudio,
  samplesPerChannel: number,
  { gain, fadeIn, fadeOut }: SongLevel,
): Generator<Uint8Array> {
  for (let start = 0; start < samplesPerChannel; start += CHUNK_FRAMES) {
    const frames = Math.min(CHUNK_FRAMES, samplesPerChannel - start);
    const chunk = new Float32Array(frames * 2);
    for (let at = 0; at < frames; at++) {
      const frame = start + at;
      const factor = gain * fade(frame, fadeIn) * fade(samplesPerChannel - 1 - frame, fadeOut);
      chunk[2 * at] = factor * (planar[frame] as number);
      chunk[2 * at + 1] = factor * (planar[samplesPerChannel + frame] as number);
    }
    if (gain !== 1) {
      for (let at = 0; at < chunk.length; at++) chunk[at] = Math.max(-1, Math.min(1, chunk[at] as number));
    }
    yield new Uint8Array(chunk.buffer);
  }
}

/** Factor of the frame at the given distance from the silent end of a fade. */
function fade(distance: number, length: number): number {
  return distance >= length - 1 ? 1 : distance / (length - 1);
}
