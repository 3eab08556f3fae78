/**
 * Whether the tasks that work on a source do what they are for: every task on held-out pieces with stems.
 *
 *     node --import tsx scripts/nano/check-tasks.ts [--pieces 6]
 *
 * Measures and what they cannot tell: eval/README.md.
 */
import { writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { Command } from "commander";
import { decodeAudio } from "../../src/music/audio/decode.js";
import { cacheRoot } from "../setup/run.mjs";
import { heldOutFolder, heldOutSeeds, noise, renderHeldOut } from "./eval/held-out.js";
import { Singer } from "./eval/songs.js";
import { type TrialValues, taskTable } from "./eval/task-table.js";
import { loadPiece, monoOf, type Trial, trialsOf } from "./eval/task-trials.js";

const pieceSeconds = 20;

const options = new Command()
  .option("--pieces <count>", "held-out pieces", Number, 6)
  .option("--out <directory>", "pieces, songs and the table", join(cacheRoot, "nano", "eval"))
  .parse()
  .opts<{ pieces: number; out: string }>();

const out = resolve(options.out);
const heldOut = heldOutFolder(out);
const directory = join(heldOut, "stems");
const records = await renderHeldOut({
  ...{ directory, seeds: heldOutSeeds(options.pieces), keepsStems: true },
  wishes: { durationSeconds: pieceSeconds },
});
const pieces = records.map((record) => loadPiece(directory, record));
const trials = pieces.flatMap((piece, index) =>
  // The next piece first: every piece is the other of one.
  trialsOf(piece, [...pieces.slice(index + 1), ...pieces.slice(0, index)]),
);
const whiteNoise = monoOf(noise(0, pieceSeconds));

const singer = new Singer(join(heldOut, "songs"));
try {
  const values: TrialValues[] = [];
  for (const trial of trials) {
    values.push(await valuesOf(trial));
    process.stderr.write(`\rtrial ${values.length} of ${trials.length} `);
  }
  process.stderr.write("\n");
  const table = taskTable(values);
  writeFileSync(join(out, "tasks.md"), `${table}\n`);
  console.log(table);
} finally {
  await singer.close();
}

async function valuesOf({ name, parameters, source, truth, measure }: Trial): Promise<TrialValues> {
  const { path } = await singer.sing(`tasks/${name}`, parameters);
  return {
    model: measure(await readMono(path)),
    "ground truth": measure(truth),
    "source unchanged": measure(source),
    "white noise": measure(whiteNoise),
  };
}

async function readMono(path: string): Promise<Float32Array> {
  const planar = await decodeAudio({ path, name: path, maxSeconds: 2 * pieceSeconds });
  const samples = planar.length / 2;
  return monoOf({ left: planar.subarray(0, samples), right: planar.subarray(samples) });
}
