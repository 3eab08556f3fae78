import { expect } from "chai";
import fc from "fast-check";
import { LANGUAGES } from "../../src/engine/metadata.js";
import { parseOutput, parseThinkFields, serializeThinkFields } from "../../src/engine/think-block.js";

/** Captions, each with the YAML that PyYAML writes in the reference implementation. */
const captions: [input: string, output: string][] = [
  ["plain words", "plain words"],
  [`${"x".repeat(71)} yy zz`, `${"x".repeat(71)} yy\n  zz`],
  [`${"x".repeat(72)} yy zz`, `${"x".repeat(72)}\n  yy zz`],
  [`a: ${"x".repeat(67)} yy zz`, `'a: ${"x".repeat(67)} yy\n  zz'`],
  [`a: ${"x".repeat(68)} yy zz`, `'a: ${"x".repeat(68)}\n  yy zz'`],
  [`${"w".repeat(40)}  ${"v".repeat(45)} t u`, `${"w".repeat(40)}  ${"v".repeat(45)}\n  t u`],
  [`${"wörter ".repeat(12)}ende`, `${"wörter ".repeat(11).trim()}\n  wörter ende`],
  ["Rock #1 hit", "'Rock #1 hit'"],
  ["'quoted' start", "'''quoted'' start'"],
  ["it's: x", "'it''s: x'"],
  ["line\nbreak", "line break"],
  ["tab\there", "tab here"],
  ["a \ud800 b", "a   b"],
];
const quoted = [
  "a: b",
  "a:",
  "- dash start",
  "? q",
  ": x",
  "[Verse] x",
  "{x",
  "%x",
  "@x",
  "!x",
  "&x",
  "*x",
  ">x",
  ", x",
];
const quotedValues = [
  "yes",
  "No",
  "null",
  "~",
  "1.5",
  "2024-01-01",
  "12:30",
  "0x1F",
  "1_000",
  "+5",
  "-5",
  "=",
  "<<",
  "",
];
const plain = [
  "a :b",
  "a#b",
  "it's fine",
  "-dash",
  ":x",
  "100% live",
  "<b>",
  "ends.",
  "é",
  "🎹",
  "a\u200bb",
  "a\u00a0b",
];
const plainValues = ["y", "n", "08", "1e5", "true story", "3/4", "100"];

describe("reading and writing YAML in think blocks", () => {
  it("writes captions as PyYAML does", () => {
    for (const [input, output] of captions) {
      expect(serializeThinkFields({ caption: input })).to.equal(`caption: ${output}`);
    }
    for (const text of [...quoted, ...quotedValues]) {
      expect(serializeThinkFields({ caption: text })).to.equal(`caption: '${text}'`);
    }
    for (const text of [...plain, ...plainValues]) {
      expect(serializeThinkFields({ caption: text })).to.equal(`caption: ${text}`);
    }
  });

  it("sorts the keys and omits absent fields", () => {
    const fields = { timesignature: "6", language: "no", bpm: 90, keyscale: "B♭ major", caption: undefined };
    expect(serializeThinkFields(fields)).to.equal(
      "bpm: 90\nkeyscale: B♭ major\nlanguage: 'no'\ntimesignature: 6",
    );
    expect(serializeThinkFields({})).to.equal("");
  });

  it("parses the YAML that it wrote to the same fields", () => {
    const word = fc.oneof(
      fc.string({ unit: "grapheme", minLength: 1 }),
      fc.constantFrom("a:", "#1", "- x", "'", '"', "{"),
    );
    const caption = fc
      .array(word, { minLength: 1, maxLength: 40 })
      .map((words) => singleSpaced(words.join(" ")));
    const fields = fc.record({
      bpm: fc.integer({ min: 30, max: 300 }),
      caption: caption.filter((text) => text !== ""),
      duration: fc.integer({ min: 10, max: 600 }),
      keyscale: fc.constantFrom("F# minor", "B♭ major", "C major"),
      language: fc.constantFrom(...LANGUAGES),
      timesignature: fc.constantFrom("2", "3", "4", "6"),
    });
    fc.assert(
      fc.property(fields, (original) => {
        expect(parseThinkFields(serializeThinkFields(original))).to.deep.equal(original);
      }),
      { numRuns: 2000 },
    );
  });
});

/** Collapses whitespace and control characters, like the caption parser. */
function singleSpaced(text: string): string {
  return text.replace(/[\s\p{C}]+/gu, " ").trim();
}

/** Parses the fields of a text, and removes undefined values. */
function definedFields(text: string): object {
  return JSON.parse(JSON.stringify(parseOutput(text).fields));
}

describe("language model output", () => {
  it("parses a think block, and the lyrics after the block", () => {
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

  it("parses a think block without an end tag", () => {
    expect(definedFields("<think>\nbpm: 90\ntimesignature: 3\n")).to.deep.equal({
      bpm: 90,
      timesignature: "3",
    });
    expect(definedFields("bpm: 90\n<|im_end|>")).to.deep.equal({ bpm: 90 });
    expect(parseOutput("bpm: 90\n").lyrics).to.equal(null);
    expect(parseOutput("bpm: 90\n</think>\nbpm: 91")).to.deep.include({ lyrics: "bpm: 91" });
    expect(definedFields("bpm: 90\n</think>\nbpm: 91")).to.deep.equal({ bpm: 90 });
  });

  it("parses fields that have no tag or another tag than <think>", () => {
    expect(definedFields("bpm: 77\n<|audio_code_3|>bpm: 99")).to.deep.equal({ bpm: 77 });
    expect(definedFields("<reasoning>\nbpm: 77\n</reasoning>bpm: 99")).to.deep.equal({ bpm: 77 });
  });

  it("tolerates other letter case and spacing, skips unknown fields, and takes the last of repeated fields", () => {
    expect(
      definedFields("BPM : 90\r\nKeyScale: A minor\r\nmood: sad\r\nnonsense\r\nbpm: 91\r\n"),
    ).to.deep.equal({
      bpm: 91,
      keyscale: "A minor",
    });
    expect(definedFields("caption: duet: two voices\ntimesignature: 6/8")).to.deep.equal({
      caption: "duet: two voices",
      timesignature: "6",
    });
  });

  it("removes YAML quotes from values", () => {
    expect(definedFields("caption: 'it''s: x\n\n  y'")).to.deep.equal({ caption: "it's: x y" });
    expect(definedFields('caption: "tab\\there \\"now\\" \\xe9"')).to.deep.equal({
      caption: 'tab here "now" é',
    });
    expect(definedFields("language: 'no'")).to.deep.equal({ language: "no" });
  });

  it("drops values out of range", () => {
    expect(
      definedFields("bpm: 1200\nduration: 5\ntimesignature: 7\nlanguage: xx\nkeyscale: N/A\ncaption:\n"),
    ).to.deep.equal({});
    expect(definedFields("bpm: ninety\nduration: 30.5")).to.deep.equal({});
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

  it("never throws on random text", () => {
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
