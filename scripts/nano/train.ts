/**
 * Trains carillon-nano from an empty folder, or goes on where an earlier run was cut: data set, its latents,
 * encoder, decoder, audio tokenizer, text encoder, DiT, language model, checkpoint.
 *
 *     node --import tsx scripts/nano/train.ts --data DIR --work DIR --out DIR [--minutes 30] [--device auto]
 */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Command, Option } from "commander";
import { unconditionalCodesPrompt } from "../../src/engine/prompts.js";
import { Tokenizer } from "../../src/engine/tokenizer.js";
import { writeModelFolder } from "./training/model-folder.js";
import { type ModelSizeName, modelSizes } from "./training/model-size.js";
import { optionsOf, runStage, type StageName, type StageOptions, stageNames } from "./training/stages.js";

interface Options {
  data: string;
  work: string;
  out: string;
  size: ModelSizeName;
  stages: StageName[];
  pieces: number;
  duration?: number;
  minutes?: number;
  steps?: number;
  device: string;
  seed: number;
  from?: string;
  program: string;
}

/** Of a stage's minutes: at their end the learning rate falls to 0, and held-out losses with it. */
const cooldownShare = 0.3;
/** Pieces that are described only, of a new data set, for every one that is rendered. */
const wordsPerPiece = 12;

const root = fileURLToPath(new URL("../..", import.meta.url));
const options = new Command()
  .option("--data <directory>", "the data set; made where it has no pieces yet", ".cache/carillon/nano/data")
  .option("--work <directory>", "states of the stages, latents, logs", ".cache/carillon/nano/train")
  .requiredOption("--out <directory>", "the checkpoint folder to write")
  .addOption(new Option("--size <name>", "the model").choices(Object.keys(modelSizes)).default("nano"))
  .option("--stages <names>", "comma-separated, in this order", parseStages, [...stageNames])
  .option("--pieces <count>", "of a new data set", Number, 460)
  .option("--duration <seconds>", "of every piece of a new data set, for smoke runs", Number)
  .option("--minutes <count>", "budget of every stage that trains", Number)
  .option("--steps <count>", "steps of every stage that trains, in all", Number)
  .option("--device <name>", "auto, cpu, cuda", "auto")
  .option("--seed <number>", "of weights and batches", Number, 1)
  .option("--from <directory>", "a trained checkpoint that stages without a state start from")
  .option("--program <path>", "", join(root, "build/nano/carillon-pretrain"))
  .parse()
  .opts<Options>();

if (options.minutes === undefined && options.steps === undefined) options.minutes = 30;
const model = join(options.work, "model");
mkdirSync(options.work, { recursive: true });
if (!existsSync(join(options.data, "pieces.jsonl"))) makeData(options);
await writeModelFolder(model, modelSizes[options.size], join(options.data, "tokenizer"));
const stageOptions = await commonOptions();
for (const stage of options.stages) {
  await runStage(options.program, stage, { ...stageOptions, ...optionsOf(options.size, stage) });
}

async function commonOptions(): Promise<StageOptions> {
  const { data, work, out, device, seed, minutes, steps, from } = options;
  const tokenizer = await Tokenizer.load(join(model, "lm"));
  const unconditional = await tokenizer.encode(unconditionalCodesPrompt(""));
  return {
    ...{ data, work, out, model, device, seed },
    "unconditional-prompt": unconditional.join(","),
    ...(minutes === undefined ? {} : { minutes, "cooldown-minutes": cooldownShare * minutes }),
    ...(steps === undefined ? {} : { steps }),
    ...(from === undefined ? {} : { from }),
  };
}

function makeData({ data, pieces, duration }: Options): void {
  const words = ["--pieces", String(pieces), "--out", data, "--stem-share", "0.4"];
  words.push("--words", String(wordsPerPiece * pieces));
  if (duration !== undefined) words.push("--duration", String(duration));
  const script = join(root, "scripts/nano/make-data.ts");
  const { status } = spawnSync(process.execPath, ["--import", "tsx", script, ...words], { stdio: "inherit" });
  if (status !== 0) throw new Error(`making the data set ended with exit code ${status}`);
}

function parseStages(text: string): StageName[] {
  const asked = text.split(",");
  const unknown = asked.filter((name) => !stageNames.some((stage) => stage === name));
  if (unknown.length > 0)
    throw new Error(`unknown stages: ${unknown.join(", ")}; use ${stageNames.join(", ")}`);
  return stageNames.filter((stage) => asked.includes(stage));
}
