/** Which tokens are lyrics, and the lines that these and their times make. */
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { encodeLyricPrompt } from "../../src/engine/conditioning.js";
import { lyricSpan, sungLines } from "../../src/engine/lyric-times.js";
import { Tokenizer } from "../../src/engine/tokenizer.js";
import { plainSong } from "./plain-song.js";

describe("the times of lyrics", () => {
  let tokenizer: Tokenizer;
  before(async () => {
    tokenizer = await Tokenizer.load(
      fileURLToPath(new URL("../../models/carillon-nano/text_encoder", import.meta.url)),
    );
  });
  after(() => tokenizer.close());

  const conditions = (lyrics: string) => ({ ...plainSong, instruction: "", lyrics, language: "de" });

  /** The lines, with the number of the token that each begins with for its time. */
  async function linesOf(lyrics: string) {
    const prompt = await encodeLyricPrompt(tokenizer, conditions(lyrics));
    const span = await lyricSpan(tokenizer, conditions(lyrics), prompt);
    if (span === null) return null;
    const words = prompt.subarray(span.first, span.first + span.count);
    return { words, lines: sungLines(tokenizer, words, Float32Array.from(words.keys())) };
  }

  it("are those of its lines, each at its first token, without section tags and blank lines", async () => {
    const lyrics = "[Verse 1]\nÜber den Dächern 🎵\n\n[Chorus]\nder Mond, er singt\nund schweigt";
    const { words, lines } = (await linesOf(lyrics)) ?? expect.fail("no lyrics");
    expect(tokenizer.decode(words)).to.equal(lyrics);
    expect(lines.map(({ text }) => text)).to.deep.equal([
      "Über den Dächern 🎵",
      "der Mond, er singt",
      "und schweigt",
    ]);
    for (const { seconds: first, text } of lines) {
      expect(tokenizer.decode(words.subarray(first))).to.match(new RegExp(`^${text}`));
    }
  });

  it("are none where nobody sings", async () => {
    for (const lyrics of ["", "  \n", "[Instrumental]", "[inst]"])
      expect(await linesOf(lyrics), lyrics).to.equal(null);
  });
});
