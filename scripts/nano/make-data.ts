/**
 * Composes and renders pieces of consecutive seeds into a folder, one shard of the data set. Pieces that are there already
 * stay, so that a run that was cut resumes.
 *
 *     node --import tsx scripts/nano/make-data.ts --pieces 88 --seed-start 0 --out DIR [--stem-share 0.1]
 */
import { Command } from "commander";
import { compose } from "./compose/compose.js";
import { DataSet, loadTokenizer } from "./dataset/data-set.js";
import { Synthesiser } from "./render/synthesiser.js";

interface Options {
  pieces: number;
  out: string;
  seedStart: number;
  stemShare: number;
  duration?: number;
}

const { pieces, out, seedStart, stemShare, duration } = new Command()
  .requiredOption("--pieces <count>", "number of seeds", Number)
  .requiredOption("--out <directory>", "folder of the pieces")
  .option("--seed-start <seed>", "the first seed", Number, 0)
  .option("--stem-share <share>", "0 .. 1: share of the pieces that keep their stems", Number, 1)
  .option("--duration <seconds>", "length of every piece, for smoke runs", Number)
  .parse()
  .opts<Options>();

const dataSet = new DataSet(out);
const tokenizer = await loadTokenizer();
const synthesiser = new Synthesiser();
for (let seed = seedStart; seed < seedStart + pieces; seed++) {
  if (dataSet.has(seed)) continue;
  const piece = compose(seed, duration);
  await dataSet.add(piece, synthesiser, tokenizer, stemShare);
  console.log(JSON.stringify({ stage: "render", step: seed + 1, genre: piece.genre }));
}
dataSet.writeIndex();
