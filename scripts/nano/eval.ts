/**
 * npm run eval:nano: measures the model's songs of prompts in people's own words, beside pieces of the composer (the ceiling)
 * and white noise (the floor). Method and columns: eval/README.md.
 */
import { writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { Command } from "commander";
import { cacheRoot } from "../setup/run.mjs";
import type { PieceRecord } from "./dataset/record.js";
import { heldOutFolder, heldOutSeeds, renderHeldOut, whiteNoise } from "./eval/held-out.js";
import { naturalPrompts } from "./eval/natural-prompts.js";
import { analyse, columnOf, type Song as Form, manifestOf, type Recordings } from "./eval/recordings.js";
import { reconstruct, Singer, type Song } from "./eval/songs.js";
import { evaluationTable } from "./eval/table.js";

interface Options {
  prompts: number;
  pieces: number;
  seedPairs: number;
  forms: number;
  reconstructions: number;
  classifierPieces: number;
  out: string;
  thinking: boolean;
  model: boolean;
}

const songSeconds = 24;
/** Songs whose lyrics ask for a form; sections have equal lengths. */
const formSeconds = 36;
const form = ["Verse", "Chorus", "Verse", "Chorus"];
/** Held-out pieces beyond those that are measured, cut short, teach the genre classifier. */
const classifierSeconds = 20;
const firstClassifierPiece = 600;

const options = new Command()
  .option("--prompts <count>", "prompts to render", Number, naturalPrompts.length)
  .option("--pieces <count>", "held-out pieces of the generator", Number, 60)
  .option("--seed-pairs <count>", "prompts to render with a second seed", Number, 22)
  .option("--forms <count>", "prompts to render as verse, chorus, verse, chorus", Number, 22)
  .option("--reconstructions <count>", "pieces to send through the autoencoder", Number, 24)
  .option("--classifier-pieces <count>", "held-out pieces that teach the genre classifier", Number, 132)
  .option("--out <directory>", "pieces, songs and measurements", join(cacheRoot, "nano", "eval"))
  .option("--no-thinking", "without the songs that the language model plans")
  .option("--no-model", "the ceiling and the floor alone")
  .parse()
  .opts<Options>();

const out = resolve(options.out);
const heldOut = heldOutFolder(out);
const pieces = await renderHeldOut(join(heldOut, "short-pieces"), heldOutSeeds(options.pieces), songSeconds);
const teachers = await renderHeldOut(
  join(heldOut, "classifier"),
  heldOutSeeds(options.classifierPieces, firstClassifierPiece),
  classifierSeconds,
);
const songs = options.model ? await singAll() : [];
const columns = [...songs, pieceColumn(), noiseColumn()];

const training = teachers.map(({ mix, genre }) => ({ path: join(heldOut, "classifier", mix), genre }));
const analysis = analyse(manifestOf(columns, training), join(out, "analysis"));
const table = evaluationTable(columns.map((column) => columnOf(column, analysis)));
writeFileSync(join(out, "table.md"), `${table}\n`);
console.log(table);

/** A song a prompt, and a second seed's for the first prompts. */
async function singAll(): Promise<Recordings[]> {
  const singer = new Singer(join(heldOut, "songs"));
  const prompts = naturalPrompts.slice(0, options.prompts);
  const column = async (title: string, parameters: (index: number) => object): Promise<Recordings> => {
    const sing = (index: number, seed: number): Promise<Song> =>
      singer.sing(`natural/${index}`, {
        ...{ prompt: prompts[index]?.caption, audio_duration: songSeconds, seed, ...parameters(index) },
      });
    const made: Song[] = [];
    for (const index of prompts.keys()) {
      made.push(await sing(index, 1000 + index));
      process.stderr.write(`\r${title}: song ${made.length} of ${prompts.length} `);
    }
    process.stderr.write("\n");
    const songs: Form[] = [];
    for (const [index, { caption }] of prompts.slice(0, options.forms).entries()) {
      const lyrics = form.map((name) => `[${name}]`).join("\n");
      const { path } = await singer.sing(`form/${index}`, {
        ...{ prompt: caption, lyrics, audio_duration: formSeconds, seed: 3000 + index, ...parameters(index) },
      });
      const seconds = formSeconds / form.length;
      songs.push({ path, sections: form.map((name, at) => [name, at * seconds, (at + 1) * seconds]) });
    }
    const siblings: [string, string][] = [];
    for (const [index, { path }] of made.slice(0, options.seedPairs).entries()) {
      siblings.push([path, (await sing(index, 2000 + index)).path]);
    }
    return {
      title,
      paths: made.map(({ path }) => path),
      asked: prompts,
      computeSeconds: made.map(({ computeSeconds }) => computeSeconds),
      songs,
      siblings,
      reconstructions: title === "facts as fields" ? reconstructAll(singer.vaeDirectory) : [],
    };
  };
  try {
    const columns = [
      await column("facts as fields", (index) => {
        const { bpm, keyScale } = prompts[index] ?? {};
        return { bpm, key_scale: keyScale };
      }),
      await column("caption only", () => ({})),
    ];
    if (!options.thinking) return columns;
    await singer.loadLanguageModel();
    return [...columns, await column("caption only, thinking", () => ({ thinking: true }))];
  } finally {
    await singer.close();
  }
}

function songOf(path: string, { sections }: PieceRecord): Form {
  return {
    path,
    sections: sections.map(({ name, startSeconds, endSeconds }) => [name, startSeconds, endSeconds]),
  };
}

/** Two pieces of one genre serve as two seeds of one prompt. */
function pieceColumn(): Recordings {
  const paths = pieces.map(({ mix }) => join(heldOut, "short-pieces", mix));
  const siblings = pieces.slice(0, options.seedPairs).flatMap(({ genre }, index): [string, string][] => {
    const teacher = teachers.find((other) => other.genre === genre);
    return teacher === undefined ? [] : [[paths[index] as string, join(heldOut, "classifier", teacher.mix)]];
  });
  return {
    title: "pieces (ceiling)",
    paths,
    asked: pieces,
    computeSeconds: [],
    songs: pieces.map((piece, index) => songOf(paths[index] as string, piece)),
    siblings,
    reconstructions: [],
  };
}

function reconstructAll(vaeDirectory: string): [string, string][] {
  if (options.reconstructions === 0) return [];
  const originals = pieces
    .slice(0, options.reconstructions)
    .map(({ id, mix }) => ({ id, path: join(heldOut, "short-pieces", mix) }));
  const copies = reconstruct(vaeDirectory, originals, join(heldOut, "reconstructions"));
  return originals.map(({ path }, index) => [path, copies[index] as string]);
}

function noiseColumn(): Recordings {
  const paths = pieces.map((record) => whiteNoise(join(heldOut, "noise"), record));
  const pairs = (ones: string[], others: string[], count: number): [string, string][] =>
    others.slice(0, count).map((other, index) => [ones[index] as string, other]);
  return {
    title: "white noise (floor)",
    paths,
    asked: pieces,
    computeSeconds: [],
    songs: pieces.map((piece, index) => songOf(paths[index] as string, piece)),
    siblings: pairs(paths, paths.slice(1), options.seedPairs),
    reconstructions: pairs(
      pieces.map(({ mix }) => join(heldOut, "short-pieces", mix)),
      paths,
      options.reconstructions,
    ),
  };
}
