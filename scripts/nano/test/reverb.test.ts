import { expect } from "chai";
import { Random } from "../compose/random.js";
import { addReverb } from "../render/reverb.js";
import { type Stereo, sampleRate, silence } from "../render/stereo.js";

describe("nano: reverb", () => {
  it("reverb is linear: the reverbs of two signals add up to the reverb of their sum", () => {
    const samples = 2 * sampleRate;
    const noise = (seed: number): Float32Array => {
      const random = new Random(seed);
      return Float32Array.from({ length: samples }, () => random.between(-1, 1));
    };
    const reverberate = (send: Float32Array): Stereo => {
      const audio = silence(samples);
      addReverb(send, audio);
      return audio;
    };
    const [a, b] = [noise(1), noise(2)];
    const sum = a.map((sample, i) => sample + (b[i] as number));
    const [both, first, second] = [reverberate(sum), reverberate(a), reverberate(b)];
    for (let i = 0; i < samples; i += 97) {
      expect(both.right[i]).to.be.closeTo((first.right[i] as number) + (second.right[i] as number), 1e-5);
    }
  });
});
