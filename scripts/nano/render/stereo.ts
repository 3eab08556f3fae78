/** Stereo samples at 48 kHz. Full scale is 1. */
export interface Stereo {
  left: Float32Array;
  right: Float32Array;
}

export const sampleRate = 48_000;

export function silence(samples: number): Stereo {
  return { left: new Float32Array(samples), right: new Float32Array(samples) };
}

/** Adds `source` times `gain` to `target`. */
export function addTo(target: Stereo, source: Stereo, gain: number): void {
  for (const channel of ["left", "right"] as const) {
    const to = target[channel];
    const from = source[channel];
    for (let i = 0; i < to.length; i++) to[i] = (to[i] as number) + gain * (from[i] as number);
  }
}

export function applyGain(audio: Stereo, gain: number): void {
  for (const channel of [audio.left, audio.right]) {
    for (let i = 0; i < channel.length; i++) channel[i] = gain * (channel[i] as number);
  }
}

/** The channels one after the other, as the engine takes them. */
export function planarOf({ left, right }: Stereo): Float32Array {
  const planar = new Float32Array(2 * left.length);
  planar.set(left);
  planar.set(right, left.length);
  return planar;
}

export function peakOf({ left, right }: Stereo): number {
  let peak = 0;
  for (const channel of [left, right]) {
    for (const sample of channel) peak = Math.max(peak, Math.abs(sample));
  }
  return peak;
}

/** Root mean square of the audible passages: frames of 50 ms within 30 dB of the loudest frame. */
export function activeLevel({ left, right }: Stereo): number {
  const frame = sampleRate / 20;
  const powers: number[] = [];
  for (let start = 0; start + frame <= left.length; start += frame) {
    let sum = 0;
    for (let i = start; i < start + frame; i++) sum += (left[i] as number) ** 2 + (right[i] as number) ** 2;
    powers.push(sum / (2 * frame));
  }
  const threshold = Math.max(0, ...powers) / 1000;
  const active = powers.filter((power) => power > threshold);
  return active.length === 0 ? 0 : Math.sqrt(active.reduce((sum, power) => sum + power, 0) / active.length);
}

export function toDecibels(amplitude: number): number {
  return 20 * Math.log10(amplitude);
}

export function toAmplitude(decibels: number): number {
  return 10 ** (decibels / 20);
}
