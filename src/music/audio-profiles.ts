/** The formats a song can be delivered in: its file extension, its content type, and how ffmpeg writes it. */

import type { AudioFormat } from "./request/schema.js";

export interface AudioProfile {
  extension: string;
  contentType: string;
  /** Muxer and codec. Lossy rates are chosen to be transparent for music. */
  ffmpegArguments: readonly string[];
}

export const AUDIO_PROFILES: Readonly<Record<AudioFormat, AudioProfile>> = {
  mp3: {
    extension: "mp3",
    contentType: "audio/mpeg",
    ffmpegArguments: ["-f", "mp3", "-c:a", "libmp3lame", "-b:a", "256k"],
  },
  flac: {
    extension: "flac",
    contentType: "audio/flac",
    ffmpegArguments: ["-f", "flac", "-c:a", "flac", "-sample_fmt", "s16"],
  },
  opus: {
    extension: "opus",
    contentType: "audio/ogg",
    ffmpegArguments: ["-f", "opus", "-c:a", "libopus", "-b:a", "160k"],
  },
  aac: {
    extension: "aac",
    contentType: "audio/aac",
    ffmpegArguments: ["-f", "adts", "-c:a", "aac", "-b:a", "256k"],
  },
  wav: {
    extension: "wav",
    contentType: "audio/wav",
    ffmpegArguments: ["-f", "wav", "-c:a", "pcm_s16le"],
  },
  wav32: {
    extension: "wav",
    contentType: "audio/wav",
    ffmpegArguments: ["-f", "wav", "-c:a", "pcm_f32le"],
  },
};
