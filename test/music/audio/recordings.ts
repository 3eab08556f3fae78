/** Recordings for tests. */
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { basename } from "node:path";

export interface Recording {
  seconds?: number;
  /** Sample rate in hertz. */
  sampleRate?: number;
  channels?: 1 | 2;
  /** Pitch of the left channel in hertz; the right channel is a fifth higher. */
  pitch?: number;
}

const COMMON_FORMATS = {
  mp3: ["-c:a", "libmp3lame", "-b:a", "192k"],
  flac: ["-c:a", "flac"],
  wav: [],
  ogg: ["-c:a", "libvorbis", "-q:a", "6"],
  m4a: ["-c:a", "aac", "-b:a", "192k"],
  aac: ["-c:a", "aac", "-b:a", "192k"],
  opus: ["-c:a", "libopus", "-b:a", "192k"],
  webm: ["-c:a", "libopus", "-b:a", "192k"],
} as const;

const WAV_HEADER_BYTES = 44;

/** File extensions of the common formats. */
export const RECORDING_FORMATS = Object.keys(COMMON_FORMATS) as (keyof typeof COMMON_FORMATS)[];

/** Writes a tone at a quarter of full scale. The extension of `path` selects the format. */
export function writeRecording(path: string, recording: Recording = {}): string {
  const { seconds = 10, sampleRate = 48_000, channels = 2, pitch = 220 } = recording;
  const pitches = [pitch, pitch * 1.5].slice(0, channels);
  const extension = path.slice(path.lastIndexOf(".") + 1) as keyof typeof COMMON_FORMATS;
  if (extension === "wav") {
    writeWave(path, seconds, sampleRate, pitches);
    return path;
  }
  const channelTones = pitches.map((frequency) => `0.25*sin(2*PI*${frequency}*t)`).join("|");
  runFfmpeg([
    ...["-f", "lavfi", "-i", `aevalsrc=${channelTones}:s=${sampleRate}:d=${seconds}`],
    ...COMMON_FORMATS[extension],
    path,
  ]);
  return path;
}

/** Writes tones as 16-bit WAV. Does not use ffmpeg, because starting it takes longer. */
function writeWave(path: string, seconds: number, sampleRate: number, pitches: readonly number[]): void {
  const frames = Math.round(seconds * sampleRate);
  const frameBytes = 2 * pitches.length;
  const bytes = Buffer.alloc(WAV_HEADER_BYTES + frames * frameBytes);
  bytes.write("RIFF____WAVEfmt ", "latin1");
  bytes.writeUInt32LE(bytes.length - 8, 4);
  bytes.writeUInt32LE(16, 16);
  bytes.writeUInt16LE(1, 20);
  bytes.writeUInt16LE(pitches.length, 22);
  bytes.writeUInt32LE(sampleRate, 24);
  bytes.writeUInt32LE(sampleRate * frameBytes, 28);
  bytes.writeUInt16LE(frameBytes, 32);
  bytes.writeUInt16LE(16, 34);
  bytes.write("data", 36, "latin1");
  bytes.writeUInt32LE(frames * frameBytes, 40);
  for (let frame = 0; frame < frames; frame++) {
    for (const [channel, pitch] of pitches.entries()) {
      const sample = 0.25 * Math.sin((2 * Math.PI * pitch * frame) / sampleRate);
      bytes.writeInt16LE(Math.round(32_767 * sample), WAV_HEADER_BYTES + frame * frameBytes + 2 * channel);
    }
  }
  writeFileSync(path, bytes);
}

/** Writes `seconds` of silence in a small file that decodes fast. */
export function writeSilence(path: string, seconds: number): string {
  runFfmpeg(["-f", "lavfi", "-i", "anullsrc=r=8000:cl=mono", "-t", String(seconds), "-c:a", "flac", path]);
  return path;
}

export function runFfmpeg(args: readonly string[]): void {
  execFileSync("ffmpeg", ["-hide_banner", "-loglevel", "error", "-nostdin", "-y", ...args]);
}

/**
 * Decodes a wav32 song to planar samples. Does not use ffmpeg, because starting it takes longer than making a
 * short song.
 */
export function samplesOf(wav: Buffer): Float32Array {
  const bytes = wav.subarray(WAV_HEADER_BYTES, WAV_HEADER_BYTES + wav.readUInt32LE(WAV_HEADER_BYTES - 4));
  const interleaved = new Float32Array(new Uint8Array(bytes).buffer);
  const samples = interleaved.length / 2;
  const planar = new Float32Array(interleaved.length);
  for (let i = 0; i < samples; i++) {
    planar[i] = interleaved[2 * i] as number;
    planar[samples + i] = interleaved[2 * i + 1] as number;
  }
  return planar;
}

/** Wraps a file for upload in a form. */
export function uploadOf(path: string, name = basename(path)): File {
  return new File([readFileSync(path)], name);
}
