import { expect } from "chai";
import { parseQueryHints } from "../../src/engine/query-hints.js";

describe("query hints", () => {
  it("hears which language is wished for", () => {
    const wishes: [string, string | null][] = [
      ["a sad Italian ballad", "it"],
      ["upbeat pop. English vocals.", "en"],
      ["une chanson en français", "fr"],
      ["一首中文歌曲", "zh"],
      ["日本語のポップ", "ja"],
      ["música em português", "pt"],
      ["русский рок", "ru"],
      ["german or English techno", "en"],
      ["lang: it, slow", "it"],
      ["language=ja rock", "ja"],
      ["make it loud", null],
      ["hi there, an id for the show", null],
      ["polishing my shoes", null],
      ["slang: it is", null],
      ["", null],
    ];
    for (const [wish, language] of wishes) expect(parseQueryHints(wish).language, wish).to.equal(language);
  });

  it("hears that nobody should sing", () => {
    for (const wish of ["an Instrumental march", "pure music for study", "piano solo", "Solo"]) {
      expect(parseQueryHints(wish).instrumental, wish).to.equal(true);
    }
    for (const wish of ["solo artist with a band", "a song about instruments"]) {
      expect(parseQueryHints(wish).instrumental, wish).to.equal(false);
    }
  });
});
