import { expect } from "chai";
import fc from "fast-check";
import { gainWithClipping } from "../../../src/music/audio/peaks.js";

/** The definition: the sample of this rank, by size, is at full scale. */
function plainGain(audio: Float32Array, millionths: number): number {
  const sizes = audio.map(Math.abs).sort();
  const level = sizes[Math.floor((sizes.length - 1) * (1 - millionths / 1e6))] as number;
  return level < 1e-6 ? 1 : 1 / level;
}

describe("level by a percentile of the samples", () => {
  it("equals the definition", async () => {
    const samples = fc.array(fc.float({ noNaN: true, min: -4, max: 4 }), { minLength: 1, maxLength: 3000 });
    const check = fc.asyncProperty(samples, fc.integer({ min: 0, max: 999 }), async (values, millionths) => {
      const audio = Float32Array.from(values);
      expect(await gainWithClipping(audio, millionths)).to.equal(plainGain(audio, millionths));
    });
    await fc.assert(check);
  });

  it("ignores the loudest millionths, and silence", async () => {
    const audio = new Float32Array(1_000_001).fill(0.25);
    audio.fill(0.9, 0, 10);
    expect(await gainWithClipping(audio, 10)).to.equal(4);
    expect(await gainWithClipping(audio, 9)).to.be.closeTo(1 / 0.9, 1e-6);
    expect(await gainWithClipping(new Float32Array(100), 10)).to.equal(1);
  });
});
