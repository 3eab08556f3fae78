/** Audio formats of songs. */

export interface AudioProfile {
  extension: string;
  contentType: string;
  /** Arguments that select the muxer and the codec of ffmpeg. */
  ffmpeg: readonly string[];
  /** Sample type of a wav file written without ffmpeg. */
  sample?: "int16" | "float32";
  /** Supported sample rates in hertz, ascending. */
  sampleRates: readonly number[];
}

const LOSSLESS_RATES = [8000, 11_025, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000, 88_200, 96_000];
const LOSSY_RATES = [32_000, 44_100, 48_000];

function wav(codec: string): Omit<AudioProfile, "sample"> {
  return {
    extension: "wav",
    contentType: "audio/wav",
    ffmpeg: ["-f", "wav", "-c:a", codec],
    sampleRates: LOSSLESS_RATES,
  };
}

export const AUDIO_PROFILES = {
  mp3: {
    extension: "mp3",
    contentType: "audio/mpeg",
    ffmpeg: ["-f", "mp3", "-c:a", "libmp3lame", "-b:a", "256k"],
    sampleRates: LOSSY_RATES,
  },
  flac: {
    extension: "flac",
    contentType: "audio/flac",
    ffmpeg: ["-f", "flac", "-c:a", "flac", "-sample_fmt", "s16"],
    sampleRates: LOSSLESS_RATES,
  },
  opus: {
    extension: "opus",
    contentType: "audio/ogg",
    ffmpeg: ["-f", "opus", "-c:a", "libopus", "-b:a", "160k"],
    sampleRates: [48_000], // the output rate of every Opus decoder
  },
  aac: {
    extension: "aac",
    contentType: "audio/aac",
    ffmpeg: ["-f", "adts", "-c:a", "aac", "-b:a", "256k"],
    sampleRates: LOSSY_RATES,
  },
  ogg: {
    extension: "ogg",
    contentType: "audio/ogg",
    ffmpeg: ["-f", "ogg", "-c:a", "libvorbis", "-q:a", "8"],
    sampleRates: LOSSY_RATES,
  },
  wav: { ...wav("pcm_s16le"), sample: "int16" },
  wav24: wav("pcm_s24le"),
  wav32: { ...wav("pcm_f32le"), sample: "float32" },
} as const satisfies Record<string, AudioProfile>;

export type AudioFormat = keyof typeof AUDIO_PROFILES;
export const AUDIO_FORMATS = Object.keys(AUDIO_PROFILES) as [AudioFormat, ...AudioFormat[]];

export function contentTypeOf(path: string): string {
  const extension = path.slice(path.lastIndexOf(".") + 1);
  const profile = Object.values(AUDIO_PROFILES).find((format) => format.extension === extension);
  return profile?.contentType ?? "application/octet-stream";
}
