import { expect } from "chai";
import fc from "fast-check";
import { parseOutput } from "../../src/engine/think-block.js";

/** The fields that are there. */
function fieldsOf(text: string): object {
  return JSON.parse(JSON.stringify(parseOutput(text).fields));
}

describe("language model output", () => {
  it("reads a think block and lyrics", () => {
    const { fields, lyrics } = parseOutput(
      "<think>\nbpm: 90\ncaption: A calm piece\n  with a long tail.\nduration: 30\nkeyscale: F# minor\n" +
        "language: en\ntimesignature: 4\n</think>\n\n# Lyric\n[Verse]\nHello\n<|im_end|>",
    );
    expect(fields).to.deep.equal({
      bpm: 90,
      caption: "A calm piece with a long tail.",
      duration: 30,
      keyscale: "F# minor",
      language: "en",
      timesignature: "4",
    });
    expect(lyrics).to.equal("[Verse]\nHello");
  });

  it("reads a block that was not closed", () => {
    expect(fieldsOf("<think>\nbpm: 90\ntimesignature: 3\n")).to.deep.equal({ bpm: 90, timesignature: "3" });
    expect(fieldsOf("bpm: 90\n<|im_end|>")).to.deep.equal({ bpm: 90 });
    expect(parseOutput("bpm: 90\n").lyrics).to.equal(null);
    expect(parseOutput("bpm: 90\n</think>\nbpm: 91")).to.deep.include({ lyrics: "bpm: 91" });
    expect(fieldsOf("bpm: 90\n</think>\nbpm: 91")).to.deep.equal({ bpm: 90 });
  });

  it("reads what precedes the codes, and other tags", () => {
    expect(fieldsOf("bpm: 77\n<|audio_code_3|>bpm: 99")).to.deep.equal({ bpm: 77 });
    expect(fieldsOf("<reasoning>\nbpm: 77\n</reasoning>bpm: 99")).to.deep.equal({ bpm: 77 });
  });

  it("tolerates other writings", () => {
    expect(fieldsOf("BPM : 90\r\nKeyScale: A minor\r\nmood: sad\r\nnonsense\r\nbpm: 91\r\n")).to.deep.equal({
      bpm: 91,
      keyscale: "A minor",
    });
    expect(fieldsOf("caption: duet: two voices\ntimesignature: 6/8")).to.deep.equal({
      caption: "duet: two voices",
      timesignature: "6",
    });
  });

  it("undoes quoting", () => {
    expect(fieldsOf("caption: 'it''s: x\n\n  y'")).to.deep.equal({ caption: "it's: x y" });
    expect(fieldsOf('caption: "tab\\there \\"now\\" \\xe9"')).to.deep.equal({ caption: 'tab here "now" é' });
    expect(fieldsOf("language: 'no'")).to.deep.equal({ language: "no" });
  });

  it("drops values that no song has", () => {
    expect(
      fieldsOf("bpm: 1200\nduration: 5\ntimesignature: 7\nlanguage: xx\nkeyscale: N/A\ncaption:\n"),
    ).to.deep.equal({});
    expect(fieldsOf("bpm: ninety\nduration: 30.5")).to.deep.equal({});
  });

  it("finds the lyrics under any heading", () => {
    for (const heading of [
      "",
      "# Lyric\n",
      "# Lyrics\n",
      "# lyric \n",
      "# Languages\nen\n\n# Lyric\n",
      "# Languages\nen\n\n# Lyrics\n",
    ]) {
      expect(parseOutput(`<think>\n</think>\n\n${heading}[Verse]\nLa # Lyric la\n`).lyrics, heading).to.equal(
        "[Verse]\nLa # Lyric la",
      );
    }
    expect(parseOutput("<think>\n</think>\n\n# Lyric\n<|im_end|>").lyrics).to.equal("");
  });

  it("reads anything without failing", () => {
    const piece = fc.constantFrom(
      "<think>",
      "</think>",
      "\n",
      "  ",
      "bpm:",
      "caption:",
      "'",
      '"',
      "\\x4",
      ": ",
      "9",
      "# Lyric",
      "é",
    );
    fc.assert(
      fc.property(fc.array(fc.oneof(piece, fc.string())), (pieces) => {
        expect(parseOutput(pieces.join(""))).to.have.keys("fields", "lyrics");
      }),
    );
  });
});
