/**
 * Composes and renders pieces of consecutive seeds into a folder, one shard of the data set. Skips existing
 * pieces, so that an interrupted run resumes.
 *
 *     node --import tsx scripts/nano/make-data.ts --pieces 88 --seed-start 0 --out DIR [--stem-share 0.1] [--training-only]
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { Command } from "commander";
import { makePieces } from "./dataset/data-set.js";
import { isHeldOut } from "./dataset/record.js";

const { pieces, of, out, seedStart, trainingOnly, stemShare, duration } = new Command()
  .requiredOption("--pieces <count>", "number of seeds", Number)
  .option("--of <count>", "seeds of the whole data set, to show progress", Number)
  .requiredOption("--out <directory>", "folder of the pieces")
  .option("--seed-start <seed>", "the first seed", Number, 0)
  .option("--training-only", "skip seeds of held-out pieces")
  .option("--stem-share <share>", "0 .. 1: share of the pieces that keep their stems", Number, 1)
  .option("--duration <seconds>", "length of every piece, for smoke runs", Number)
  .parse()
  .opts<{
    pieces: number;
    of?: number;
    out: string;
    seedStart: number;
    trainingOnly?: boolean;
    stemShare: number;
    duration?: number;
  }>();

const seeds = Array.from({ length: pieces }, (_, index) => seedStart + index).filter(
  (seed) => !(trainingOnly && isHeldOut(seed)),
);
const steps = of ?? seedStart + pieces;
const start = performance.now();
let made = 0;
const records = await makePieces(out, seeds, {
  ...{ seconds: duration, stemShare },
  onPiece: ({ seed }) => {
    const secondsPerStep = (performance.now() - start) / 1000 / ++made;
    const hoursLeft = (secondsPerStep * (steps - seed - 1)) / 3600;
    console.log(JSON.stringify({ stage: "render", step: seed + 1, steps, secondsPerStep, hoursLeft }));
  },
});
writeFileSync(join(out, "pieces.jsonl"), records.map((record) => `${JSON.stringify(record)}\n`).join(""));
