/**
 * Trains carillon-nano from an empty folder, or goes on where an earlier run was cut: data set, the one file that training
 * reads, and the stages of training/train.py, whose options may follow `--`.
 *
 *     node --import tsx scripts/nano/train.ts --data DIR --work DIR --out DIR [-- --minutes 30 --stages dit,export]
 */
import { spawnSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Command, Option } from "commander";
import { runPython } from "./python.js";
import { type ModelSizeName, modelSizes, tokenizerFiles, writeModelFolder } from "./training/model-folder.js";

interface Options {
  data: string;
  work: string;
  out: string;
  size: ModelSizeName;
  pieces: number;
  duration?: number;
  audioShare: string;
  from?: string;
}

/** Pieces that are described only, of a new data set, for every one that is rendered. */
const wordsPerPiece = 12;

const root = fileURLToPath(new URL("../..", import.meta.url));
const command = new Command()
  .option("--data <directory>", "the data set; made where it has no pieces yet", ".cache/carillon/nano/data")
  .option("--work <directory>", "data.pt, states of the stages, logs", ".cache/carillon/nano/train")
  .requiredOption("--out <directory>", "the checkpoint folder to write")
  .addOption(new Option("--size <name>", "the model").choices(Object.keys(modelSizes)).default("nano"))
  .option("--pieces <count>", "of a new data set", Number, 460)
  .option("--duration <seconds>", "of every piece of a new data set, for smoke runs", Number)
  .option("--audio-share <share>", "0 .. 1: of the pieces, those whose audio is packed too", "1")
  .option(
    "--from <checkpoint>",
    "whose latents are packed, and whose weights stages without a state begin with",
  )
  .argument("[options...]", "of training/train.py, after --")
  .parse();
const options = command.opts<Options>();

const index = join(options.data, "pieces.jsonl");
const packed = join(options.work, "data.pt");
mkdirSync(options.work, { recursive: true });
if (!existsSync(index)) makeData(options);
if (!existsSync(packed) || statSync(packed).mtimeMs < statSync(index).mtimeMs) await pack(options);
runPython("training", "train.py", [
  ...["--pack", packed, "--work", options.work, "--out", options.out, ...startFrom(options)],
  ...command.args,
]);

async function pack(options: Options): Promise<void> {
  const model = join(options.work, "model");
  await writeModelFolder(model, modelSizes[options.size], join(options.data, "tokenizer"));
  const places = ["--data", options.data, "--model", model, "--out", packed];
  const choices = ["--audio-share", options.audioShare, ...startFrom(options)];
  runPython("training", "pack.py", [...places, ...choices]);
}

function startFrom({ from }: Options): string[] {
  return from === undefined ? [] : ["--from", from];
}

function makeData({ data, pieces, duration, from }: Options): void {
  if (from !== undefined) useTokenizerOf(from, join(data, "tokenizer"));
  const words = ["--pieces", String(pieces), "--out", data, "--stem-share", "0.4"];
  words.push("--words", String(wordsPerPiece * pieces));
  if (duration !== undefined) words.push("--duration", String(duration));
  const script = join(root, "scripts/nano/make-data.ts");
  const { status } = spawnSync(process.execPath, ["--import", "tsx", script, ...words], { stdio: "inherit" });
  if (status !== 0) throw new Error(`making the data set ended with exit code ${status}`);
}

/** The checkpoint's weights know no other token ids. */
function useTokenizerOf(checkpoint: string, directory: string): void {
  mkdirSync(directory, { recursive: true });
  for (const file of tokenizerFiles)
    copyFileSync(join(checkpoint, "text_encoder", file), join(directory, file));
}
