import { expect } from "chai";
import { clearTempo, measureTempo } from "../../../src/music/audio/tempo.js";

const RATE = 48_000;

/** Drum hits on every beat, accented every four beats, over a sustained chord. */
function piece(bpm: number, seconds: number): Float32Array {
  const length = RATE * seconds;
  const audio = new Float32Array(2 * length);
  const beatSamples = (60 / bpm) * RATE;
  let noise = 1;
  for (let i = 0; i < length; i += 1) {
    noise = (noise * 1_103_515_245 + 12_345) % 2 ** 31;
    const sinceBeat = (i % beatSamples) / RATE;
    const accent = Math.floor(i / beatSamples) % 4 === 0 ? 1 : 0.6;
    const hit = accent * Math.exp(-sinceBeat * 30) * (noise / 2 ** 30 - 1);
    audio[i] = 0.5 * hit + 0.1 * Math.sin(i * 0.03);
    audio[length + i] = audio[i] as number;
  }
  return audio;
}

describe("clearTempo", () => {
  it("finds a clear tempo", () => {
    expect(clearTempo(piece(118, 20), RATE)).to.be.within(117, 119);
  });

  it("finds none in a short piece", () => {
    const parts = [0.5, 1, 2, 3].map((seconds) => clearTempo(piece(118, seconds), RATE));
    expect(parts).to.deep.equal([null, null, null, null]);
    expect(clearTempo(piece(118, 5), RATE)).to.be.within(117, 119);
  });

  it("finds none in silence, in noise, or if half or twice the tempo fits as well", () => {
    expect(clearTempo(new Float32Array(2 * RATE), RATE)).to.equal(null);
    const noise = Float32Array.from(
      { length: 40 * RATE },
      (_, i) => (Math.sin(i * 12.9898) * 43_758.5453) % 1,
    );
    expect(clearTempo(noise, RATE)).to.equal(null);
    const [slow, fast] = [piece(80, 20), piece(160, 20)];
    expect(
      clearTempo(
        slow.map((sample, i) => sample + (fast[i] as number)),
        RATE,
      ),
    ).to.equal(null);
  });
});

describe("measureTempo", () => {
  for (const bpm of [72, 90, 118, 140, 171]) {
    it(`finds ${bpm} beats per minute`, () => {
      expect(measureTempo(piece(bpm, 20), RATE)).to.be.within(bpm - 1, bpm + 1);
    });
  }

  it("returns null for silence and an integer otherwise", () => {
    expect(measureTempo(new Float32Array(2 * RATE), RATE)).to.equal(null);
    expect(measureTempo(piece(100, 1), RATE)).to.satisfy(Number.isInteger);
    expect(measureTempo(piece(100, 120), RATE)).to.be.within(99, 101);
  });
});
