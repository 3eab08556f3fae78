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
import { analyse, type Form, type Recordings } from "./eval/recordings.js";
import { reconstruct, Singer, type Song } from "./eval/songs.js";
import { evaluationTable, type PromptFacts } from "./eval/table.js";

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
const piecePaths = pieces.map(({ mix }) => join(heldOut, "short-pieces", mix));
const songs = options.model ? await singAll() : [];
const training = teachers.map(({ mix, genre }) => ({ path: join(heldOut, "classifier", mix), genre }));
const columns = analyse([...songs, pieceColumn(), noiseColumn()], training, join(out, "analysis"));
const table = evaluationTable(columns);
writeFileSync(join(out, "table.md"), `${table}\n`);
console.log(table);

/** Columns of the model's songs, which differ in the parameters besides the caption. */
async function singAll(): Promise<Recordings[]> {
  const singer = new Singer(join(heldOut, "songs"));
  try {
    const columns = [
      {
        ...(await sing(singer, "facts as fields", ({ bpm, keyScale }) => ({ bpm, key_scale: keyScale }))),
        reconstructions: reconstructAll(singer.vaeDirectory),
      },
      await sing(singer, "caption only", () => ({})),
    ];
    if (!options.thinking) return columns;
    await singer.loadLanguageModel();
    return [...columns, await sing(singer, "caption only, thinking", () => ({ thinking: true }))];
  } finally {
    await singer.close();
  }
}

/** A song a prompt; for the first prompts also one of a given form, and one of a second seed. */
async function sing(
  singer: Singer,
  title: string,
  parametersOf: (prompt: PromptFacts) => object,
): Promise<Recordings> {
  const asked = naturalPrompts.slice(0, options.prompts);
  const singPrompt = (index: number, name: string, own: object): Promise<Song> => {
    const prompt = asked[index] as (typeof asked)[number];
    return singer.sing(`${name}/${index}`, { prompt: prompt.caption, ...own, ...parametersOf(prompt) });
  };
  const made: Song[] = [];
  for (const index of asked.keys()) {
    made.push(await singPrompt(index, "natural", { audio_duration: songSeconds, seed: 1000 + index }));
    process.stderr.write(`\r${title}: song ${made.length} of ${asked.length} `);
  }
  process.stderr.write("\n");
  const paths = made.map(({ path }) => path);
  const lyrics = form.map((name) => `[${name}]`).join("\n");
  const seconds = formSeconds / form.length;
  const sections = form.map((name, at): Form["sections"][number] => [name, at * seconds, (at + 1) * seconds]);
  const forms: Form[] = [];
  for (const index of paths.slice(0, options.forms).keys()) {
    const own = { lyrics, audio_duration: formSeconds, seed: 3000 + index };
    forms.push({ path: (await singPrompt(index, "form", own)).path, sections });
  }
  const siblings: [string, string][] = [];
  for (const [index, path] of paths.slice(0, options.seedPairs).entries()) {
    const own = { audio_duration: songSeconds, seed: 2000 + index };
    siblings.push([path, (await singPrompt(index, "natural", own)).path]);
  }
  const computeSeconds = made.map(({ computeSeconds }) => computeSeconds);
  return { title, paths, asked, computeSeconds, forms, siblings, reconstructions: [] };
}

function formOf(path: string, { sections }: PieceRecord): Form {
  return {
    path,
    sections: sections.map(({ name, startSeconds, endSeconds }) => [name, startSeconds, endSeconds]),
  };
}

/** Two pieces of one genre serve as two seeds of one prompt. */
function pieceColumn(): Recordings {
  const siblings = pieces.slice(0, options.seedPairs).flatMap(({ genre }, index): [string, string][] => {
    const teacher = training.find((other) => other.genre === genre);
    return teacher === undefined ? [] : [[piecePaths[index] as string, teacher.path]];
  });
  return { ...columnOf("pieces (ceiling)", piecePaths), siblings };
}

function noiseColumn(): Recordings {
  const noise = pieces.map((record) => whiteNoise(join(heldOut, "noise"), record));
  const siblings = pairs(noise, noise.slice(1, 1 + options.seedPairs));
  const reconstructions = pairs(piecePaths, noise.slice(0, options.reconstructions));
  return { ...columnOf("white noise (floor)", noise), siblings, reconstructions };
}

/** A column of recordings that have the facts and sections of the pieces. */
function columnOf(title: string, paths: string[]): Recordings {
  const forms = pieces.map((piece, index) => formOf(paths[index] as string, piece));
  return { title, paths, asked: pieces, computeSeconds: [], forms, siblings: [], reconstructions: [] };
}

function reconstructAll(vaeDirectory: string): [string, string][] {
  const originals = pieces
    .slice(0, options.reconstructions)
    .map(({ id }, index) => ({ id, path: piecePaths[index] as string }));
  return pairs(piecePaths, reconstruct(vaeDirectory, originals, join(heldOut, "reconstructions")));
}

function pairs(ones: string[], others: string[]): [string, string][] {
  return others.map((other, index) => [ones[index] as string, other]);
}
