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

export type JobStep =
  | "load"
  | "source"
  | "sample"
  | "format"
  | "plan"
  | "render"
  | "codes"
  | "understand"
  | "encode";

interface Stage {
  from: number;
  to: number;
  /** Name of the step, shown as `stage`; clients match these words. */
  name: string;
  /** Start of the progress line; clients match "processing source", "LLM usage", "DiT diffusion", "decoding", "saving". */
  label: string;
}

/**
 * Bounds of the two phases in the progress of a job: all songs are composed, then each song is rendered and
 * encoded.
 */
const COMPOSE_FROM = 0.03;
const RENDER_FROM = 0.5;
const RENDER_TO = 0.99;

/** @param song for example "song 2 of 3" or "songs 1 to 3 of 3" */
function stageOf(step: JobStep, reported: Progress["stage"], song: string): Stage {
  switch (step) {
    case "load":
      return { from: 0.01, to: 0.02, name: "Initializing...", label: "Initializing" };
    case "source":
      return { from: 0.02, to: 0.03, name: "Reading source audio...", label: "Processing source audio" };
    case "codes":
      return { from: 0.03, to: 0.5, name: "Extracting audio codes...", label: "Processing source audio" };
    case "understand":
      return { from: 0.5, to: 0.98, name: "Describing the recording...", label: "LLM usage (understanding)" };
    case "sample":
      return { from: 0.03, to: 0.06, name: "Writing a song sheet...", label: "LLM usage (song sheet)" };
    case "format":
      return { from: 0.06, to: 0.1, name: "Formatting caption and lyrics...", label: "LLM usage (format)" };
    case "plan":
      if (reported === "codes") {
        const name = `Phase 2: Generating audio codes (${song})...`;
        return { from: 0.2, to: 0.5, name, label: "LLM usage (audio codes)" };
      }
      return {
        from: 0.1,
        to: 0.2,
        name: `Phase 1: Generating CoT metadata (${song})...`,
        label: "LLM usage (metadata)",
      };
    case "render":
      if (reported === "denoise") {
        const name = `Generating music (${song})...`;
        return { from: 0.52, to: 0.79, name, label: "DiT diffusion" };
      }
      if (reported === "decode")
        return { from: 0.8, to: 0.98, name: "Decoding audio...", label: "Decoding audio" };
      return { from: 0.51, to: 0.52, name: "Preparing inputs...", label: "Preparing inputs" };
    case "encode":
      return { from: 0.99, to: 1, name: "Preparing audio data...", label: "Saving audio" };
  }
}

export class SongProgress {
  #value = 0.01;
  #first = 0;
  #count = 1;
  #stageName = "running";
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
    const stage = stageOf(step, reported, `${numbers} of ${this.batchSize}`);
    if (stage.name !== this.#stageName) {
      this.#stageName = stage.name;
      this.#stageStartedMs = performance.now();
    }
    const fraction = total > 0 ? Math.min(done / total, 1) : 0;
    const value = this.#withinJob(stage.from + fraction * (stage.to - stage.from));
    this.#value = Math.min(Math.max(this.#value, value), 0.99);
    const elapsedSeconds = (performance.now() - this.#stageStartedMs) / 1000;
    const text = total > 0 ? progressLine(stage.label, done, total, elapsedSeconds) : stage.label;
    this.#notify({ value: Math.round(this.#value * 1e4) / 1e4, stage: stage.name, text });
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
