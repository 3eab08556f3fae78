/** Hall reverb: a feedback delay network of eight lines, mixed by a Householder reflection, behind two allpass diffusers. */
import { type Stereo, sampleRate } from "./stereo.js";

/**
 * Reverberation time (decay by 60 dB) at low frequencies. The lines' low-pass filters shorten it at high
 * frequencies.
 */
const decaySeconds = 2.3;
const lowpass = 0.75;
/** Output gain: with a full send, the reverb is 13 dB quieter than the dry sound. */
const gain = 0.068;

/** Delays are prime numbers of samples, so that echoes do not coincide. The signs decorrelate the channels. */
const lines = [
  { delay: 1399, left: 1, right: 1 },
  { delay: 1747, left: 1, right: -1 },
  { delay: 2053, left: -1, right: 1 },
  { delay: 2467, left: -1, right: -1 },
  { delay: 2897, left: 1, right: 1 },
  { delay: 3389, left: -1, right: 1 },
  { delay: 4001, left: 1, right: -1 },
  { delay: 4643, left: -1, right: -1 },
] as const;
const diffusers = [241, 613] as const;
const diffusion = 0.6;
/** Each delay line processes a whole block at once, so no delay may be shorter than a block. */
const blockSamples = 1024;

/** Adds the reverb of `send` to `audio`. Overwrites `send`. */
export function addReverb(send: Float32Array, audio: Stereo): void {
  const allpasses = diffusers.map((delay) => new Ring(delay));
  const network = lines.map(({ delay, left, right }) => new Line(delay, left * gain, right * gain));
  const sum = new Float32Array(blockSamples);
  for (let start = 0; start < send.length; start += blockSamples) {
    const input = send.subarray(start, start + blockSamples);
    for (const ring of allpasses) ring.diffuse(input);
    sum.fill(0);
    const left = audio.left.subarray(start, start + blockSamples);
    const right = audio.right.subarray(start, start + blockSamples);
    for (const line of network) line.read(sum, left, right);
    for (const line of network) line.write(sum, input);
  }
}

/** A delay line of fixed length. */
class Ring {
  protected readonly samples: Float32Array;
  protected position = 0;

  constructor(delay: number) {
    this.samples = new Float32Array(delay);
  }

  /** Schroeder's allpass filter, in place. */
  diffuse(block: Float32Array): void {
    const { samples } = this;
    let at = this.position;
    for (let i = 0; i < block.length; i++) {
      const delayed = samples[at] as number;
      const kept = (block[i] as number) + diffusion * delayed;
      samples[at] = kept;
      block[i] = delayed - diffusion * kept;
      if (++at === samples.length) at = 0;
    }
    this.position = at;
  }
}

class Line extends Ring {
  readonly #decay: number;
  readonly #left: number;
  readonly #right: number;
  #low = 0;

  constructor(delay: number, left: number, right: number) {
    super(delay);
    this.#decay = 10 ** ((-3 * delay) / (decaySeconds * sampleRate));
    this.#left = left;
    this.#right = right;
  }

  /** Low-pass filters the oldest block in the line, in place, and adds it to `sum` and to both channels. */
  read(sum: Float32Array, left: Float32Array, right: Float32Array): void {
    const { samples } = this;
    const [decay, toLeft, toRight] = [this.#decay, this.#left, this.#right];
    let low = this.#low;
    let at = this.position;
    for (let i = 0; i < left.length; i++) {
      low += lowpass * (decay * (samples[at] as number) - low);
      samples[at] = low;
      sum[i] = (sum[i] as number) + low;
      left[i] = (left[i] as number) + toLeft * low;
      right[i] = (right[i] as number) + toRight * low;
      if (++at === samples.length) at = 0;
    }
    this.#low = low;
  }

  /** Replaces the filtered block by its Householder reflection, and adds the input. */
  write(sum: Float32Array, input: Float32Array): void {
    const { samples } = this;
    const share = 2 / lines.length;
    let at = this.position;
    for (let i = 0; i < input.length; i++) {
      samples[at] = (samples[at] as number) - share * (sum[i] as number) + (input[i] as number);
      if (++at === samples.length) at = 0;
    }
    this.position = at;
  }
}
