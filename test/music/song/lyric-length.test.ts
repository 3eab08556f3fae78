import { expect } from "chai";
import { estimateLength } from "../../../src/music/song/lyric-length.js";

const OPEN = { bpm: null, timeSignature: "" };
const secondsOf = (lyrics: string, facts: Partial<typeof OPEN | { bpm: number }> = {}) =>
  estimateLength(lyrics, { ...OPEN, ...facts }).seconds;
const lines = (count: number, line = "la la la la") => Array(count).fill(line).join("\n");

describe("song length estimated from lyrics", () => {
  it("the estimated length is 30 seconds without lyrics", () => {
    for (const lyrics of ["", "[Instrumental]", "[Intro]\n[Solo]\n\n", " \n---"]) {
      expect(estimateLength(lyrics, OPEN)).to.deep.equal({
        seconds: 30,
        reason: "the default without lyrics",
      });
    }
  });

  it("the estimated length is two bars a line plus eight bars for intro and outro", () => {
    expect(secondsOf(lines(4))).to.equal((4 * 2 + 8) * 2);
    expect(secondsOf(`[Verse]\n${lines(2)}\n\n[Chorus]\n${lines(2)}`)).to.equal(32);
    expect(estimateLength(lines(1), OPEN).reason).to.equal("estimated from 1 line of lyrics at 120 bpm");
  });

  it("the estimated length follows tempo and metre", () => {
    expect(secondsOf(lines(4), { bpm: 60 })).to.equal(64);
    expect(secondsOf(lines(4), { bpm: 240 })).to.equal(16);
    expect(estimateLength(lines(4), { bpm: 120, timeSignature: "3" }).seconds).to.equal(24);
    expect(estimateLength(lines(4), { bpm: 90, timeSignature: "6" }).seconds).to.equal(32);
  });

  it("a section without lines counts as eight bars", () => {
    const song = `[Intro]\n[Verse]\n${lines(4)}\n[Solo]\n[Outro]`;
    expect(secondsOf(song)).to.equal((4 * 2 + 8 + 3 * 8) * 2);
  });

  it("long lines count as more bars, in any script", () => {
    // 25 syllables take five seconds, rounded up to three bars.
    for (const line of [
      "la ".repeat(25),
      "啦".repeat(25),
      "라".repeat(25),
      "ラ".repeat(25),
      "ля ".repeat(25),
    ]) {
      expect(secondsOf(lines(4, line)), line).to.equal((4 * 3 + 8) * 2);
    }
  });

  it("the estimated length is from 10 to 600 seconds", () => {
    expect(secondsOf("la", { bpm: 300 })).to.equal(10);
    expect(secondsOf(lines(2000))).to.equal(600);
  });
});
