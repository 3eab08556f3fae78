/**
 * Draws waveforms and spectrograms of the model's songs for ten held-out prompts.
 *
 *     node --import tsx scripts/nano/draw.ts [DIRECTORY]
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { Tokenizer } from "../../src/engine/tokenizer.js";
import { cacheRoot } from "../setup/run.mjs";
import { compose } from "./compose/compose.js";
import { shippedModel } from "./dataset/data-set.js";
import { createRecord, type PieceRecord } from "./dataset/record.js";
import { heldOutFolder } from "./eval/held-out.js";
import { promptParameters, SongMaker } from "./eval/songs.js";
import { runPython } from "./python.js";

/** Held-out seeds of ten genres. */
const exampleSeeds = [132, 111, 90, 69, 48, 27, 6, 139, 118, 76];

const out = resolve(process.argv[2] ?? fileURLToPath(new URL("pictures", import.meta.url)));
const evaluation = join(cacheRoot, "nano", "eval");
const tokenizer = await Tokenizer.load(join(shippedModel, "text_encoder"));
const songMaker = new SongMaker(join(heldOutFolder(evaluation), "songs"));
const records: PieceRecord[] = [];
const pictures: { path: string; picture: string; title: string }[] = [];
try {
  for (const seed of exampleSeeds) {
    const record = await createRecord(compose(seed), tokenizer, []);
    const { path } = await songMaker.makeSong(`direct/${record.id}-${seed}`, {
      ...promptParameters(record),
      seed,
    });
    records.push(record);
    pictures.push({ path, picture: join(out, pictureOf(record)), title: record.caption });
  }
} finally {
  await songMaker.close();
}

mkdirSync(out, { recursive: true });
const manifest = join(evaluation, "pictures.json");
writeFileSync(manifest, JSON.stringify(pictures, null, 1));
runPython("eval", "pictures.py", [manifest]);
const page = `# Pictures of songs

Songs of carillon-nano for ten held-out prompts. Waveform above, spectrogram below, an octave a step. A held note is a line
with its partials above it, a drum a vertical stroke. Made by \`scripts/nano/draw.ts\`.

${records.map(entryOf).join("\n\n")}
`;
writeFileSync(join(out, "README.md"), page);
console.log(out);

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
