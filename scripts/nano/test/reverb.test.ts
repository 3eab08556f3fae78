import assert from "node:assert/strict";
import { SpessaSynthProcessor } from "spessasynth_core";
import { Random } from "../compose/random.js";
import { HallReverb } from "../render/hall-reverb.js";
import { type Stereo, sampleRate, silence } from "../render/stereo.js";

describe("nano: reverb", () => {
  it("sounds like the library's default to the sample", () => {
    const samples = 3 * sampleRate;
    const random = new Random(1);
    const input = Float32Array.from({ length: samples }, (_, i) =>
      i < sampleRate ? random.between(-1, 1) : 0,
    );
    const synth = new SpessaSynthProcessor(sampleRate, { eventsEnabled: false });
    synth.reset(); // sets the default reverb
    const library = synth.reverbProcessor;

    const [wanted, made] = [library, new HallReverb(sampleRate)].map((reverb) => {
      const output = silence(samples);
      for (let start = 0, block = 1; start < samples; start += block, block = (block * 7) % 480 || 1) {
        const count = Math.min(block, samples - start);
        reverb.process(input.subarray(start, start + count), output.left, output.right, start, count);
      }
      return output;
    }) as [Stereo, Stereo];

    assert(wanted.left.some((sample) => sample !== 0));
    assert.deepEqual(made, wanted);
  });
});
