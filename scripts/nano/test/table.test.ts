import { expect } from "chai";
import { naturalPrompts } from "../eval/natural-prompts.js";
import {
  type Column,
  evaluationTable,
  isKey,
  isTempo,
  type Measurement,
  type PromptFacts,
} from "../eval/table.js";
import { genres } from "../genres/index.js";

const asked: PromptFacts[] = [
  { bpm: 100, keyScale: "C major", genre: "jazz" },
  { bpm: 140, keyScale: "A minor", genre: "rock" },
  { bpm: null, keyScale: null, genre: null },
];

const measured = (values: Partial<Measurement> = {}): Measurement => ({
  ...{ seconds: 20, tempo: 100, beatPeak: 0.5, key: "C major", harmonicChange: 0.05, lowFlatness: 0.1 },
  ...{ recurrence: 0.2, melody: 0.3, genre: "jazz", loudness: -18, silence: 0, clipped: 0, ...values },
});

const column = (measurements: Measurement[]): Column => ({
  ...{
    title: "model",
    asked,
    measurements,
    computeSeconds: [],
    returns: [true, true, false, true],
    seedDistances: [],
    reconstructionDistances: [4, 6],
  },
});

describe("table of carillon-nano's evaluation", () => {
  const rowsOf = (column: Column): string[] => evaluationTable([column]).split("\n");
  const cellOf = (rows: string[], title: string): string | undefined =>
    rows
      .find((line) => line.startsWith(`| ${title}`))
      ?.split(" | ")[1]
      ?.replace(" |", "");

  it("counts what does as asked, beside what does as another prompt asked", () => {
    const rows = rowsOf(column([measured(), measured({ genre: "rock" }), measured({ tempo: 70 })]));
    expect(cellOf(rows, "tempo within")).to.equal("50 %");
    expect(cellOf(rows, "key exact")).to.equal("50 %");
    expect(cellOf(rows, "genre")).to.equal("100 %");
    expect(cellOf(rows, "second chorus nearer")).to.equal("75 %");
    expect(cellOf(rows, "frames with a stepwise melody")).to.equal("30 %");
    const chance = rows.filter((line) => line.includes("(chance)")).map((line) => line.split(" | ")[1]);
    expect(chance).to.deep.equal(["50 % |", "50 % |", "0 % |"]);
  });

  it("averages what is measured, and scales what songs took to half a minute", () => {
    const measurements = [
      measured({ lowFlatness: null }),
      measured({ lowFlatness: 0.3, beatPeak: 0.7, seconds: 60 }),
    ];
    const rows = rowsOf({ ...column(measurements), computeSeconds: [4, 20] });
    expect(cellOf(rows, "flatness")).to.equal("0.300");
    expect(cellOf(rows, "beat-spectrum")).to.equal("0.60");
    expect(cellOf(rows, "distance of VAE")).to.equal("5.0 dB");
    expect(cellOf(rows, "time for 30 s")).to.equal("10.0 s");
  });

  it("shows a column that was not measured as empty", () => {
    const rows = rowsOf(column([]));
    expect(cellOf(rows, "key exact")).to.equal("-");
    expect(cellOf(rows, "loudness")).to.equal("-");
  });

  it("asks for what can be judged", () => {
    const names = genres.map(({ name }) => name);
    for (const { caption, keyScale, genre } of naturalPrompts) {
      if (keyScale !== null) expect(isKey(keyScale, keyScale), caption).to.equal(true);
      if (genre !== null) expect(names, caption).to.include(genre);
    }
    expect(new Set(naturalPrompts.map(({ caption }) => caption)).size).to.equal(naturalPrompts.length);
  });
});

describe("verdicts of carillon-nano's evaluation", () => {
  it("accept a tempo within 4 %, also counted at half or twice", () => {
    for (const measured of [100, 103.9, 96.1, 201, 50])
      expect(isTempo(100, measured), `${measured}`).to.equal(true);
    for (const measured of [104.1, 150, 33, 125])
      expect(isTempo(100, measured), `${measured}`).to.equal(false);
  });

  it("compare keys by sound, not by spelling", () => {
    expect(isKey("Db major", "C# major")).to.equal(true);
    expect(isKey("G♯ minor", "G# minor")).to.equal(true);
    expect(isKey("C major", "A minor")).to.equal(false);
    expect(isKey("A minor", null)).to.equal(false);
    expect(() => isKey("H minor", "A minor")).to.throw(RangeError, "H minor");
  });
});
