/** WAV files of 16-bit PCM with the canonical header of 44 bytes. */
import { type Stereo, sampleRate } from "./stereo.js";

const headerBytes = 44;
const channels = 2;
const bytesPerSample = 2;

export function encodeWav({ left, right }: Stereo): Buffer {
  const dataBytes = left.length * channels * bytesPerSample;
  const file = Buffer.alloc(headerBytes + dataBytes);
  file.write("RIFF", 0, "latin1");
  file.writeUInt32LE(headerBytes - 8 + dataBytes, 4);
  file.write("WAVEfmt ", 8, "latin1");
  file.writeUInt32LE(16, 16);
  file.writeUInt16LE(1, 20);
  file.writeUInt16LE(channels, 22);
  file.writeUInt32LE(sampleRate, 24);
  file.writeUInt32LE(sampleRate * channels * bytesPerSample, 28);
  file.writeUInt16LE(channels * bytesPerSample, 32);
  file.writeUInt16LE(8 * bytesPerSample, 34);
  file.write("data", 36, "latin1");
  file.writeUInt32LE(dataBytes, 40);
  const samples = new Int16Array(file.buffer, file.byteOffset + headerBytes, left.length * channels);
  for (let i = 0; i < left.length; i++) {
    samples[2 * i] = toPcm(left[i] as number);
    samples[2 * i + 1] = toPcm(right[i] as number);
  }
  return file;
}

function toPcm(sample: number): number {
  return Math.round(Math.max(-1, Math.min(1, sample)) * 32767);
}
