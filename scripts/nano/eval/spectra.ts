/** Short-time spectra of recordings, and the pitch classes in them. */
import FFT from "fft.js";
import { sampleRate } from "../render/stereo.js";

/** Magnitudes of a frame a row, each of `bins` values from 0 Hz up to half the rate. */
export interface Spectrogram {
  frames: Float32Array[];
  bins: number;
  hertzPerBin: number;
}

/**
 * Hann windows that overlap by half.
 * @param mono samples at 48 kHz
 * @param size samples of a window, a power of two
 */
export function spectrogram(mono: Float32Array, size: number): Spectrogram {
  const fft = new FFT(size);
  const spectrum = fft.createComplexArray();
  const window = Float32Array.from(
    { length: size },
    (_, i) => 0.5 - 0.5 * Math.cos((2 * Math.PI * i) / size),
  );
  const windowed = new Float32Array(size);
  const bins = size / 2;
  const frames: Float32Array[] = [];
  for (let start = 0; start + size <= mono.length; start += size / 2) {
    for (let i = 0; i < size; i++) windowed[i] = (window[i] as number) * (mono[start + i] as number);
    fft.realTransform(spectrum, windowed);
    const frame = new Float32Array(bins);
    for (let bin = 0; bin < bins; bin++) {
      const [real, imaginary] = [spectrum[2 * bin] as number, spectrum[2 * bin + 1] as number];
      frame[bin] = Math.sqrt(real * real + imaginary * imaginary);
    }
    frames.push(frame);
  }
  return { frames, bins, hertzPerBin: sampleRate / size };
}

/** Windows that tell semitones apart from this pitch on. */
const chromaWindow = 8192;
const lowestHertz = 110;
const highestHertz = 2200;
/** Half a second each way: notes pass, chords stay. */
const smoothingFrames = 6;

/** Strengths of the twelve pitch classes from C on, about twelve rows a second, each row of length 1 or silent. */
export function chromagram(mono: Float32Array): Float32Array[] {
  const { frames, bins, hertzPerBin } = spectrogram(mono, chromaWindow);
  const classes = Array.from({ length: bins }, (_, bin) => pitchClass(bin * hertzPerBin));
  const rows = frames.map((frame) => {
    const row = new Float32Array(12);
    for (const [bin, which] of classes.entries()) {
      if (which !== null) row[which] = (row[which] as number) + (frame[bin] as number);
    }
    return row;
  });
  return rows.map((_, index) =>
    normalised(sumOf(rows.slice(Math.max(0, index - smoothingFrames), index + smoothingFrames + 1))),
  );
}

function pitchClass(hertz: number): number | null {
  if (hertz < lowestHertz || hertz > highestHertz) return null;
  const pitch = Math.round(69 + 12 * Math.log2(hertz / 440));
  return pitch % 12;
}

function sumOf(rows: Float32Array[]): Float32Array {
  return new Float32Array(12).map((_, i) => rows.reduce((sum, row) => sum + (row[i] as number), 0));
}

function normalised(row: Float32Array): Float32Array {
  const length = Math.hypot(...row);
  return length === 0 ? row : row.map((value) => value / length);
}
