import { expect } from "chai";
import { canonicalKeyScale, LANGUAGES } from "../../../src/engine/metadata.js";
import { RandomSamples } from "../../../src/music/words/random-samples.js";

describe("the collection of random samples", () => {
  const samples = RandomSamples.load();

  it("contains at least fifty distinct examples", () => {
    const texts = [
      ...samples.simple.map(({ description }) => description),
      ...samples.custom.map(({ lyrics }) => lyrics),
    ];
    expect(texts.length).to.be.at.least(50);
    expect(new Set(texts).size).to.equal(texts.length);
  });

  it("varies in language, metre and structure", () => {
    expect(new Set(samples.custom.map(({ language }) => language)).size).to.be.at.least(8);
    expect(new Set(samples.custom.map(({ timesignature }) => timesignature))).to.have.all.keys(
      "2",
      "3",
      "4",
      "6",
    );
    expect(new Set(samples.custom.map(({ bpm }) => bpm)).size).to.be.at.least(20);
    expect(samples.simple.some(({ instrumental }) => instrumental)).to.equal(true);
  });

  it("uses keys and languages known to the models, and section tags in lyrics", () => {
    for (const { caption, keyscale, language, lyrics } of samples.custom) {
      expect(canonicalKeyScale(keyscale), caption).to.be.a("string");
      expect(LANGUAGES, caption).to.include(language);
      expect(lyrics.match(/^\[.+\]$/gm)?.length, caption).to.be.at.least(3);
    }
  });

  it("a sample has each field under its current name and under the name that older clients read", () => {
    const custom = samples.draw("custom_mode");
    expect(custom).to.include.all.keys("caption", "lyrics", "bpm", "duration", "vocal_language", "think");
    expect(custom).to.include.all.keys(
      "key_scale",
      "keyscale",
      "time_signature",
      "timesignature",
      "language",
    );
    const simple = samples.draw("simple_mode");
    expect(simple).to.include.all.keys("caption", "description", "instrumental", "lyrics", "vocal_language");
    expect(simple).to.include({ bpm: null, duration: null, key_scale: "", time_signature: "" });
  });
});
