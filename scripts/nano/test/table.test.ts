import { expect } from "chai";
import type { PieceRecord } from "../dataset/record.js";
import { type Column, evaluationTable, type Measurement } from "../eval/table.js";

const asked = (bpm: number, keyScale: string, genre: string) =>
  ({ bpm, keyScale, genre, durationSeconds: 20 }) as PieceRecord;

const measured = (values: Partial<Measurement>): Measurement => ({
  ...{
    seconds: 20,
    tempo: 100,
    key: "C major",
    genre: "jazz",
    loudness: -18,
    peak: -1,
    silence: 0,
    clipped: 0,
  },
  ...values,
});

const column = (title: string, measurements: Measurement[]): Column => ({
  ...{ title, measurements, computeSeconds: [], seedDistances: [], reconstructionDistances: [4, 6] },
});

describe("table of carillon-nano's evaluation", () => {
  const records = [asked(100, "C major", "jazz"), asked(90, "A minor", "rock")];

  const cellsOf = (table: string, row: string): string[] =>
    (table.split("\n").find((line) => line.startsWith(`| ${row}`)) ?? "").split(" | ").slice(1);

  it("counts right, related and wrong answers apart", () => {
    const table = evaluationTable(records, [
      column("model", [measured({}), measured({ tempo: 180, seconds: 20.5, loudness: -22, clipped: 0.01 })]),
    ]);
    expect(cellsOf(table, "tempo within")).to.deep.equal(["50 % |"]);
    expect(cellsOf(table, "tempo at another")).to.deep.equal(["50 % |"]);
    expect(cellsOf(table, "key exact")).to.deep.equal(["50 % |"]);
    expect(cellsOf(table, "key related")).to.deep.equal(["50 % |"]);
    expect(cellsOf(table, "genre")).to.deep.equal(["50 % |"]);
    expect(cellsOf(table, "duration")).to.deep.equal(["50 % |"]);
    expect(cellsOf(table, "clips")).to.deep.equal(["50 % |"]);
    expect(cellsOf(table, "distance of VAE")).to.deep.equal(["5.0 dB |"]);
  });

  it("scales what songs took to half a minute", () => {
    const slow = { ...column("model", [measured({}), measured({ seconds: 60 })]), computeSeconds: [4, 20] };
    expect(cellsOf(evaluationTable(records, [slow]), "time for 30 s")).to.deep.equal(["10.0 s |"]);
  });

  it("shows a column that was not measured as empty", () => {
    const table = evaluationTable(records, [
      column("model", []),
      column("pieces", [measured({}), measured({})]),
    ]);
    expect(cellsOf(table, "key exact")).to.deep.equal(["-", "50 % |"]);
    expect(cellsOf(table, "loudness")).to.deep.equal(["-", "-18.0 LUFS |"]);
    expect(cellsOf(table, "distance between")).to.deep.equal(["-", "- |"]);
  });
});
