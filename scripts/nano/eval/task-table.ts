/** What was measured of the tasks, as a table: the model beside what is right and what does nothing. */
import { markdown } from "./table.js";
import { mean } from "./task-measures.js";

/** Values of one trial for every candidate, by the names of rows. */
export type TrialValues = Record<Candidate, Record<string, number>>;

export const candidates = ["model", "ground truth", "source unchanged", "white noise"] as const;
export type Candidate = (typeof candidates)[number];

type Unit = "" | "%" | "dB";

/** By the names that trials give their values. */
export const taskRows: Record<string, { title: string; unit: Unit }> = {
  "cover harmony": { title: "cover: chroma correlation with its source", unit: "" },
  "cover other harmony": { title: "cover: the same with the other sources", unit: "" },
  "cover nearest": { title: "cover: nearer to its source than to any other", unit: "%" },
  "repaint unchanged": { title: "repaint: samples unchanged outside the window", unit: "%" },
  "repaint outside": { title: "repaint: spectral distance outside the window", unit: "dB" },
  "repaint inside": { title: "repaint: spectral distance inside the window", unit: "dB" },
  "extract raise": { title: "extract: wanted stem over the others, against the mix", unit: "dB" },
  "extract raised": { title: "extract: raised by 6 dB or more", unit: "%" },
  "extract explained": { title: "extract: energy that is any of the stems", unit: "%" },
  "lego harmony": { title: "lego: chroma correlation with its context", unit: "" },
  "lego added": { title: "lego: energy beyond its context", unit: "%" },
  "complete harmony": { title: "complete: chroma correlation with the given stem", unit: "" },
  "complete added": { title: "complete: energy beyond the given stem", unit: "%" },
};

/** Means over the trials that have a value for a row. */
export function taskTable(trials: readonly TrialValues[]): string {
  const lines = Object.entries(taskRows).map(([name, { title, unit }]) => [
    title,
    ...candidates.map((candidate) => {
      const values = trials.flatMap((trial) => trial[candidate][name] ?? []);
      return formatted(values, unit);
    }),
  ]);
  return markdown([["", ...candidates], ...lines]);
}

function formatted(values: number[], unit: Unit): string {
  if (values.length === 0) return "-";
  if (unit === "%") return `${(100 * mean(values)).toFixed(0)} %`;
  return unit === "dB" ? `${mean(values).toFixed(1)} dB` : mean(values).toFixed(2);
}
