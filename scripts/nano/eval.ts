/**
 * npm run eval:nano: what the model makes of held-out prompts, beside the generator's own pieces for the same
 * prompts (the ceiling) and white noise (the floor). Method and columns: eval/README.md.
 */
import { rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { Command } from "commander";
import { Checkpoints, defaultModel } from "../../src/engine/checkpoints.js";
import { loadConfig } from "../../src/index.js";
import { cacheRoot } from "../setup/run.mjs";
import type { PieceRecord } from "./dataset/record.js";
import { analyse, type Manifest } from "./eval/analysis.js";
import { heldOutSeeds, renderHeldOut, whiteNoise } from "./eval/held-out.js";
import { reconstruct } from "./eval/reconstructions.js";
import { openSinger } from "./eval/songs.js";
import { type Column, evaluationTable } from "./eval/table.js";

interface Options {
  prompts: number;
  seedPairs: number;
  classifierPieces: number;
  out: string;
  thinking: boolean;
  model: boolean;
}

/** Held-out pieces beyond the prompts, cut short, teach the genre classifier. */
const classifierSeconds = 20;
const firstClassifierPiece = 600;

const options = new Command()
  .option("--prompts <count>", "held-out prompts to render", Number, 48)
  .option("--seed-pairs <count>", "prompts to render with a second seed", Number, 8)
  .option("--classifier-pieces <count>", "held-out pieces that teach the genre classifier", Number, 96)
  .option("--out <directory>", "pieces, songs and measurements", join(cacheRoot, "nano", "eval"))
  .option("--thinking", "let the language model plan each song", false)
  .option("--no-model", "the ceiling and the floor alone")
  .parse()
  .opts<Options>();

const out = resolve(options.out);
const records = await renderHeldOut(join(out, "pieces"), heldOutSeeds(options.prompts), {});
const classifierSeeds = heldOutSeeds(options.classifierPieces, firstClassifierPiece);
const teachers = await renderHeldOut(join(out, "classifier"), classifierSeeds, {
  durationSeconds: classifierSeconds,
});

const pieces = records.map(({ mix }) => join(out, "pieces", mix));
const noises = records.map((record) => whiteNoise(join(out, "noise"), record));
const sung = options.model ? await singAll(records) : { songs: [], others: [], model: "" };
const reconstructions = options.model ? reconstructAll(pieces) : [];

const analysis = analyse(manifest(), join(out, "analysis"));
const table = evaluationTable(records, [
  column(sung.model, "song", sung.songs.length),
  column("held-out pieces (ceiling)", "piece", pieces.length),
  column("white noise (floor)", "noise", noises.length),
]);
writeFileSync(join(out, "table.md"), `${table}\n`);
console.log(table);

/** One song a prompt, and a second seed's for the first prompts. */
async function singAll(
  prompts: PieceRecord[],
): Promise<{ songs: string[]; others: string[]; model: string }> {
  const directory = join(out, "songs");
  rmSync(directory, { recursive: true, force: true });
  const singer = await openSinger(directory, options.thinking);
  try {
    const songs: string[] = [];
    for (const record of prompts) {
      songs.push(await singer.sing(record, record.seed));
      process.stderr.write(`\rsong ${songs.length} of ${prompts.length}, ${singer.seconds().toFixed(0)} s `);
    }
    const others: string[] = [];
    for (const record of prompts.slice(0, options.seedPairs))
      others.push(await singer.sing(record, record.seed + 1));
    process.stderr.write("\n");
    return { songs, others, model: singer.model };
  } finally {
    await singer.close();
  }
}

function reconstructAll(recordings: string[]): string[] {
  const { vaeDirectory } = new Checkpoints(loadConfig(process.env).checkpointsDirectory).renderer(
    defaultModel,
  );
  return reconstruct(vaeDirectory, recordings, join(out, "reconstructions"));
}

function manifest(): Manifest {
  const named = (name: string, paths: string[]) =>
    paths.map((path, index) => ({ name: `${name} ${index}`, path }));
  const paired = (name: string, ones: string[], others: string[]) =>
    others.map((other, index) => ({ name: `${name} ${index}`, one: ones[index] as string, other }));
  const prompted = records.slice(0, options.seedPairs);
  const siblings = prompted.map(
    ({ genre }) => teachers.find((teacher) => teacher.genre === genre)?.mix ?? "",
  );
  return {
    training: teachers.map(({ mix, genre }) => ({ path: join(out, "classifier", mix), genre })),
    recordings: [...named("song", sung.songs), ...named("piece", pieces), ...named("noise", noises)],
    pairs: [
      ...paired("song seeds", sung.songs, sung.others),
      ...paired(
        "piece seeds",
        pieces,
        siblings.map((mix) => join(out, "classifier", mix)),
      ),
      ...paired("noise seeds", noises, noises.slice(1, 1 + options.seedPairs)),
      ...paired("song reconstruction", pieces, reconstructions),
      ...paired("noise reconstruction", pieces, noises),
    ],
  };
}

function column(title: string, name: string, count: number): Column {
  const measurements = Array.from({ length: count }, (_, index) => analysis.recordings[`${name} ${index}`]);
  const distances = (kind: string): number[] =>
    Object.entries(analysis.pairs).flatMap(([pair, distance]) =>
      pair.startsWith(`${name} ${kind} `) ? [distance] : [],
    );
  return {
    title,
    measurements: measurements.filter((measured) => measured !== undefined),
    seedDistances: distances("seeds"),
    reconstructionDistances: distances("reconstruction"),
  };
}
