/** WAV files of 16-bit PCM with the canonical header of 44 bytes. */
import { type Stereo, sampleRate, silence } from "./stereo.js";

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

/** Reads what `encodeWav` wrote. @throws RangeError for another kind of file */
export function decodeWav(file: Buffer): Stereo {
  const isOurs =
    file.toString("latin1", 0, 4) === "RIFF" &&
    file.readUInt16LE(22) === channels &&
    file.readUInt32LE(24) === sampleRate &&
    file.readUInt16LE(34) === 8 * bytesPerSample &&
    file.toString("latin1", 36, 40) === "data";
  if (!isOurs) throw new RangeError("not a 48 kHz stereo WAV file of 16 bits with a header of 44 bytes");
  const audio = silence(file.readUInt32LE(40) / (channels * bytesPerSample));
  for (let i = 0; i < audio.left.length; i++) {
    audio.left[i] = file.readInt16LE(headerBytes + 4 * i) / 32767;
    audio.right[i] = file.readInt16LE(headerBytes + 4 * i + 2) / 32767;
  }
  return audio;
}

function toPcm(sample: number): number {
  return Math.round(Math.max(-1, Math.min(1, sample)) * 32767);
}
