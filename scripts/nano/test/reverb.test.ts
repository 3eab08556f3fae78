import { expect } from "chai";
import { Random } from "../compose/random.js";
import { addReverb } from "../render/reverb.js";
import { decibels, type Stereo, sampleRate, silence } from "../render/stereo.js";

describe("nano: reverb", () => {
  const samples = 3 * sampleRate;

  function reverberate(...inputs: ((i: number) => number)[]): Stereo {
    const audio = silence(samples);
    const send = Float32Array.from({ length: samples }, (_, i) => inputs.reduce((sum, at) => sum + at(i), 0));
    addReverb(send, audio);
    return audio;
  }

  function product(a: Float32Array, b: Float32Array, from = 0, to = 3): number {
    let sum = 0;
    for (let i = from * sampleRate; i < to * sampleRate; i++) sum += (a[i] as number) * (b[i] as number);
    return sum;
  }

  const impulse = (i: number): number => (i === 0 ? 1 : 0);

  it("falls by 60 dB in two seconds, steadily", () => {
    const { left } = reverberate(impulse);
    const levels = [0, 0.5, 1, 1.5, 2].map((from) => decibels(product(left, left, from, from + 0.5)) / 2);
    for (let i = 1; i < levels.length; i++) {
      expect((levels[i - 1] as number) - (levels[i] as number)).to.be.within(11, 20);
    }
  });

  it("spreads a mono sound over both channels, equally loud and uncorrelated", () => {
    const { left, right } = reverberate(impulse);
    const [own, other] = [product(left, left), product(right, right)];
    expect(decibels(own / other) / 2).to.be.closeTo(0, 1);
    expect(Math.abs(product(left, right)) / Math.sqrt(own * other)).to.be.below(0.1);
  });

  it("is additive, so that stems with their own reverb add up to a mix with one", () => {
    const noise = (seed: number) => {
      const random = new Random(seed);
      const values = Array.from({ length: sampleRate }, () => random.between(-1, 1));
      return (i: number): number => values[i] ?? 0;
    };
    const [a, b] = [noise(1), noise(2)];
    const [first, second, both] = [reverberate(a), reverberate(b), reverberate(a, b)];
    for (let i = 0; i < samples; i += 97) {
      expect(both.right[i]).to.be.closeTo((first.right[i] as number) + (second.right[i] as number), 1e-5);
    }
  });
});
