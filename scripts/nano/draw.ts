/**
 * Pictures of recordings of the data set or of the model, to listen by looking: waveform, spectrogram, sections.
 *
 *     node --import tsx scripts/nano/draw.ts --out DIR [--pieces 10] [--model]
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { Command } from "commander";
import { cacheRoot } from "../setup/run.mjs";
import type { PieceRecord } from "./dataset/record.js";
import { heldOutSeeds, renderHeldOut } from "./eval/held-out.js";
import { runPython } from "./eval/python.js";
import { openSinger } from "./eval/songs.js";

const options = new Command()
  .requiredOption("--out <directory>", "where the pictures go")
  .option("--pieces <count>", "held-out prompts", Number, 10)
  .option("--model", "what the model makes of the prompts instead of the generator's pieces", false)
  .parse()
  .opts<{ out: string; pieces: number; model: boolean }>();

const out = resolve(options.out);
mkdirSync(out, { recursive: true });
const pieces = join(cacheRoot, "nano", "eval", "pieces");
const records = await renderHeldOut(pieces, heldOutSeeds(options.pieces), {});
const paths = options.model ? await singAll(records) : records.map(({ mix }) => join(pieces, mix));
const pictures = records.map((record, index) => ({
  name: record.id,
  path: paths[index],
  title: titleOf(record),
  sections: record.sections,
}));
const manifest = join(out, "pictures.json");
writeFileSync(manifest, JSON.stringify(pictures, null, 1));
runPython("pictures.py", [manifest, out]);

async function singAll(prompts: PieceRecord[]): Promise<string[]> {
  const singer = await openSinger(join(out, "songs"), false);
  try {
    const songs: string[] = [];
    for (const record of prompts) songs.push(await singer.sing(record, record.seed));
    return songs;
  } finally {
    await singer.close();
  }
}

function titleOf({ caption, bpm, keyScale, timeSignature, durationSeconds }: PieceRecord): string {
  return `${caption}\n${bpm} bpm, ${keyScale}, ${timeSignature} beats a bar, ${durationSeconds} s`;
}
