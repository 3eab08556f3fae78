/**
 * Composes and renders pieces of consecutive seeds into a folder, one shard of the data set. Skips existing
 * pieces, so that an interrupted run resumes.
 *
 *     node --import tsx scripts/nano/make-data.ts --pieces 88 --seed-start 0 --out DIR [--stem-share 0.1] [--training-only]
 *                                                 [--processes 2]
 */
import { fork } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Command } from "commander";
import { makePieces } from "./dataset/data-set.js";
import { isHeldOut } from "./dataset/record.js";

const { pieces, of, out, seedStart, trainingOnly, stemShare, duration, processes, part } = new Command()
  .requiredOption("--pieces <count>", "number of seeds", Number)
  .option("--of <count>", "seeds of the whole data set, to show progress", Number)
  .requiredOption("--out <directory>", "folder of the pieces")
  .option("--seed-start <seed>", "the first seed", Number, 0)
  .option("--training-only", "skip seeds of held-out pieces")
  .option("--stem-share <share>", "0 .. 1: share of the pieces that keep their stems", Number, 1)
  .option("--duration <seconds>", "length of every piece, for smoke runs", Number)
  .option("--processes <count>", "processes that render", Number, 1)
  .option("--part <index>", "make one part of the pieces, as one of the processes", Number)
  .parse()
  .opts<{
    pieces: number;
    of?: number;
    out: string;
    seedStart: number;
    trainingOnly?: boolean;
    stemShare: number;
    duration?: number;
    processes: number;
    part?: number;
  }>();

const seeds = Array.from({ length: pieces }, (_, index) => seedStart + index).filter(
  (seed, index) => !(trainingOnly && isHeldOut(seed)) && (part === undefined || index % processes === part),
);
if (part === undefined && processes > 1) await Promise.all(Array.from({ length: processes }, makePart));
const steps = of ?? seedStart + pieces;
const start = performance.now();
let made = 0;
const records = await makePieces(out, seeds, {
  ...{ seconds: duration, stemShare },
  onPiece: ({ seed }) => {
    const secondsPerStep = (performance.now() - start) / 1000 / (++made * processes);
    const hoursLeft = (secondsPerStep * (steps - seed - 1)) / 3600;
    console.log(JSON.stringify({ stage: "render", step: seed + 1, steps, secondsPerStep, hoursLeft }));
  },
});
if (part === undefined)
  writeFileSync(join(out, "pieces.jsonl"), records.map((record) => `${JSON.stringify(record)}\n`).join(""));

/** Runs this program for one part of the pieces, which the other parts then skip. */
async function makePart(_: unknown, index: number): Promise<void> {
  const [code] = await once(
    fork(fileURLToPath(import.meta.url), [...process.argv.slice(2), "--part", `${index}`]),
    "exit",
  );
  if (code !== 0) throw new Error(`process ${index} ended with exit code ${code}`);
}
