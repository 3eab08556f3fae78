/**
 * Composes and renders the data set of carillon-nano; pieces that are there already are left alone.
 *
 *     node --import tsx scripts/nano/make-data.ts --pieces 400 --out DIR [--seed-start N] [--workers N]
 *
 * Words without sound are cheap, and of those there are many more: `--words` of them, from seeds far from the pieces'.
 */
import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { Command } from "commander";
import { Tokenizer } from "../../src/engine/tokenizer.js";
import { compose } from "./compose/compose.js";
import { DataSet, ensureTokenizer } from "./dataset/data-set.js";
import { genres } from "./genres/index.js";
import { Synthesiser } from "./render/synthesiser.js";

interface Options {
  pieces: number;
  out: string;
  seedStart: number;
  workers: number;
  stemShare: number;
  duration?: number;
  words: number;
  only?: number;
}

const firstSeedOfWords = 1_000_000;

/** The index is written anew after so many pieces, so that training can begin early. */
const indexEvery = 20;

const options = new Command()
  .requiredOption("--pieces <count>", "how many seeds", Number)
  .option("--out <directory>", "the data set", ".cache/carillon/nano/data")
  .option("--seed-start <seed>", "the first seed", Number, 0)
  .option("--workers <count>", "processes", Number, 1)
  .option("--stem-share <share>", "0 .. 1: how many of the pieces keep their stems", Number, 1)
  .option("--duration <seconds>", "length of every piece, for smoke runs", Number)
  .option("--words <count>", "pieces that are described and not rendered", Number, 8000)
  .option("--only <worker>", "render every --workers-th seed from this one on, and no index", Number)
  .parse()
  .opts<Options>();

if (options.only === undefined) await makeWords(options);
if (options.only === undefined && options.workers > 1) {
  ensureTokenizer(options.out);
  await Promise.all(Array.from({ length: options.workers }, (_, worker) => runWorker(worker)));
  new DataSet(options.out).writeIndex();
} else {
  await makePieces(options);
}

async function makeWords({ out, words }: Options): Promise<void> {
  const dataSet = new DataSet(out);
  dataSet.writeGenres(genres.map(({ name }) => name));
  if (dataSet.hasWords()) return;
  const tokenizer = await Tokenizer.load(ensureTokenizer(out));
  const seeds = Array.from({ length: words }, (_, index) => firstSeedOfWords + index);
  await dataSet.writeWords(
    seeds.map((seed) => compose(seed)),
    tokenizer,
  );
}

async function runWorker(worker: number): Promise<void> {
  const script = fileURLToPath(import.meta.url);
  const child = fork(script, [...process.argv.slice(2), "--only", String(worker)], {
    execArgv: process.execArgv,
  });
  const [code] = await once(child, "exit");
  if (code !== 0) throw new Error(`worker ${worker} ended with exit code ${code}`);
}

async function makePieces({
  pieces,
  out,
  seedStart,
  workers,
  stemShare,
  duration,
  only,
}: Options): Promise<void> {
  const dataSet = new DataSet(out);
  const tokenizer = await Tokenizer.load(ensureTokenizer(out));
  const synthesiser = new Synthesiser();
  const seeds = Array.from({ length: pieces }, (_, index) => seedStart + index).filter(
    (seed, index) => (only === undefined || index % workers === only) && !dataSet.has(seed),
  );
  for (const [index, seed] of seeds.entries()) {
    const piece = compose(seed, duration === undefined ? {} : { durationSeconds: duration });
    await dataSet.add(piece, synthesiser, tokenizer, stemShare);
    if (only === undefined && (index + 1) % indexEvery === 0) dataSet.writeIndex();
    console.log(
      `${index + 1}/${seeds.length} ${piece.genre}, ${piece.bpm} bpm, ${piece.key.name}, ${piece.durationSeconds} s`,
    );
  }
  if (only === undefined) dataSet.writeIndex();
}
