/** The evaluation's table: the model's figures between those of composed pieces and of noise. */
import { canonicalKeyScale } from "../../../src/engine/metadata.js";
import { modulo } from "../compose/theory.js";

/** Facts that a prompt asks for; null for those it leaves open. */
export interface PromptFacts {
  bpm: number | null;
  keyScale: string | null;
  genre: string | null;
}

/** Measurement of one recording by analyse.py. */
export interface Measurement {
  seconds: number;
  tempo: number;
  beatPeak: number;
  key: string | null;
  harmonicChange: number;
  /** Null if there is no sound between 60 and 440 Hz. */
  lowFlatness: number | null;
  recurrence: number;
  /** 0 .. 1 */
  melody: number;
  genre: string;
  loudness: number;
  silence: number;
  clipped: number;
}

/** The recordings of one column. */
export interface Column extends Measured {
  title: string;
  /** The request of each recording. */
  asked: readonly PromptFacts[];
  /** Time to make each; empty if it was not measured. */
  computeSeconds: number[];
}

/** Output of analyse.py for a column. */
export interface Measured {
  measurements: Measurement[];
  /** Per song with two choruses and a verse: whether the second chorus is nearer to the first than to the verse. */
  returns: boolean[];
  /** Distances between two seeds' recordings, in standard deviations of features. */
  seedDistances: number[];
  /** Log-mel distances between recordings and their reconstructions, dB. */
  reconstructionDistances: number[];
}

/** Values that a cell averages, without null; digits and unit of the mean. */
type Row = [title: string, values: (column: Column) => (number | null)[], digits: number, unit?: string];

export function evaluationTable(columns: readonly Column[]): string {
  const each =
    (value: (m: Measurement) => number | null) =>
    ({ measurements }: Column): (number | null)[] =>
      measurements.map(value);
  const rows: Row[] = [
    ...verdictRows("tempo within 4 %, octaves allowed", "bpm", (bpm, m) => isTempo(bpm, m.tempo)),
    ...verdictRows("key exact", "keyScale", (key, m) => isKey(key, m.key)),
    ...verdictRows("genre recognised", "genre", (genre, m) => genre === m.genre),
    ["beat-spectrum peak", each((m) => m.beatPeak), 2],
    ["harmonic change per second", each((m) => m.harmonicChange), 3],
    ["self-similarity at a lag", each((m) => m.recurrence), 2],
    ["second chorus nearer to the first than to the verse", (c) => c.returns.map(percent), 0, " %"],
    ["frames with a stepwise melody in the key", each((m) => 100 * m.melody), 0, " %"],
    ["flatness from 60 to 440 Hz", each((m) => m.lowFlatness), 3],
    ["distance between two seeds", (c) => c.seedDistances, 2],
    ["distance of VAE reconstruction", (c) => c.reconstructionDistances, 1, " dB"],
    ["loudness", each((m) => m.loudness), 1, " LUFS"],
    ["silent frames", each((m) => 100 * m.silence), 1, " %"],
    ["clips (more than 1 sample in 10 000 at full scale)", each((m) => percent(m.clipped > 1e-4)), 0, " %"],
    ["time for 30 s of music (median)", timeForThirtySeconds, 1, " s"],
  ];
  const cells = rows.map(([title, values, ...form]) => [
    title,
    ...columns.map((c) => cell(values(c), ...form)),
  ]);
  const dashes = columns.map(() => "---:");
  const lines = [["", ...columns.map(({ title }) => title)], ["---", ...dashes], ...cells];
  return lines.map((line) => `| ${line.join(" | ")} |`).join("\n");
}

/** Share of songs that do as asked, and as other prompts asked: the mean over all others is chance. */
function verdictRows<Fact extends keyof PromptFacts>(
  title: string,
  fact: Fact,
  holds: (asked: NonNullable<PromptFacts[Fact]>, measured: Measurement) => boolean,
): Row[] {
  const verdicts = ({ asked, measurements }: Column, own: boolean): number[] =>
    measurements.flatMap((measured, index) =>
      asked.flatMap((prompt, other) => {
        const wanted = prompt[fact];
        const isOpen = wanted === null || asked[index]?.[fact] === null;
        return isOpen || (index === other) !== own
          ? []
          : percent(holds(wanted as NonNullable<PromptFacts[Fact]>, measured));
      }),
    );
  return [
    [title, (column) => verdicts(column, true), 0, " %"],
    ["— prompts shuffled (chance)", (column) => verdicts(column, false), 0, " %"],
  ];
}

function percent(holds: boolean): number {
  return holds ? 100 : 0;
}

/** The mean. */
function cell(values: (number | null)[], digits: number, unit = ""): string {
  const known = values.filter((value) => value !== null);
  if (known.length === 0) return "-";
  return `${(known.reduce((sum, value) => sum + value, 0) / known.length).toFixed(digits)}${unit}`;
}

function timeForThirtySeconds({ measurements, computeSeconds }: Column): number[] {
  const times = computeSeconds.map((seconds, i) => (30 * seconds) / (measurements[i]?.seconds ?? Number.NaN));
  const middle = Math.floor(times.length / 2);
  return times.sort((a, b) => a - b).slice(middle, middle + 1);
}

const tempoTolerance = 0.04;

/** The beat of a song may be counted at half or twice the tempo asked for. */
export function isTempo(asked: number, measured: number): boolean {
  return [1 / 2, 1, 2].some((level) => Math.abs(measured / (asked * level) - 1) <= tempoTolerance);
}

/** By sound, not by spelling. @param measured null where no key was found */
export function isKey(asked: string, measured: string | null): boolean {
  if (measured === null) return false;
  const [one, other] = [parseKey(asked), parseKey(measured)];
  return one.tonic === other.tonic && one.isMinor === other.isMinor;
}

const naturals: Record<string, number> = { C: 0, D: 2, E: 4, F: 5, G: 7, A: 9, B: 11 };
const accidentals: Record<string, number> = { "#": 1, "♯": 1, b: -1, "♭": -1 };

function parseKey(text: string): { tonic: number; isMinor: boolean } {
  const [note = "", mode] = canonicalKeyScale(text)?.split(" ") ?? [];
  const natural = naturals[note.charAt(0)];
  if (natural === undefined) throw new RangeError(`${text} is no key`);
  return { tonic: modulo(natural + (accidentals[note.charAt(1)] ?? 0), 12), isMinor: mode === "minor" };
}
