/**
 * Measures the loudness of new parts against their neighbours, 10 s on each side:
 * node --import tsx scripts/measure/part-levels.ts [EDITS] [SOURCES] [SEED]
 *
 * The sources are songs of carillon-nano of 30 s, at several levels, made with SEED; `fade` fades in, `clipped` is
 * clipped. EDITS and SOURCES are names, separated by commas. Each row has the original window minus its neighbours,
 * and the mean and the range of eight new parts minus their neighbours, in dB. ffmpeg measures the loudness (EBU R 128).
 */
import { execFile } from "node:child_process";
import type { TaskType } from "../../src/engine/addon.js";
import { Engine } from "../../src/engine/engine.js";
import { renderParametersOf } from "../../src/engine/render-parameters.js";
import {
  type PlanarAudio,
  type RenderRequest,
  SAMPLE_RATE,
  type SongLatents,
} from "../../src/engine/types.js";
import { engineOptions } from "../../test/engine/embedded.js";
import { renderOne, requestOf, withSong } from "../../test/engine/plain-song.js";

const SECONDS = 30;
const NEIGHBOUR_SECONDS = 10;
const SEEDS = [1, 2, 3, 4, 5, 6, 7, 8];

interface Source {
  genre: string;
  audio: PlanarAudio;
  latents: SongLatents | null;
}

interface Edit {
  task: TaskType;
  startSeconds: number;
  endSeconds: number;
  /** Levels of the source in dB; null: its latents. */
  levels: (number | null)[];
}

const edits: Record<string, Edit> = {
  repaint: { task: "repaint", startSeconds: 8, endSeconds: 18, levels: [0, -12, -24, null] },
  lego: { task: "lego", startSeconds: 8, endSeconds: 18, levels: [0, -12] },
  after: { task: "repaint", startSeconds: 30, endSeconds: 40, levels: [0, -12] },
  before: { task: "repaint", startSeconds: -10, endSeconds: 0, levels: [0, -12] },
};

const engine = new Engine(engineOptions, () => {});
const [chosenEdits, chosenSources, sourceSeed = "41"] = process.argv.slice(2);

function requestFor(genre: string, seed: number): RenderRequest {
  const request = { ...requestOf(SECONDS), ...renderParametersOf({}) };
  return withSong(request, { caption: genre, trackName: "drums", seed });
}

async function songOf(genre: string): Promise<Source> {
  const { audio, latents } = await renderOne(engine, requestFor(genre, Number(sourceSeed)));
  return { genre, audio, latents };
}

function scaled({ genre, audio }: Source, factorAt: (second: number) => number): Source {
  const samples = audio.length / 2;
  const clipped = audio.map((value, i) =>
    Math.max(-1, Math.min(1, value * factorAt((i % samples) / SAMPLE_RATE))),
  );
  return { genre, audio: clipped, latents: null };
}

const ratio = (decibels: number) => 10 ** (decibels / 20);

const sources: Record<string, () => Promise<Source>> = {
  ...Object.fromEntries(
    ["techno", "rock", "ambient", "jazz", "folk"].map((genre) => [genre, () => songOf(genre)]),
  ),
  fade: async () => scaled(await songOf("rock"), (second) => Math.min(1, second / 15)),
  clipped: async () => scaled(await songOf("techno"), () => ratio(9)),
};

/** Loudness in LUFS of the given ranges of seconds, played one after another. */
function loudness(audio: PlanarAudio, ...ranges: [number, number][]): Promise<number> {
  const samples = audio.length / 2;
  const joined = ranges.flatMap(([start, end]) => {
    const from = Math.max(0, Math.round(start * SAMPLE_RATE));
    const to = Math.min(samples, Math.round(end * SAMPLE_RATE));
    return Array.from({ length: Math.max(0, to - from) * 2 }, (_, i) =>
      Number(audio[from + (i >> 1) + (i % 2) * samples]),
    );
  });
  const input = ["-f", "f32le", "-ar", String(SAMPLE_RATE), "-ac", "2", "-i", "-"];
  const filter = ["-af", "ebur128=framelog=verbose", "-f", "null", "-"];
  return new Promise((resolve, reject) => {
    const ffmpeg = execFile("ffmpeg", ["-nostats", ...input, ...filter], (error, _, report) => {
      const found = [...report.matchAll(/I:\s+(-?[\d.]+) LUFS/g)].at(-1);
      if (error !== null || found === undefined) reject(error ?? new Error(report));
      else resolve(Number(found[1]));
    });
    ffmpeg.stdin?.end(Buffer.from(Float32Array.from(joined).buffer));
  });
}

/** Loudness of a part minus that of its neighbours. */
async function difference(audio: PlanarAudio, start: number, end: number): Promise<number> {
  const neighbours = await loudness(
    audio,
    [start - NEIGHBOUR_SECONDS, start],
    [end, end + NEIGHBOUR_SECONDS],
  );
  return (await loudness(audio, [start, end])) - neighbours;
}

/** Differences of the original window, if there is one, and of the new parts. */
async function measure(source: Source, edit: Edit, level: number | null): Promise<[number | null, number[]]> {
  const { task, startSeconds, endSeconds } = edit;
  const { audio } = scaled(source, () => ratio(level ?? 0));
  const window = { startSeconds, endSeconds };
  const input = level === null ? { audio: null, latents: source.latents } : { audio };
  const shift = Math.max(0, -startSeconds);
  const parts: number[] = [];
  for (const seed of SEEDS) {
    const request = { ...requestFor(source.genre, seed), task, source: { ...input, window } };
    const song = await renderOne(engine, request);
    parts.push(await difference(song.audio, startSeconds + shift, endSeconds + shift));
  }
  const isInside = startSeconds >= 0 && endSeconds <= SECONDS;
  return [isInside ? await difference(audio, startSeconds, endSeconds) : null, parts];
}

console.log("edit     source     level  original    mean    from      to");
for (const [name, make] of Object.entries(sources)) {
  if (!(chosenSources ?? name).split(",").includes(name)) continue;
  const source = await make();
  for (const [editName, edit] of Object.entries(edits)) {
    if (!(chosenEdits ?? editName).split(",").includes(editName)) continue;
    for (const level of edit.levels) {
      if (level === null && source.latents === null) continue;
      const [original, parts] = await measure(source, edit, level);
      const mean = parts.reduce((sum, value) => sum + value, 0) / parts.length;
      const figures = [original, mean, Math.min(...parts), Math.max(...parts)];
      const cells = figures.map((figure) => (figure?.toFixed(1) ?? "-").padStart(8)).join("");
      console.log(editName.padEnd(8), name.padEnd(8), String(level ?? "latents").padStart(7), "", cells);
    }
  }
}
await engine.close();
