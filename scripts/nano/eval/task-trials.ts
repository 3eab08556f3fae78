/** Every task on a held-out piece: what it is asked, what its source is, what should come of it, what is measured. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { StemName } from "../compose/instruments.js";
import type { PieceRecord } from "../dataset/record.js";
import { addTo, type Stereo, sampleRate } from "../render/stereo.js";
import { decodeWav, encodeWav } from "../render/wav.js";
import { promptOf } from "./songs.js";
import {
  addedEnergy,
  harmonyCorrelation,
  logSpectralDistance,
  mean,
  separate,
  unchangedShare,
} from "./task-measures.js";

export interface Trial {
  /** Among all trials. */
  name: string;
  /** As POST /release_task takes them. */
  parameters: Record<string, unknown>;
  /** What the task works on, mono. */
  source: Float32Array;
  /** What the generator knows to be right. */
  truth: Float32Array;
  /** Values by what they are of; keys of `taskRows`. */
  measure(candidate: Float32Array): Record<string, number>;
}

/** A piece with its stems, all in mono. */
export interface LoadedPiece {
  record: PieceRecord;
  /** Holds its files. */
  directory: string;
  mix: Float32Array;
  stems: Map<StemName, Float32Array>;
}

export function loadPiece(directory: string, record: PieceRecord): LoadedPiece {
  const read = (path: string): Float32Array => monoOf(readStereo(directory, path));
  const stems = new Map<StemName, Float32Array>();
  for (const [stem, path] of Object.entries(record.stems)) stems.set(stem as StemName, read(path));
  return { record, directory, mix: read(record.mix), stems };
}

/** @param others pieces that this one is told from */
export function trialsOf(piece: LoadedPiece, others: readonly LoadedPiece[]): Trial[] {
  const stems = [...piece.stems.keys()];
  const pitched = stems.filter((stem) => !unpitched.has(stem));
  const [first] = pitched;
  const last = pitched.at(-1);
  const trials = [coverTrial(piece, others), repaintTrial(piece, others)];
  if (stems.length < 2 || first === undefined || last === undefined) return trials;
  return [
    ...trials,
    ...stems.map((stem) => extractTrial(piece, stem)),
    legoTrial(piece, last),
    completeTrial(piece, first),
  ];
}

const unpitched = new Set<StemName>(["drums", "percussion", "fx"]);

/** Asked for in the words of another piece, without key or tempo, so that harmony can only come from the source. */
function coverTrial(piece: LoadedPiece, others: readonly LoadedPiece[]): Trial {
  const { record, mix } = piece;
  const prompt = others[0]?.record.caption ?? record.caption;
  return {
    name: `${record.id}-cover`,
    parameters: {
      ...commonOf(record, "cover"),
      prompt,
      lyrics: record.lyrics,
      src_audio_path: mixPath(piece),
    },
    source: mix,
    truth: mix,
    measure(candidate) {
      const own = harmonyCorrelation(candidate, mix);
      if (others.length === 0) return { "cover harmony": own };
      const rest = others.map((other) => harmonyCorrelation(candidate, other.mix));
      return {
        "cover harmony": own,
        "cover other harmony": mean(rest),
        "cover nearest": Number(rest.every((value) => value < own)),
      };
    },
  };
}

/** The middle third. */
function repaintTrial(piece: LoadedPiece, others: readonly LoadedPiece[]): Trial {
  const { record, mix } = piece;
  const [start, end] = [1, 2].map((third) => Math.round((third * record.durationSeconds) / 3)) as [
    number,
    number,
  ];
  const [from, to] = [start * sampleRate, end * sampleRate];
  const truth = mix.slice();
  truth.set((others[0]?.mix ?? mix).subarray(from, to), from);
  const outside = (audio: Float32Array): Float32Array => {
    const rest = new Float32Array(mix.length - (to - from));
    rest.set(audio.subarray(0, from));
    rest.set(audio.subarray(to, mix.length), from);
    return rest;
  };
  return {
    name: `${record.id}-repaint`,
    parameters: {
      ...{ ...promptOf(record), ...commonOf(record, "repaint"), src_audio_path: mixPath(piece) },
      ...{ repainting_start: start, repainting_end: end },
    },
    source: mix,
    truth,
    measure: (candidate) => ({
      "repaint unchanged": unchangedShare(outside(candidate), outside(mix)),
      "repaint outside": logSpectralDistance(outside(candidate), outside(mix)),
      "repaint inside": logSpectralDistance(candidate.subarray(from, to), mix.subarray(from, to)),
    }),
  };
}

/** The engine's own requirement: the wanted stem 6 dB over its share in the mix. */
const wantedRaise = 6;

function extractTrial(piece: LoadedPiece, stem: StemName): Trial {
  const { record, mix } = piece;
  const wanted = [...piece.stems.keys()].indexOf(stem);
  const all = [...piece.stems.values()];
  const before = separate(mix, all, wanted).wantedDecibels;
  return {
    name: `${record.id}-extract-${stem}`,
    parameters: {
      ...{ ...promptOf(record), ...commonOf(record, "extract"), src_audio_path: mixPath(piece) },
      track_name: stem,
    },
    source: mix,
    truth: all[wanted] as Float32Array,
    measure(candidate) {
      const { wantedDecibels, explained } = separate(candidate, all, wanted);
      const raise = wantedDecibels - before;
      return {
        "extract raise": raise,
        "extract raised": Number(raise >= wantedRaise),
        "extract explained": explained,
      };
    },
  };
}

/** The stem anew, from all the others together. */
function legoTrial(piece: LoadedPiece, stem: StemName): Trial {
  const { record } = piece;
  const path = join(piece.directory, record.id, "context", `without-${stem}.wav`);
  if (!existsSync(path)) writeContext(piece, stem, path);
  const source = monoOf(decodeWav(readFileSync(path)));
  return {
    name: `${record.id}-lego-${stem}`,
    parameters: {
      ...{ ...promptOf(record), ...commonOf(record, "lego"), src_audio_path: path, track_name: stem },
    },
    source,
    truth: piece.stems.get(stem) as Float32Array,
    measure: (candidate) => accompaniment("lego", candidate, source),
  };
}

/** The band to a stem. */
function completeTrial(piece: LoadedPiece, stem: StemName): Trial {
  const { record } = piece;
  const source = piece.stems.get(stem) as Float32Array;
  return {
    name: `${record.id}-complete-${stem}`,
    parameters: {
      ...{ ...promptOf(record), ...commonOf(record, "complete") },
      src_audio_path: join(piece.directory, record.stems[stem] as string),
      track_classes: [...piece.stems.keys()].filter((other) => other !== stem),
    },
    source,
    truth: piece.mix,
    measure: (candidate) => accompaniment("complete", candidate, source),
  };
}

function accompaniment(task: string, candidate: Float32Array, source: Float32Array): Record<string, number> {
  return {
    [`${task} harmony`]: harmonyCorrelation(candidate, source),
    [`${task} added`]: addedEnergy(candidate, source),
  };
}

function commonOf({ seed }: PieceRecord, task: string): Record<string, unknown> {
  return { task_type: task, seed, audio_duration: null };
}

function mixPath({ directory, record }: LoadedPiece): string {
  return join(directory, record.mix);
}

function writeContext({ directory, record }: LoadedPiece, stem: StemName, path: string): void {
  const audio = readStereo(directory, record.mix);
  addTo(audio, readStereo(directory, record.stems[stem] as string), -1);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, encodeWav(audio));
}

function readStereo(directory: string, path: string): Stereo {
  return decodeWav(readFileSync(join(directory, path)));
}

export function monoOf({ left, right }: Stereo): Float32Array {
  return left.map((sample, i) => (sample + (right[i] as number)) / 2);
}
