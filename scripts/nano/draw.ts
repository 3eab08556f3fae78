/**
 * Draws waveforms and spectrograms of ten example prompts.
 *
 *     node --import tsx scripts/nano/draw.ts            the generator's pieces, into the cache
 *     node --import tsx scripts/nano/draw.ts --model    the model's songs, into scripts/nano/pictures
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { Command } from "commander";
import { cacheRoot } from "../setup/run.mjs";
import type { PieceRecord } from "./dataset/record.js";
import { heldOutFolder, renderHeldOut } from "./eval/held-out.js";
import { promptOf, Singer } from "./eval/songs.js";
import { runPython } from "./python.js";

/** Held-out seeds of ten genres, among the first that `eval:nano` asks for. */
const exampleSeeds = [132, 111, 90, 69, 48, 27, 6, 139, 118, 76];

const evaluation = join(cacheRoot, "nano", "eval");
const options = new Command()
  .option("--model", "songs of the model instead of the composer's pieces", false)
  .option("--out <directory>", "where the pictures go")
  .parse()
  .opts<{ out?: string; model: boolean }>();

const shipped = fileURLToPath(new URL("pictures", import.meta.url));
const out = resolve(options.out ?? (options.model ? shipped : join(evaluation, "pictures")));
const heldOut = heldOutFolder(evaluation);
const pieces = join(heldOut, "pieces");
const records = await renderHeldOut(pieces, exampleSeeds);
const paths = options.model ? await singAll(records) : records.map(({ mix }) => join(pieces, mix));

mkdirSync(out, { recursive: true });
const pictures = records.map((record, index) => ({
  path: paths[index],
  picture: join(out, pictureOf(record)),
  title: record.caption,
  // A prompt names sections and says nothing of when they begin.
  sections: options.model ? [] : record.sections,
}));
const manifest = join(evaluation, "pictures.json");
writeFileSync(manifest, JSON.stringify(pictures, null, 1));
runPython("eval", "pictures.py", [manifest]);
const intro = options.model
  ? "Songs of carillon-nano for ten held-out prompts."
  : "Ten held-out pieces of the composer.";
const page = `# Pictures of songs

${intro} Waveform above, spectrogram below, an octave a step. A held note is a line
with its partials above it, a drum a vertical stroke. Made by \`scripts/nano/draw.ts\`.

${records.map(entryOf).join("\n\n")}
`;
writeFileSync(join(out, "README.md"), page);
console.log(out);

/** Uses the evaluation's file names, so that its songs are reused. */
async function singAll(prompts: PieceRecord[]): Promise<string[]> {
  const singer = new Singer(join(heldOut, "songs"));
  try {
    const songs: string[] = [];
    for (const record of prompts) {
      const { id, seed } = record;
      const song = await singer.sing(`direct/${id}-${seed}`, { ...promptOf(record), seed });
      songs.push(song.path);
    }
    return songs;
  } finally {
    await singer.close();
  }
}

function pictureOf({ genre }: PieceRecord): string {
  return `${genre.replaceAll(" ", "-")}.png`;
}

function entryOf(record: PieceRecord): string {
  const { genre, caption, lyrics, bpm, keyScale, timeSignature, durationSeconds, seed } = record;
  const metre = `${timeSignature}${timeSignature === "6" ? "/8" : "/4"}`;
  const sections = lyrics.match(/\[[^\]]+\]/g);
  return `## ${genre}

> ${caption}

${bpm} bpm, ${keyScale}, ${metre}, ${durationSeconds} s, seed ${seed}${sections ? `; lyrics: ${sections.join(" ")}` : ""}

![${genre}](${pictureOf(record)})`;
}
