/** Tags in song files, by the names that players and tag editors read. */
import type { AudioFormat } from "./formats.js";

export interface SongTags {
  title: string;
  prompt: string;
  lyrics: string;
  bpm: number | null;
  key: string;
  seed: string;
}

/** Level of the song in a file. */
export interface TaggedLevel {
  /** Integrated loudness in LUFS; null for silence. */
  loudness: number | null;
  /** Highest sample; 1 is full scale. */
  peak: number;
}

/** Non-empty tags by the names that the format uses. */
function namedTags(
  { title, prompt, lyrics, bpm, key, seed, loudness, peak }: SongTags & TaggedLevel,
  format: AudioFormat,
): [string, string][] {
  const isId3 = format === "mp3" || format === "aac";
  const tags: [string, string | number | null][] = [
    ["title", title],
    ["comment", prompt],
    ["lyrics", lyrics],
    [isId3 ? "TBPM" : "BPM", bpm],
    [isId3 ? "TKEY" : "KEY", isId3 ? id3Key(key) : key],
    ["SEED", seed],
    ...(loudness === null ? [] : gainTags(loudness, peak, format)),
  ];
  return tags.flatMap(([name, value]) => {
    const text = String(value ?? "").replaceAll("\0", "");
    return text === "" ? [] : [[name, text] as [string, string]];
  });
}

/** Gain that players apply: https://wiki.hydrogenaudio.org/index.php?title=ReplayGain_2.0_specification, for Opus RFC 7845, 5.2.1. */
function gainTags(loudness: number, peak: number, format: AudioFormat): [string, string][] {
  if (format === "opus") return [["R128_TRACK_GAIN", String(Math.round(256 * (-23 - loudness)))]];
  return [
    ["REPLAYGAIN_TRACK_GAIN", `${(-18 - loudness).toFixed(2)} dB`],
    ["REPLAYGAIN_TRACK_PEAK", peak.toFixed(6)],
  ];
}

/** ID3 writes "Ebm" for E flat minor: https://id3.org/id3v2.3.0 (TKEY). */
function id3Key(key: string): string {
  const [, tonic, mode] = /^([A-G][#b]?) (major|minor)$/.exec(key) ?? [];
  return tonic === undefined ? "" : tonic + (mode === "minor" ? "m" : "");
}

/** ffmpeg arguments that write the tags. A wav file gets only title and comment. */
export function ffmpegTagArguments(tags: SongTags & TaggedLevel, format: AudioFormat): string[] {
  const container =
    format === "aac" ? ["-write_id3v2", "1"] : format === "mp3" ? ["-id3v2_version", "3"] : [];
  return [
    ...namedTags(tags, format).flatMap(([name, text]) => ["-metadata", `${name}=${text}`]),
    ...container,
  ];
}

/** LIST chunk of a wav file: https://www.mmsp.ece.mcgill.ca/Documents/AudioFormats/WAVE/WAVE.html */
export function wavInfoChunk({ title, prompt }: SongTags): Uint8Array {
  const infos = [infoChunk("INAM", title), infoChunk("ICMT", prompt)].filter((chunk) => chunk.length > 8);
  return infos.length === 0
    ? new Uint8Array()
    : chunkOf("LIST", Buffer.concat([Buffer.from("INFO"), ...infos]));
}

function infoChunk(id: string, text: string): Buffer {
  return chunkOf(id, text === "" ? Buffer.alloc(0) : Buffer.from(`${text.replaceAll("\0", "")}\0`));
}

function chunkOf(id: string, content: Buffer): Buffer {
  const size = Buffer.alloc(4);
  size.writeUInt32LE(content.length);
  return Buffer.concat([Buffer.from(id), size, content, Buffer.alloc(content.length % 2)]);
}
