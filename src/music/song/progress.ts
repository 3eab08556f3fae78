/** Progress of a job as clients see it: a rising fraction, a stage name and a line of text. */
import type { Progress } from "../../engine/addon.js";

export interface TaskProgress {
  /** Fraction of the job that is done, 0 to 1; never falls. */
  value: number;
  stage: string;
  /** Progress line in tqdm format; clients parse it. */
  text: string;
  /** How many seconds of the first song the preview can play. */
  previewSeconds: number;
}

/**
 * Range of a step in the progress of the job; the name shown as `stage`, with # for the songs; and the start of the
 * progress line. Clients match the names, and "processing source", "LLM usage", "DiT diffusion", "decoding", "saving".
 */
type Stage = readonly [from: number, to: number, name: string, label: string];

/** Stages by step, and by step and what the engine reports. */
const STAGES = {
  load: [0.01, 0.02, "Initializing...", "Initializing"],
  source: [0.02, 0.03, "Reading source audio...", "Processing source audio"],
  codes: [0.03, 0.5, "Extracting audio codes...", "Processing source audio"],
  understand: [0.5, 0.98, "Describing the recording...", "LLM usage (understanding)"],
  sample: [0.03, 0.06, "Writing a song sheet...", "LLM usage (song sheet)"],
  format: [0.06, 0.1, "Formatting caption and lyrics...", "LLM usage (format)"],
  plan: [0.1, 0.2, "Phase 1: Generating CoT metadata (#)...", "LLM usage (metadata)"],
  "plan codes": [0.2, 0.5, "Phase 2: Generating audio codes (#)...", "LLM usage (audio codes)"],
  render: [0.51, 0.52, "Preparing inputs...", "Preparing inputs"],
  "render denoise": [0.52, 0.79, "Generating music (#)...", "DiT diffusion"],
  "render decode": [0.8, 0.98, "Decoding audio...", "Decoding audio"],
  encode: [0.99, 1, "Preparing audio data...", "Saving audio"],
} as const satisfies Record<string, Stage>;

export type JobStep = Exclude<keyof typeof STAGES, `${string} ${string}`>;

/**
 * Bounds of the two phases in the progress of a job: all songs are composed, then each song is rendered and
 * encoded.
 */
const COMPOSE_FROM = 0.03;
const RENDER_FROM = 0.5;
const RENDER_TO = 0.99;

export class SongProgress {
  #value = 0.01;
  #first = 0;
  #count = 1;
  #stage = "running";
  #stageStartedMs = performance.now();
  #latest: TaskProgress = { value: 0.01, stage: "running", text: "", previewSeconds: 0 };

  constructor(
    private readonly batchSize: number,
    private readonly onProgress: (progress: TaskProgress) => void,
  ) {}

  /** Sets the songs that the next steps make together: `count` songs, from index `first` on. */
  beginSongs(first: number, count: number): void {
    this.#first = first;
    this.#count = count;
  }

  /** Starts `step`. Returns the progress callback to pass to the engine. */
  enter(step: JobStep, first: Progress = { stage: "load", done: 0, total: 0 }): (progress: Progress) => void {
    this.#update(step, first);
    return (progress) => this.#update(step, progress);
  }

  #update(step: JobStep, { stage: reported, done, total }: Progress): void {
    const numbers =
      this.#count === 1
        ? `song ${this.#first + 1}`
        : `songs ${this.#first + 1} to ${this.#first + this.#count}`;
    const stages: Readonly<Record<string, Stage>> = STAGES;
    const [from, to, name, label] = stages[`${step} ${reported}`] ?? STAGES[step];
    const stage = name.replace("#", `${numbers} of ${this.batchSize}`);
    if (stage !== this.#stage) {
      this.#stage = stage;
      this.#stageStartedMs = performance.now();
    }
    const fraction = total > 0 ? Math.min(done / total, 1) : 0;
    const value = this.#withinJob(from + fraction * (to - from));
    this.#value = Math.min(Math.max(this.#value, value), 0.99);
    const elapsedSeconds = (performance.now() - this.#stageStartedMs) / 1000;
    const text = total > 0 ? progressLine(label, done, total, elapsedSeconds) : label;
    this.#notify({ value: Math.round(this.#value * 1e4) / 1e4, stage, text });
  }

  reportPreview(previewSeconds: number): void {
    this.#notify({ previewSeconds });
  }

  #notify(change: Partial<TaskProgress>): void {
    this.#latest = { ...this.#latest, ...change };
    this.onProgress(this.#latest);
  }

  /** Maps the progress of the current songs to the progress of the batch. */
  #withinJob(value: number): number {
    if (value <= COMPOSE_FROM) return value;
    const [from, to] = value <= RENDER_FROM ? [COMPOSE_FROM, RENDER_FROM] : [RENDER_FROM, RENDER_TO];
    const fraction = (value - from) / (to - from);
    return from + ((this.#first + fraction * this.#count) / this.batchSize) * (to - from);
  }
}

/** Returns a progress line such as `DiT diffusion: 50%|#####     | 4/8 [00:02<00:02, 1.60steps/s]`. */
export function progressLine(label: string, done: number, total: number, elapsedSeconds: number): string {
  const fraction = Math.min(done / total, 1);
  const bar = "#".repeat(Math.floor(fraction * 10)).padEnd(10);
  const rate = elapsedSeconds > 0 ? done / elapsedSeconds : 0;
  const left = rate > 0 ? clock((total - done) / rate) : "?";
  const speed = rate > 0 ? `${rate.toFixed(2)}steps/s` : "?steps/s";
  return `${label}: ${Math.floor(fraction * 100)}%|${bar}| ${done}/${total} [${clock(elapsedSeconds)}<${left}, ${speed}]`;
}

function clock(seconds: number): string {
  const whole = Math.round(seconds);
  return `${String(Math.floor(whole / 60)).padStart(2, "0")}:${String(whole % 60).padStart(2, "0")}`;
}
