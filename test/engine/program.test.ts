import { fileURLToPath } from "node:url";
import { expect } from "chai";
import type { Segment } from "../../src/engine/addon.js";
import { LANGUAGES } from "../../src/engine/metadata.js";
import { type ThinkProgram, thinkProgram } from "../../src/engine/prompts.js";
import { Tokenizer } from "../../src/engine/tokenizer.js";

const everything: ThinkProgram = {
  forced: {},
  writeCaption: true,
  writeLanguage: true,
  textAfterwards: true,
};

describe("sampling program of a think block", () => {
  let tokenizer: Tokenizer;

  let segments: Segment[];

  before(async () => {
    tokenizer = await Tokenizer.load(fileURLToPath(new URL("fixtures/qwen3", import.meta.url)));
    segments = await thinkProgram(tokenizer, everything);
  });

  /** Converts a program to text: decodes forced tokens, and writes any other segment as `{kind}`. */
  async function outline(program: ThinkProgram): Promise<string> {
    return (await thinkProgram(tokenizer, program))
      .map((segment) => (segment.kind === "tokens" ? tokenizer.decode(segment.ids) : `{${segment.kind}}`))
      .join("");
  }

  function patternOf(field: string): Segment & { kind: "pattern" } {
    const name = segments.findIndex(
      (segment) => segment.kind === "tokens" && tokenizer.decode(segment.ids).endsWith(`${field}:`),
    );
    const pattern = segments[name + 1];
    if (pattern?.kind !== "pattern") throw new Error(`no pattern segment follows the field name ${field}`);
    return pattern;
  }

  /** Whether the pattern of a field matches `text`. The patterns are also valid JavaScript patterns. */
  function accepts(field: string, text: string): boolean {
    return new RegExp(`^(?:${patternOf(field).pattern})$`, "u").test(text);
  }

  it("the program writes the fields in a fixed order", async () => {
    expect(await outline(everything)).to.equal(
      "<think>\nbpm:{pattern}caption:{pattern}duration:{pattern}keyscale:{pattern}language:{pattern}" +
        "timesignature:{pattern}</think>\n\n{text}",
    );
  });

  it("the program forces the values of known fields, and skips fields that are not requested", async () => {
    const program: ThinkProgram = {
      forced: { bpm: 120, keyscale: "G major", timesignature: "6" },
      writeCaption: false,
      writeLanguage: false,
      textAfterwards: false,
    };
    expect(await outline(program)).to.equal(
      "<think>\nbpm: 120\nduration:{pattern}keyscale: G major\ntimesignature: 6\n",
    );
  });

  it("the program encodes forced values with the same tokens as ordinary text", async () => {
    const forced = { bpm: 120, duration: 30, keyscale: "F# minor", language: "yue", timesignature: "4" };
    const [segment, ...rest] = await thinkProgram(tokenizer, {
      ...everything,
      forced,
      writeCaption: false,
      textAfterwards: false,
    });
    expect(rest).to.deep.equal([]);
    expect(segment?.kind === "tokens" && [...segment.ids]).to.deep.equal(
      [
        151667, 198, 65, 5187, 25, 220, 16, 17, 15, 198, 17021, 25, 220, 18, 15, 198, 10563, 2246, 25, 434, 2,
        8922, 198,
      ].concat([11528, 25, 379, 361, 198, 15136, 622, 1568, 25, 220, 19, 198]),
    );
  });

  it("the program allows every valid value of a field, and no other", () => {
    for (let value = 0; value <= 1000; value++) {
      expect(accepts("bpm", ` ${value}\n`), `bpm ${value}`).to.equal(value >= 30 && value <= 300);
      expect(accepts("duration", ` ${value}\n`), `duration ${value}`).to.equal(value >= 10 && value <= 600);
      expect(accepts("timesignature", ` ${value}\n`)).to.equal([2, 3, 4, 6].includes(value));
    }
    for (const language of LANGUAGES) expect(accepts("language", ` ${language}\n`)).to.equal(true);
    for (const key of ["A major", "F# minor", "B♭ major", "C♯ minor", "Eb minor"]) {
      expect(accepts("keyscale", ` ${key}\n`)).to.equal(true);
    }
    for (const [field, text] of [
      ["bpm", " 090\n"],
      ["bpm", "90\n"],
      ["keyscale", " H major\n"],
      ["language", " xx\n"],
    ] as const) {
      expect(accepts(field, text), text).to.equal(false);
    }
  });

  it("the program allows a caption that is folded into several lines", () => {
    expect(accepts("caption", " A calm piece.\n")).to.equal(true);
    expect(accepts("caption", " 'A: calm\n  piece\n  \n  ends'\n")).to.equal(true);
    expect(accepts("caption", " \n")).to.equal(false);
    expect(accepts("caption", " calm")).to.equal(false);
    expect(accepts("caption", " ```code\n")).to.equal(false);
  });

  it("the program decodes the language greedily and samples the other fields", () => {
    expect(patternOf("language").choose).to.equal("greedy");
    expect(patternOf("keyscale").choose).to.equal("sample");
  });
});
