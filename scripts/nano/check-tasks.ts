/**
 * Evaluates the tasks that need a source recording. The sources are held-out pieces with stems.
 *
 *     node --import tsx scripts/nano/check-tasks.ts [--pieces 6]
 *
 * Measures and their limits: eval/README.md.
 */
import { writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { Command } from "commander";
import { cacheRoot } from "../setup/run.mjs";
import { heldOutFolder, heldOutSeeds, renderHeldOut, writeWhiteNoise } from "./eval/held-out.js";
import { SongMaker } from "./eval/songs.js";
import { trialsOf } from "./eval/task-trials.js";
import { runPython } from "./python.js";

const pieceSeconds = 20;

const options = new Command()
  .option("--pieces <count>", "held-out pieces, at least 2", Number, 6)
  .option("--out <directory>", "pieces and songs", join(cacheRoot, "nano", "eval"))
  .parse()
  .opts<{ pieces: number; out: string }>();

const out = resolve(options.out);
const heldOut = heldOutFolder(out);
const directory = join(heldOut, "stems");
const records = await renderHeldOut(directory, heldOutSeeds(options.pieces), pieceSeconds, 1);
const trials = records.flatMap((record, index) =>
  // Compare each record with all other pieces. The rotation puts each piece first for exactly one record.
  trialsOf(directory, record, [...records.slice(index + 1), ...records.slice(0, index)]).map((trial) => ({
    ...trial,
    noise: writeWhiteNoise(join(heldOut, "task-noise"), record),
  })),
);

const songMaker = new SongMaker(join(heldOut, "songs"));
const answered: object[] = [];
try {
  for (const { name, parameters, ...trial } of trials) {
    const { path } = await songMaker.makeSong(`tasks/${name}`, parameters);
    answered.push({ ...trial, model: path });
    process.stderr.write(`\rtrial ${answered.length} of ${trials.length} `);
  }
  process.stderr.write("\n");
} finally {
  await songMaker.close();
}
const manifest = join(out, "tasks.json");
writeFileSync(manifest, JSON.stringify(answered));
runPython("eval", "tasks.py", [manifest]);
