/** Encodes rendered audio to a file: plain wav here, other formats with `ffmpeg`. */
import { open, stat } from "node:fs/promises";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { PARTIAL_SUFFIX, writeAtomically } from "../../system/atomic-file.js";
import { type OutputParameters, outputParametersOf } from "../request/output-parameters.js";
import { peakOf } from "./decode.js";
import { FfmpegError, retryWhileBusy, startFfmpeg } from "./ffmpeg.js";
import { AUDIO_PROFILES, type AudioFormat, type AudioProfile } from "./formats.js";
import { gainWithClipping } from "./peak-clip.js";
import { ffmpegTagArguments, type SongTags, wavInfoChunk } from "./tags.js";

/** Number of frames interleaved at once, few enough not to block the event loop. */
const CHUNK_FRAMES = 16_384;
/** How long a finished song waits for free file descriptors. */
const MAX_WAIT_SECONDS = 600;
/** Time limit of ffmpeg. On a slow machine, the longest song takes a tenth of this time. */
const TIMEOUT_SECONDS = 600;
/** Audio with a lower peak is not normalised. */
const SILENT_PEAK = 1e-6;
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
  /** Planar stereo: the left channel, then the right. */
  audio: Float32Array;
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
}

/** Resolves with the file size in bytes. Equal audio gives equal bytes. @throws EncodeError, FfmpegError, or the signal's reason */
export async function encodeAudio(job: EncodeJob): Promise<number> {
  const wait = { maxWaitSeconds: MAX_WAIT_SECONDS, signal: job.signal };
  const openWhenFree: typeof open = (...file) => retryWhileBusy(() => open(...file), wait);
  const { sample }: AudioProfile = AUDIO_PROFILES[job.format];
  const finish = outputParametersOf(job.finish ?? {});
  const { peakClip } = finish;
  const gain = peakClip === null ? (job.gain ?? 1) : await gainWithClipping(job.audio, peakClip);
  const filters = filtersOf(job, finish, gain);
  const isPlain = filters.length === 0 && finish.sampleRate === job.sampleRate;
  const write = async (partial: string) => {
    if (sample === undefined || !isPlain) return runFfmpeg(job, finish, gain, filters, partial);
    const stream = (await openWhenFree(partial, "w")).createWriteStream();
    await pipeline(Readable.from(wavOf(job, sample, gain)), stream, { signal: job.signal });
  };
  try {
    await writeAtomically(job.path, write, { partial: job.path + PARTIAL_SUFFIX, open: openWhenFree });
    return (await stat(job.path)).size;
  } catch (error) {
    job.signal?.throwIfAborted();
    throw encodeFailure(error);
  }
}

/** ffmpeg filters that first set the level and then fade the song in and out. */
function filtersOf(
  { audio, samplesPerChannel, sampleRate }: EncodeJob,
  finish: OutputParameters,
  gain: number,
): string[] {
  const { normalizationDb, peakClip, fadeInSeconds, fadeOutSeconds } = finish;
  const filters: string[] = [];
  const peak = normalizationDb === null || peakClip !== null ? 0 : gain * peakOf(audio);
  if (normalizationDb !== null && peak >= SILENT_PEAK) {
    filters.push(`volume=${10 ** (normalizationDb / 20) / peak}:precision=float`);
  }
  const samplesOf = (seconds: number) => Math.min(Math.round(seconds * sampleRate), samplesPerChannel);
  const fadeIn = samplesOf(fadeInSeconds);
  const fadeOut = samplesOf(fadeOutSeconds);
  if (fadeIn > 0) filters.push(`afade=type=in:start_sample=0:nb_samples=${fadeIn}`);
  if (fadeOut > 0) {
    filters.push(`afade=type=out:start_sample=${samplesPerChannel - fadeOut}:nb_samples=${fadeOut}`);
  }
  return filters;
}

async function runFfmpeg(
  job: EncodeJob,
  { sampleRate, mp3Bitrate }: OutputParameters,
  gain: number,
  filters: readonly string[],
  outputPath: string,
): Promise<void> {
  const input = ["-f", "f32le", "-ar", String(job.sampleRate), "-ac", "2", "-i", "pipe:0"];
  // bitexact keeps version numbers and dates out of the file, so equal audio gives equal bytes.
  const output = ["-map_metadata", "-1", "-fflags", "+bitexact", "-flags:a", "+bitexact"];
  const args = [
    "-xerror", // without this, ffmpeg exits with 0 if the disk is full when it closes the file
    "-y",
    ...input,
    ...(filters.length === 0 ? [] : ["-af", filters.join(",")]),
    ...["-ar", String(sampleRate)],
    ...AUDIO_PROFILES[job.format].ffmpeg,
    ...(job.format === "mp3" && mp3Bitrate !== null ? ["-b:a", mp3Bitrate] : []),
    ...output,
    ...(job.tags === undefined ? [] : ffmpegTagArguments(job.tags, job.format)),
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
  const fed = pipeline(
    Readable.from(interleave(job.audio, job.samplesPerChannel, gain), { objectMode: true }),
    stdin,
  );
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

function* wavOf(job: EncodeJob, sample: "int16" | "float32", gain: number): Generator<Uint8Array> {
  const info = job.tags === undefined ? new Uint8Array() : wavInfoChunk(job.tags);
  yield wavHeader(sample, job.sampleRate, job.samplesPerChannel, info.length);
  for (const piece of interleave(job.audio, job.samplesPerChannel, gain)) {
    yield sample === "float32" ? piece : int16Of(new Float32Array(piece.buffer));
  }
  if (info.length > 0) yield info;
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

/**
 * Planar stereo to little-endian interleaved bytes, in chunks.
 * @param gain factor of the samples, which are then clipped to full scale; 1: they stay as they are
 */
export function* interleave(
  planar: Float32Array,
  samplesPerChannel: number,
  gain = 1,
): Generator<Uint8Array> {
  for (let start = 0; start < samplesPerChannel; start += CHUNK_FRAMES) {
    const frames = Math.min(CHUNK_FRAMES, samplesPerChannel - start);
    const chunk = new Float32Array(frames * 2);
    for (let frame = 0; frame < frames; frame++) {
      chunk[2 * frame] = planar[start + frame] as number;
      chunk[2 * frame + 1] = planar[samplesPerChannel + start + frame] as number;
    }
    if (gain !== 1) {
      for (let at = 0; at < chunk.length; at++)
        chunk[at] = Math.max(-1, Math.min(1, (chunk[at] as number) * gain));
    }
    yield new Uint8Array(chunk.buffer);
  }
}
