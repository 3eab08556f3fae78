/**
 * npm run eval:nano: what the model makes of held-out prompts, beside the generator's own pieces for the same
 * prompts (the ceiling) and white noise (the floor). Method and columns: eval/README.md.
 */
import { writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { Command } from "commander";
import { cacheRoot } from "../setup/run.mjs";
import type { PieceRecord } from "./dataset/record.js";
import { analyse } from "./eval/analysis.js";
import { heldOutFolder, heldOutSeeds, renderHeldOut, whiteNoise } from "./eval/held-out.js";
import { reconstruct } from "./eval/reconstructions.js";
import { columnOf, manifestOf, type Recordings } from "./eval/recordings.js";
import { promptOf, Singer, type Song } from "./eval/songs.js";
import { evaluationTable } from "./eval/table.js";

interface Options {
  prompts: number;
  seedPairs: number;
  reconstructions: number;
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
  .option("--reconstructions <count>", "pieces to send through the autoencoder", Number, 24)
  .option("--classifier-pieces <count>", "held-out pieces that teach the genre classifier", Number, 72)
  .option("--out <directory>", "pieces, songs and measurements", join(cacheRoot, "nano", "eval"))
  .option("--thinking", "a column more: songs that the language model plans", false)
  .option("--no-model", "the ceiling and the floor alone")
  .parse()
  .opts<Options>();

const out = resolve(options.out);
const heldOut = heldOutFolder(out);
const records = await renderHeldOut({
  directory: join(heldOut, "pieces"),
  seeds: heldOutSeeds(options.prompts),
});
const teachers = await renderHeldOut({
  directory: join(heldOut, "classifier"),
  seeds: heldOutSeeds(options.classifierPieces, firstClassifierPiece),
  wishes: { durationSeconds: classifierSeconds },
});
const songs = options.model ? await singAll(records) : [];
const columns = [...songs, pieceColumn(), noiseColumn()];

const training = teachers.map(({ mix, genre }) => ({ path: join(heldOut, "classifier", mix), genre }));
const analysis = analyse(manifestOf(columns, training), join(out, "analysis"));
const table = evaluationTable(
  records,
  columns.map((column) => columnOf(column, analysis)),
);
writeFileSync(join(out, "table.md"), `${table}\n`);
console.log(table);

/** A song a prompt, and a second seed's for the first prompts. */
async function singAll(prompts: PieceRecord[]): Promise<Recordings[]> {
  const singer = new Singer(join(heldOut, "songs"));
  const sing = (record: PieceRecord, seed: number, thinking: boolean): Promise<Song> =>
    singer.sing(`${thinking ? "planned" : "direct"}/${record.id}-${seed}`, {
      ...{ ...promptOf(record), seed, thinking },
    });
  const column = async (title: string, thinking: boolean): Promise<Recordings> => {
    const made: Song[] = [];
    for (const record of prompts) {
      made.push(await sing(record, record.seed, thinking));
      process.stderr.write(`\r${title}: song ${made.length} of ${prompts.length} `);
    }
    process.stderr.write("\n");
    const others: Song[] = [];
    for (const record of prompts.slice(0, options.seedPairs)) {
      others.push(await sing(record, record.seed + 1, thinking));
    }
    return {
      title,
      paths: made.map(({ path }) => path),
      computeSeconds: made.map(({ computeSeconds }) => computeSeconds),
      siblings: others.map(({ path }, index) => [made[index]?.path as string, path]),
      reconstructions: thinking ? [] : reconstructAll(singer.vaeDirectory),
    };
  };
  try {
    // The language model, once loaded, would fill the metadata of every song.
    const direct = await column(singer.model, false);
    if (!options.thinking) return [direct];
    await singer.loadLanguageModel();
    return [direct, await column(`${singer.model}, thinking`, true)];
  } finally {
    await singer.close();
  }
}

function reconstructAll(vaeDirectory: string): [string, string][] {
  const originals = records
    .slice(0, options.reconstructions)
    .map(({ id, mix }) => ({ id, path: piece(mix) }));
  const copies = reconstruct(vaeDirectory, originals, join(heldOut, "reconstructions"));
  return originals.map(({ path }, index) => [path, copies[index] as string]);
}

/** Two pieces of one genre stand for two seeds. */
function pieceColumn(): Recordings {
  const siblings = records.slice(0, options.seedPairs).flatMap(({ genre, mix }): [string, string][] => {
    const teacher = teachers.find((other) => other.genre === genre);
    return teacher === undefined ? [] : [[piece(mix), join(heldOut, "classifier", teacher.mix)]];
  });
  const paths = records.map(({ mix }) => piece(mix));
  return { title: "held-out pieces (ceiling)", paths, computeSeconds: [], siblings, reconstructions: [] };
}

function noiseColumn(): Recordings {
  const paths = records.map((record) => whiteNoise(join(heldOut, "noise"), record));
  const pairs = (ones: string[], others: string[], count: number): [string, string][] =>
    others.slice(0, count).map((other, index) => [ones[index] as string, other]);
  return {
    title: "white noise (floor)",
    paths,
    computeSeconds: [],
    siblings: pairs(paths, paths.slice(1), options.seedPairs),
    reconstructions: pairs(
      records.map(({ mix }) => piece(mix)),
      paths,
      options.reconstructions,
    ),
  };
}

function piece(mix: string): string {
  return join(heldOut, "pieces", mix);
}
