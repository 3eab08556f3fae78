/** Parameters of the output file; ../audio/encode.ts applies them. */
import { z } from "zod";
import { finiteNumber, integer, oneOf, parameter, refuse, trimmed, within } from "../../parameters.js";
import { AUDIO_FORMATS, AUDIO_PROFILES, type AudioFormat } from "../audio/formats.js";
import { RequestError } from "../errors.js";
import { type SongUses, uses } from "./uses.js";

/** Valid bit rates of mp3 files (MPEG-1 layer III). */
const MP3_BITRATES = [
  ...(["32k", "40k", "48k", "56k", "64k", "80k", "96k"] as const),
  ...(["112k", "128k", "160k", "192k", "224k", "256k", "320k"] as const),
] as const;
const SAMPLE_RATES = [
  ...new Set(Object.values(AUDIO_PROFILES).flatMap(({ sampleRates }): readonly number[] => sampleRates)),
].sort((a, b) => a - b);
const MAX_FADE_SECONDS = 600;

/** Bit rate such as `192k`; `192` and `192 kbps` are accepted, too. */
const mp3Bitrate = trimmed
  .transform((value) => `${value.toLowerCase().replace(/ ?k(bps|bit\/s)?$/, "")}k`)
  .pipe(z.enum(MP3_BITRATES, `must be one of ${MP3_BITRATES.join(", ")}`));

const sampleRate = integer
  .transform((rate, context): number =>
    SAMPLE_RATES.includes(rate) ? rate : refuse(context, `must be one of ${SAMPLE_RATES.join(", ")}`, rate),
  )
  .meta({ type: "integer", enum: SAMPLE_RATES });

const fadeSeconds = within(finiteNumber, 0, MAX_FADE_SECONDS);

const ofFile: SongUses = { analyses: ["audio"] };

export const outputParameters = z.object({
  mp3Bitrate: parameter(
    "mp3_bitrate",
    mp3Bitrate.nullable().default(null),
    "Bit rate of mp3 files, 32k to 320k; unset: 256k.",
    uses({
      analyses: ["audio"],
      atSubmission: [({ audioFormat }) => (audioFormat === "mp3" ? null : `audio_format is ${audioFormat}`)],
    }),
  ),
  sampleRate: parameter(
    ["sample_rate", "mp3_sample_rate"],
    sampleRate.default(48_000),
    "Sample rate in hertz: 48000 for opus; 32000, 44100 or 48000 for mp3, aac and ogg; 8000 to 96000 for wav and flac.",
    uses(ofFile),
  ),
  normalizationDb: parameter(
    "normalization_db",
    within(finiteNumber, -60, 0).nullable().default(null),
    "Peak level in dBFS; with loudness, the highest peak. Unset: -1, or the level of the source if repaint or lego keep a part of it.",
    uses({
      ...ofFile,
      atSubmission: [({ peakClip }) => (peakClip === null ? null : "replaced by peak_clip")],
    }),
  ),
  loudness: parameter(
    ["loudness", "loudness_lufs"],
    within(finiteNumber, -60, -5).nullable().default(null),
    "Integrated loudness in LUFS (EBU R 128), such as -14. A song whose peak would exceed normalization_db, by default -1 dB, stays quieter.",
    uses({
      ...ofFile,
      atSubmission: [({ peakClip }) => (peakClip === null ? null : "replaced by peak_clip")],
    }),
  ),
  peakClip: parameter(
    "peak_clip",
    within(integer, 0, 999).nullable().default(null),
    "Millionths of the samples that may clip when the others are scaled to full scale; replaces normalization_db and loudness. Unset: nothing clips.",
    uses(ofFile),
  ),
  fadeInSeconds: parameter(
    ["fade_in", "fade_in_duration"],
    fadeSeconds.default(0),
    "Length of the linear fade-in in seconds, applied after normalization.",
    uses(ofFile),
  ),
  fadeOutSeconds: parameter(
    ["fade_out", "fade_out_duration"],
    fadeSeconds.nullable().default(null),
    "Length of the linear fade-out in seconds. Unset: 0.5 if a song, but not a stem or a kept part of a source, still sounds at its end.",
    uses(ofFile),
  ),
});

export const audioFormat = parameter(
  "audio_format",
  oneOf(AUDIO_FORMATS).default("mp3"),
  "Audio format. wav is 16-bit, wav24 24-bit, wav32 32-bit float; ogg is Vorbis.",
  uses(ofFile),
);

export type OutputParameters = z.output<typeof outputParameters>;

/** Adds the defaults of absent parameters. */
export function outputParametersOf(given: Partial<OutputParameters>): OutputParameters {
  return outputParameters.parse(given);
}

/** @throws RequestError for a sample rate that the format does not support */
export function checkSampleRate(format: AudioFormat, { sampleRate }: OutputParameters): void {
  const rates: readonly number[] = AUDIO_PROFILES[format].sampleRates;
  if (rates.includes(sampleRate)) return;
  const rule = rates.length === 1 ? `must be ${rates[0]}` : `must be one of ${rates.join(", ")}`;
  throw new RequestError(`sample_rate ${rule} for audio_format ${format}, got ${sampleRate}`);
}
