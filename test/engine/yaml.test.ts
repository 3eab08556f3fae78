import { expect } from "chai";
import fc from "fast-check";
import { languages } from "../../src/engine/metadata.js";
import { parseThinkFields, serializeThinkFields } from "../../src/engine/think-block.js";

/** Input and PyYAML's output; the reference's table. */
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

describe("think block YAML", () => {
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

  it("sorts the keys and leaves out what is absent", () => {
    const fields = { timesignature: "6", language: "no", bpm: 90, keyscale: "B♭ major", caption: undefined };
    expect(serializeThinkFields(fields)).to.equal(
      "bpm: 90\nkeyscale: B♭ major\nlanguage: 'no'\ntimesignature: 6",
    );
    expect(serializeThinkFields({})).to.equal("");
  });

  it("is read back as it was", () => {
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
      language: fc.constantFrom(...languages),
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

/** The form that parsed captions have. */
function singleSpaced(text: string): string {
  return text.replace(/[\s\p{C}]+/gu, " ").trim();
}
