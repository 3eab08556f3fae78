/** What a waiting client sees of a job: one rising number, the name of the stage, and a line of text. */
import type { Progress } from "../../engine/addon.js";

export interface TaskProgress {
  /** 0 to 1, never falling within a job. */
  value: number;
  stage: string;
  /** A progress line in the form of tqdm, which clients scrape. */
  text: string;
  /** What can be heard of the first song by now. */
  previewSeconds: number;
}

/** The steps of a job, in order. */
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
  /** What `stage` reads; clients match these words. */
  name: string;
  /** What the progress line starts with; clients look for "processing source", "LLM usage", "DiT diffusion", "decoding", "saving". */
  label: string;
}

/** Where the steps that each song of a batch takes begin and end; those before are common to all. */
const SONGS_FROM = 0.03;
const SONGS_TO = 0.99;

/** `song`: such as "song 2 of 3". */
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

/** Turns the reports of one job's steps into `TaskProgress`. */
export class JobProgress {
  #value = 0.01;
  #song = 0;
  #stageName = "running";
  #stageStartedMs = performance.now();
  #latest: TaskProgress = { value: 0.01, stage: "running", text: "", previewSeconds: 0 };

  constructor(
    private readonly batchSize: number,
    private readonly report: (progress: TaskProgress) => void,
  ) {}

  /** What follows is of the song with this index. */
  beginSong(index: number): void {
    this.#song = index;
  }

  /** The listener to hand to the engine for `step`; the step counts as begun. */
  enter(step: JobStep, first: Progress = { stage: "load", done: 0, total: 0 }): (progress: Progress) => void {
    this.#update(step, first);
    return (progress) => this.#update(step, progress);
  }

  #update(step: JobStep, { stage: reported, done, total }: Progress): void {
    const stage = stageOf(step, reported, `song ${this.#song + 1} of ${this.batchSize}`);
    if (stage.name !== this.#stageName) {
      this.#stageName = stage.name;
      this.#stageStartedMs = performance.now();
    }
    const fraction = total > 0 ? Math.min(done / total, 1) : 0;
    const value = this.#withinJob(stage.from + fraction * (stage.to - stage.from));
    this.#value = Math.min(Math.max(this.#value, value), 0.99);
    const elapsedSeconds = (performance.now() - this.#stageStartedMs) / 1000;
    const text = total > 0 ? progressLine(stage.label, done, total, elapsedSeconds) : stage.label;
    this.#tell({ value: Math.round(this.#value * 1e4) / 1e4, stage: stage.name, text });
  }

  /** More of the first song can be heard. */
  heard(previewSeconds: number): void {
    this.#tell({ previewSeconds });
  }

  #tell(change: Partial<TaskProgress>): void {
    this.#latest = { ...this.#latest, ...change };
    this.report(this.#latest);
  }

  /** The way of one song, as part of the way of all. */
  #withinJob(value: number): number {
    if (value <= SONGS_FROM) return value;
    const span = SONGS_TO - SONGS_FROM;
    return SONGS_FROM + ((this.#song + (value - SONGS_FROM) / span) / this.batchSize) * span;
  }
}

/** For example `DiT diffusion: 50%|#####     | 4/8 [00:02<00:02, 1.60steps/s]`. */
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
