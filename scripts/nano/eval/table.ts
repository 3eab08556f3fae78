/** The evaluation's figures, the model between the ceiling and the floor. */
import type { PieceRecord } from "../dataset/record.js";
import { judgeKey, judgeTempo } from "./verdicts.js";

/** What analyse.py says of one recording. */
export interface Measurement {
  seconds: number;
  tempo: number;
  key: string | null;
  genre: string;
  loudness: number;
  peak: number;
  silence: number;
  clipped: number;
}

/** The recordings of one column, in the order of the prompts. */
export interface Column {
  title: string;
  measurements: Measurement[];
  /** What making each of them took; empty where nobody measured. */
  computeSeconds: number[];
  /** Log-mel distances between two seeds' recordings, dB. */
  seedDistances: number[];
  /** Log-mel distances between recordings and what became of them, dB. */
  reconstructionDistances: number[];
}

type Row = [title: string, cell: (column: Column) => string];

export function evaluationTable(records: readonly PieceRecord[], columns: readonly Column[]): string {
  const share = (title: string, holds: (record: PieceRecord, measured: Measurement) => boolean): Row => [
    title,
    ({ measurements }) =>
      percent(mean(measurements.map((m, i) => Number(holds(records[i] as PieceRecord, m))))),
  ];
  const middle = (title: string, value: (m: Measurement) => number, unit: string): Row => [
    title,
    ({ measurements }) =>
      measurements.length === 0 ? "-" : `${median(measurements.map(value)).toFixed(1)} ${unit}`,
  ];
  const rows: Row[] = [
    share("tempo within 4 %", (r, m) => judgeTempo(r.bpm, m.tempo) === "exact"),
    share("tempo at another metrical level", (r, m) => judgeTempo(r.bpm, m.tempo) === "metrical"),
    share("key exact", (r, m) => judgeKey(r.keyScale, m.key) === "exact"),
    share("key related (fifth, relative, parallel)", (r, m) => judgeKey(r.keyScale, m.key) === "related"),
    share("genre recognised", (r, m) => r.genre === m.genre),
    share("duration exact", (r, m) => Math.abs(m.seconds - r.durationSeconds) < 0.001),
    share("clips (more than 1 sample in 10 000 at full scale)", (_, m) => m.clipped > 1e-4),
    middle("loudness", (m) => m.loudness, "LUFS"),
    middle("peak", (m) => m.peak, "dB"),
    middle("silent frames", (m) => 100 * m.silence, "%"),
    ["time for 30 s of music (median)", (column) => timeForThirtySeconds(column)],
    ["distance between two seeds", ({ seedDistances }) => decibels(seedDistances)],
    ["distance of VAE reconstruction", ({ reconstructionDistances }) => decibels(reconstructionDistances)],
  ];
  const lines = rows.map(([title, cell]) => [title, ...columns.map(cell)]);
  return markdown([["", ...columns.map(({ title }) => title)], ...lines]);
}

function markdown([head = [], ...body]: string[][]): string {
  const line = (cells: string[]): string => `| ${cells.join(" | ")} |`;
  return [line(head), line(head.map((_, index) => (index === 0 ? "---" : "---:"))), ...body.map(line)].join(
    "\n",
  );
}

function percent(share: number): string {
  return Number.isNaN(share) ? "-" : `${(100 * share).toFixed(0)} %`;
}

function decibels(distances: number[]): string {
  return distances.length === 0 ? "-" : `${mean(distances).toFixed(1)} dB`;
}

function timeForThirtySeconds({ measurements, computeSeconds }: Column): string {
  if (computeSeconds.length === 0) return "-";
  const times = computeSeconds.map(
    (seconds, index) => (30 * seconds) / (measurements[index]?.seconds ?? NaN),
  );
  return `${median(times).toFixed(1)} s`;
}

function mean(values: number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

function median(values: number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}
