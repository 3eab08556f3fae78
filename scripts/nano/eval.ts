/**
 * npm run eval:nano: measures songs that the model makes from prompts in people's own words. Compares them
 * with pieces of the composer (the ceiling) and with white noise (the floor). Method and columns:
 * eval/README.md.
 */
import { copyFileSync, mkdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { Command } from "commander";
import { cacheRoot } from "../setup/run.mjs";
import { heldOutFolder, heldOutSeeds, renderHeldOut, writeWhiteNoise } from "./eval/held-out.js";
import { type NaturalPrompt, naturalPrompts } from "./eval/natural-prompts.js";
import { promptParameters, reconstruct, type Song, SongMaker } from "./eval/songs.js";
import { runPython } from "./python.js";

interface Options {
  prompts: number;
  pieces: number;
  seedPairs: number;
  forms: number;
  reconstructions: number;
  classifierPieces: number;
  out: string;
  thinking: boolean;
  codes: boolean;
  model: boolean;
}

/** Name, start and end in seconds. */
type Section = [string, number, number];

/** A column of the table, as eval/analyse.py reads it. */
interface Column {
  title: string;
  /** Paths of the recordings. `asked` has the facts that each recording should have. */
  paths: string[];
  asked: readonly Omit<NaturalPrompt, "caption">[];
  /** Time to make each recording; empty if it was not measured. */
  computeSeconds: number[];
  /** Recordings whose sections are known. */
  forms: { path: string; sections: Section[] }[];
  /** Pairs of recordings that should differ, such as two seeds of one prompt. */
  siblings: [string, string][];
  /** A recording and its reconstruction. */
  reconstructions: [string, string][];
}

const songSeconds = 24;
/** Length of songs whose lyrics ask for a form. Their sections should have equal lengths. */
const formSeconds = 36;
const form = ["Verse", "Chorus", "Verse", "Chorus"];
/** The genre classifier is trained on shorter pieces. They are not measured, and nano is not trained on them. */
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
  .option(
    "--codes",
    "songs of the pieces' captions instead: without codes, with the pieces' codes, and planned",
  )
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
const songs = options.model ? await withSongMaker(options.codes ? makePieceColumns : makePromptColumns) : [];
const training = teachers.map(({ mix, genre }) => ({ path: join(heldOut, "classifier", mix), genre }));
const analysis = join(out, "analysis");
mkdirSync(analysis, { recursive: true });
const manifest = { training, columns: [...songs, pieceColumn(), noiseColumn()] };
writeFileSync(join(analysis, "manifest.json"), JSON.stringify(manifest));
runPython("eval", "analyse.py", [analysis]);
copyFileSync(join(analysis, "table.md"), join(out, "table.md"));

async function withSongMaker(makeColumns: (songMaker: SongMaker) => Promise<Column[]>): Promise<Column[]> {
  const songMaker = new SongMaker(join(heldOut, "songs"));
  try {
    return await makeColumns(songMaker);
  } finally {
    await songMaker.close();
  }
}

/** Makes columns of songs from captions. The columns differ in the other request parameters. */
async function makePromptColumns(songMaker: SongMaker): Promise<Column[]> {
  const fields = await makePromptColumn(songMaker, "facts as fields", ({ bpm, keyScale }) => ({
    bpm,
    key_scale: keyScale,
  }));
  const columns = [
    { ...fields, reconstructions: pairs(piecePaths, roundTrips(songMaker.vaeDirectory)) },
    await makePromptColumn(songMaker, "caption only", () => ({})),
  ];
  if (!options.thinking) return columns;
  await songMaker.loadLanguageModel();
  return [
    ...columns,
    await makePromptColumn(songMaker, "caption only, thinking", () => ({ thinking: true })),
  ];
}

/**
 * Makes columns of songs with the captions, facts and sections of the pieces. The columns show the benefit of audio
 * codes and the quality of planned codes.
 */
async function makePieceColumns(songMaker: SongMaker): Promise<Column[]> {
  const makeColumn = async (title: string, parametersOf: (path: string) => Promise<object> | object) => {
    const paths: string[] = [];
    for (const [index, piece] of pieces.entries()) {
      const own = await parametersOf(piecePaths[index] as string);
      const parameters = { ...promptParameters(piece), seed: 4000 + index, ...own };
      const song = await songMaker.makeSong(`piece/${index}`, parameters);
      paths.push(song.path);
      process.stderr.write(`\r${title}: song ${paths.length} `);
    }
    process.stderr.write("\n");
    return columnOf(title, paths);
  };
  const columns = [
    await makeColumn("no codes", () => ({})),
    await makeColumn("codes of the piece", async (path) => ({
      audio_code_string: (await songMaker.codesOf(path)).join(),
      use_audio_codes: true,
    })),
  ];
  await songMaker.loadLanguageModel();
  return [...columns, await makeColumn("planned codes", () => ({ thinking: true }))];
}

/**
 * Makes one song per prompt. The first prompts also get a song with a given form and a song with a second
 * seed.
 */
async function makePromptColumn(
  songMaker: SongMaker,
  title: string,
  parametersOf: (prompt: NaturalPrompt) => object,
): Promise<Column> {
  const asked = naturalPrompts.slice(0, options.prompts);
  const makeEach = async (count: number, name: string, firstSeed: number, own: object): Promise<Song[]> => {
    const made: Song[] = [];
    for (const [index, prompt] of asked.slice(0, count).entries()) {
      const parameters = { prompt: prompt.caption, ...own, seed: firstSeed + index, ...parametersOf(prompt) };
      made.push(await songMaker.makeSong(`${name}/${index}`, parameters));
      process.stderr.write(`\r${title}: ${name} song ${made.length} `);
    }
    process.stderr.write("\n");
    return made;
  };
  const songs = await makeEach(options.prompts, "natural", 1000, { audio_duration: songSeconds });
  const paths = songs.map(({ path }) => path);
  const lyrics = form.map((name) => `[${name}]`).join("\n");
  const formed = await makeEach(options.forms, "form", 3000, { lyrics, audio_duration: formSeconds });
  const again = await makeEach(options.seedPairs, "natural", 2000, { audio_duration: songSeconds });
  const seconds = formSeconds / form.length;
  const sections = form.map((name, at): Section => [name, at * seconds, (at + 1) * seconds]);
  return {
    ...{ title, paths, asked, computeSeconds: songs.map(({ computeSeconds }) => computeSeconds) },
    forms: formed.map(({ path }) => ({ path, sections })),
    siblings: pairs(
      paths,
      again.map(({ path }) => path),
    ),
    reconstructions: [],
  };
}

/** Pairs pieces of the same genre, in place of songs from the same prompt. */
function pieceColumn(): Column {
  const siblings = pieces.slice(0, options.seedPairs).flatMap(({ genre }, index): [string, string][] => {
    const teacher = training.find((other) => other.genre === genre);
    return teacher === undefined ? [] : [[piecePaths[index] as string, teacher.path]];
  });
  return { ...columnOf("pieces (ceiling)", piecePaths), siblings };
}

function noiseColumn(): Column {
  const noise = pieces.map((record) => writeWhiteNoise(join(heldOut, "noise"), record));
  const siblings = pairs(noise, noise.slice(1, 1 + options.seedPairs));
  const reconstructions = pairs(piecePaths, noise.slice(0, options.reconstructions));
  return { ...columnOf("white noise (floor)", noise), siblings, reconstructions };
}

/** A column of recordings that have the facts and sections of the pieces. */
function columnOf(title: string, paths: string[]): Column {
  const forms = pieces.map(({ sections }, index) => ({
    path: paths[index] as string,
    sections: sections.map(({ name, startSeconds: start, endSeconds: end }): Section => [name, start, end]),
  }));
  return { title, paths, asked: pieces, computeSeconds: [], forms, siblings: [], reconstructions: [] };
}

function roundTrips(vaeDirectory: string): string[] {
  return reconstruct(
    vaeDirectory,
    piecePaths.slice(0, options.reconstructions),
    join(heldOut, "reconstructions"),
  );
}

function pairs(ones: string[], others: string[]): [string, string][] {
  return others.map((other, index) => [ones[index] as string, other]);
}
