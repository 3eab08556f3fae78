import { expect } from "chai";
import { type Candidate, candidates, taskTable } from "../eval/task-table.js";

/** The model's values, and an empty trial for everyone else. */
const trial = (model: Record<string, number>) => ({
  ...(Object.fromEntries(candidates.map((candidate) => [candidate, {}])) as Record<
    Candidate,
    Record<string, number>
  >),
  model,
});

const modelCell = (table: string, row: string): string | undefined =>
  table
    .split("\n")
    .find((line) => line.startsWith(`| ${row}`))
    ?.split(" | ")[1];

describe("table of carillon-nano's tasks", () => {
  it("takes the mean of the trials that a row is of", () => {
    const table = taskTable([
      trial({ "extract raise": 9, "extract raised": 1 }),
      trial({ "extract raise": 2, "extract raised": 0 }),
      trial({ "cover harmony": 0.756 }),
    ]);
    expect(modelCell(table, "extract: wanted stem")).to.equal("5.5 dB");
    expect(modelCell(table, "extract: raised by 6 dB")).to.equal("50 %");
    expect(modelCell(table, "cover: chroma")).to.equal("0.76");
    expect(modelCell(table, "lego: energy")).to.equal("-");
  });
});
