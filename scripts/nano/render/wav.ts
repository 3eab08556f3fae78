/** WAV files of 16-bit PCM with the canonical header of 44 bytes. */
import { wavHeader } from "../../../src/music/audio/encode.js";
import { type Stereo, sampleRate, silence } from "./stereo.js";

const headerBytes = 44;

export function encodeWav({ left, right }: Stereo): Buffer {
  const samples = new Int16Array(2 * left.length);
  for (let i = 0; i < left.length; i++) {
    samples[2 * i] = toPcm(left[i] as number);
    samples[2 * i + 1] = toPcm(right[i] as number);
  }
  return Buffer.concat([wavHeader("int16", sampleRate, left.length), Buffer.from(samples.buffer)]);
}

/** Decodes a file that `encodeWav` made. */
export function decodeWav(file: Buffer): Stereo {
  const audio = silence((file.length - headerBytes) / 4);
  for (let i = 0; i < audio.left.length; i++) {
    audio.left[i] = file.readInt16LE(headerBytes + 4 * i) / 32767;
    audio.right[i] = file.readInt16LE(headerBytes + 4 * i + 2) / 32767;
  }
  return audio;
}

function toPcm(sample: number): number {
  return Math.round(Math.max(-1, Math.min(1, sample)) * 32767);
}
