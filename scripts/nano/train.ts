/**
 * npm run train:nano: makes the data set, then trains carillon-nano through all stages. Resumes an
 * interrupted run. All files are in the cache. One instance runs at a time, at idle priority and within 6 GiB
 * of memory.
 *
 *     npm run train:nano [-- --threads 2]
 *     npm run train:nano -- --status | --stop | --export DIR
 */
import { execFileSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { Command } from "commander";
import { unconditionalCodesPrompt } from "../../src/engine/prompts.js";
import { Tokenizer } from "../../src/engine/tokenizer.js";
import { cacheRoot } from "../setup/run.mjs";
import { dataVersion, shippedModel } from "./dataset/data-set.js";
import { heldOutFolder } from "./eval/held-out.js";
import { genres } from "./genres/index.js";
import { pythonEnvironment } from "./python.js";
import { lockTraining, type Program, readStatus, Supervisor, statusLine } from "./supervisor.js";

interface Options {
  cache: string;
  status?: boolean;
  stop?: boolean;
  export?: string;
  threads: number;
  evaluateHours: number;
  shards: number;
  codeShards: number;
  plannerConfig?: string;
  smoke?: boolean;
}

/** Share of the pieces whose stems are kept, to train tasks on single tracks. */
const stemShare = 0.1;
/** Share of the pieces whose audio is kept, to train the decoder. */
const audioShare = 0.08;

const options = new Command()
  .option("--cache <directory>", "data set, states, logs", join(cacheRoot, "nano", "train"))
  .option("--status", "print the state of the run")
  .option("--stop", "stop the run")
  .option("--export <directory>", "write a checkpoint of the states so far")
  .option("--threads <count>", "2 for a second thread while the machine is otherwise idle", Number, 1)
  .option("--evaluate-hours <hours>", "training between two evaluations; 0 for none", Number, 10)
  .option("--shards <count>", "shards of the data set", Number, 46)
  .option(
    "--code-shards <count>",
    "further shards, of which only audio codes are kept, for the planner",
    Number,
    484,
  )
  .option(
    "--planner-config <file>",
    "config of a language model of another size, which starts from random weights",
  )
  .option("--smoke", "shards of seven short pieces, one step a stage, normal priority")
  .parse()
  .opts<Options>();

const allShards = options.shards + options.codeShards;
const shardPieces = options.smoke ? 7 : 88;
const pieceFlags = options.smoke ? { duration: 6 } : {};
const stageFlags = options.smoke ? { steps: 1, "batch-share": 0.1 } : {};
const cache = resolve(options.cache);
const [data, work] = [join(cache, "data"), join(cache, "work")];

if (options.status) {
  console.log(statusLine(readStatus(cache)));
} else if (options.stop) {
  await stop();
} else if (options.export !== undefined) {
  const { command, parameters, env } = training("export", resolve(options.export));
  execFileSync(command, parameters, { stdio: "inherit", env });
} else {
  await trainToTheEnd();
}

async function trainToTheEnd(): Promise<void> {
  lockTraining(cache);
  checkRecipe();
  const supervisor = new Supervisor(cache, { isIdle: !options.smoke });
  try {
    await writeTrainingFile();
    for (let shard = 0; shard < allShards; shard++) await makeShard(supervisor, shard);
    await trainStages(supervisor);
    await supervisor.run(training("export", join(cache, "checkpoint")));
    if (options.evaluateHours > 0) await evaluate(supervisor, "end");
    supervisor.end("finished");
  } catch (error) {
    supervisor.end("failed");
    throw error;
  }
}

/** @throws Error if the data in the cache was made with other code or options, so that new shards would not match */
function checkRecipe(): void {
  const path = join(cache, "data-version.txt");
  const version = options.smoke ? `${dataVersion} smoke` : dataVersion;
  if (!existsSync(path)) writeFileSync(path, version);
  const found = readFileSync(path, "utf8");
  if (found === version) return;
  throw new Error(
    `the data in ${cache} has version ${found}, but this code and these options make version ${version}: ` +
      "delete the folder to start again, or pass the earlier options or another --cache",
  );
}

/**
 * Writes training.json: the order of the genres and the unconditional prompt, which train.py cannot derive
 * from shards.
 */
async function writeTrainingFile(): Promise<void> {
  const tokenizer = await Tokenizer.load(join(shippedModel, "lm"));
  const unconditionalPrompt = [...(await tokenizer.encode(unconditionalCodesPrompt("")))];
  const training = { genres: genres.map(({ name }) => name), unconditionalPrompt };
  mkdirSync(data, { recursive: true });
  writeFileSync(join(data, "training.json"), JSON.stringify(training));
}

/**
 * Trains all stages, and evaluates after every `evaluateHours` of training. Repeats an interrupted
 * evaluation.
 */
async function trainStages(supervisor: Supervisor): Promise<void> {
  const every = options.evaluateHours > 0 ? options.evaluateHours : Number.POSITIVE_INFINITY;
  for (let isDone = false; !isDone; ) {
    const times = Math.floor(supervisor.trainedHours / every);
    if (times > 0) await evaluate(supervisor, `hour-${times * every}`);
    isDone = await supervisor.run(training("decoder,dit,guidance,lm"), (times + 1) * every);
  }
}

/**
 * Exports a checkpoint, evaluates it and writes the table to `evaluations/`. Skips an existing table. After a
 * failure the table contains the error, and training continues.
 */
async function evaluate(supervisor: Supervisor, name: string): Promise<void> {
  const evaluations = join(cache, "evaluations");
  const table = join(evaluations, `${name}.md`);
  if (existsSync(table)) return;
  mkdirSync(evaluations, { recursive: true });
  const recordings = join(evaluations, "recordings");
  const checkpoint = join(evaluations, "checkpoint");
  try {
    await supervisor.run(training("export", checkpoint));
    await supervisor.run({
      ...node("evaluation", "eval.ts", { out: recordings }),
      env: { ...process.env, SVC_CONFIG_PATH: checkpoint, SVC_LM_MODEL_PATH: join(checkpoint, "lm") },
    });
    copyFileSync(join(recordings, "table.md"), table);
  } catch (error) {
    console.error(error);
    writeFileSync(table, `${String(error)}\n`);
  }
  for (const made of ["songs", "reconstructions"]) {
    rmSync(join(heldOutFolder(recordings), made), { recursive: true, force: true });
  }
}

/** Makes one shard of the data set: renders its pieces, packs them and deletes the rendered files. */
async function makeShard(supervisor: Supervisor, shard: number): Promise<void> {
  const name = `shard-${String(shard).padStart(4, "0")}`;
  if (existsSync(join(data, `${name}.pt`))) return;
  const pieces = join(cache, name);
  const seeds = { pieces: shardPieces, "seed-start": shard * shardPieces, of: allShards * shardPieces };
  const keepsCodesOnly = shard >= options.shards;
  const kept = keepsCodesOnly ? { "stem-share": 0, "training-only": "" } : { "stem-share": stemShare };
  const how = { processes: options.threads, ...kept, ...seeds, ...pieceFlags };
  await supervisor.run(node("render", "make-data.ts", { out: pieces, ...how }));
  const places = { pieces, data, start: shippedModel };
  const packed = keepsCodesOnly ? { "codes-only": "" } : { "audio-share": audioShare };
  await supervisor.run(python("pack.py", flags({ ...places, shard, ...packed })));
  rmSync(pieces, { recursive: true });
}

/** @param out folder for the exported checkpoint */
function training(stages: string, out?: string): Program {
  const plannerConfig = options.plannerConfig && resolve(options.plannerConfig);
  const places = { data, start: shippedModel, work, out, "planner-config": plannerConfig };
  return python("train.py", flags({ ...places, stages, threads: options.threads, ...stageFlags }));
}

function python(program: string, parameters: string[]): Program {
  const { env, directory } = pythonEnvironment("training");
  return { stage: program, command: "python3", parameters: [join(directory, program), ...parameters], env };
}

function node(stage: string, program: string, values: Record<string, string | number | undefined>): Program {
  const script = fileURLToPath(new URL(program, import.meta.url));
  const parameters = ["--import", "tsx", script, ...flags(values)];
  return { stage, command: process.execPath, parameters, env: process.env };
}

/** Arguments of a program. An empty text is an option without a value. */
function flags(values: Record<string, string | number | undefined>): string[] {
  const given = Object.entries(values).filter(([, value]) => value !== undefined);
  return given.flatMap(([name, value]) => (value === "" ? [`--${name}`] : [`--${name}`, `${value}`]));
}

async function stop(): Promise<void> {
  const status = readStatus(cache);
  if (status?.state === "running") process.kill(status.pid, "SIGTERM");
  while (readStatus(cache)?.state === "running") await delay(20);
  console.log(statusLine(readStatus(cache)));
}
