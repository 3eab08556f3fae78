/**
 * Creates trials of every task on a held-out piece. A trial has a request, and the recordings to compare the
 * result with.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { StemName } from "../compose/instruments.js";
import type { PieceRecord } from "../dataset/record.js";
import { addTo, type Stereo } from "../render/stereo.js";
import { decodeWav, encodeWav } from "../render/wav.js";
import { promptParameters } from "./songs.js";

/** A request, and the paths of the recordings with which tasks.py compares the result. */
export interface Trial {
  /** Unique among all trials. */
  name: string;
  /** Fields of POST /release_task. */
  parameters: Record<string, unknown>;
  task: "cover" | "repaint" | "extract" | "lego" | "complete";
  /** Path of the source audio. */
  source: string;
  /** Path of the ground truth. A repaint has none: tasks.py derives its ground truth. */
  truth?: string;
  /** Paths of the mixes of other pieces. */
  others: string[];
  stems: string[];
  /** Index in `stems` of the stem to extract. */
  wanted?: number;
  /** Start and end of the repainted region in seconds. */
  window?: [number, number];
}

const unpitched = new Set<StemName>(["drums", "percussion"]);

/** @param directory folder with the recordings of all pieces @param others pieces for comparison */
export function trialsOf(directory: string, record: PieceRecord, others: PieceRecord[]): Trial[] {
  const mix = join(directory, record.mix);
  const stems = Object.keys(record.stems) as StemName[];
  const paths = stems.map((stem) => join(directory, record.stems[stem] as string));
  const pathOf = (stem: StemName): string => paths[stems.indexOf(stem)] as string;
  const otherMixes = others.map((other) => join(directory, other.mix));

  const trial = (
    task: Trial["task"],
    own: Partial<Trial> & { stem?: StemName },
    parameters: Record<string, unknown>,
  ): Trial => {
    const { stem, ...paths } = own;
    const source = own.source ?? mix;
    const common = { task_type: task, seed: record.seed, audio_duration: null, src_audio_path: source };
    return {
      ...{ task, source, others: otherMixes, stems: [], ...paths },
      name: [record.id, task, stem].filter(Boolean).join("-"),
      parameters: { ...parameters, ...common },
    };
  };

  const asked = promptParameters(record);
  const start = Math.round(record.durationSeconds / 3);
  const end = Math.round((2 * record.durationSeconds) / 3);
  const trials = [
    // Uses the caption of another piece and no key or tempo, so that harmony can only come from the source.
    trial("cover", { truth: mix }, { prompt: others[0]?.caption ?? record.caption, lyrics: record.lyrics }),
    trial("repaint", { window: [start, end] }, { ...asked, repainting_start: start, repainting_end: end }),
  ];
  const pitched = stems.filter((stem) => !unpitched.has(stem));
  const [first] = pitched;
  const last = pitched.at(-1);
  if (stems.length < 2 || first === undefined || last === undefined) return trials;
  const context = contextOf(directory, record, last);
  return [
    ...trials,
    ...stems.map((stem, wanted) =>
      trial("extract", { stem, stems: paths, wanted, truth: pathOf(stem) }, { ...asked, track_name: stem }),
    ),
    trial("lego", { stem: last, source: context, truth: pathOf(last) }, { ...asked, track_name: last }),
    trial(
      "complete",
      { stem: first, source: pathOf(first), truth: mix },
      { ...asked, track_classes: stems.filter((stem) => stem !== first) },
    ),
  ];
}

/** Writes the mix without `stem`, unless the file exists. @returns its path */
function contextOf(directory: string, record: PieceRecord, stem: StemName): string {
  const path = join(directory, record.id, "context", `without-${stem}.wav`);
  if (existsSync(path)) return path;
  const read = (file = ""): Stereo => decodeWav(readFileSync(join(directory, file)));
  const audio = read(record.mix);
  addTo(audio, read(record.stems[stem]), -1);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, encodeWav(audio));
  return path;
}
