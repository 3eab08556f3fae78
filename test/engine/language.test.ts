import { expect } from "chai";
import { detectLanguage, parseQueryHints } from "../../src/engine/language.js";

describe("language detection", () => {
  it("detects languages in concurrent calls, and returns null for a text that is too short", async () => {
    const detected = await Promise.all(
      [
        "[verse] I walk along the river tonight and think of you",
        "[strophe] ich gehe heute Nacht am Fluss entlang und denke an dich",
        "[Instrumental]",
        "je marche le long de la rivière ce soir et je pense à toi",
        "zzqx 1234",
      ].map(detectLanguage),
    );
    expect(detected).to.deep.equal(["en", "de", null, "fr", null]);
  });
});

describe("parseQueryHints", () => {
  it("finds the language that the query asks for", () => {
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

  it("finds whether the query asks for an instrumental song", () => {
    for (const wish of ["an Instrumental march", "pure music for study", "piano solo", "Solo"]) {
      expect(parseQueryHints(wish).instrumental, wish).to.equal(true);
    }
    for (const wish of ["solo artist with a band", "a song about instruments"]) {
      expect(parseQueryHints(wish).instrumental, wish).to.equal(false);
    }
  });
});
