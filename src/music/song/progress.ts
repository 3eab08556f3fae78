/** Progress of a job as clients see it: a rising fraction, a stage name and a line of text. */
import type { Progress } from "../../engine/addon.js";
import { STAGE_NAMES, STAGES, type StageName, type StageSeconds } from "./stages.js";

export interface TaskProgress {
  /** Share of the job's time that is over, as far as known; 0 to 1, never falls. */
  value: number;
  stage: string;
  /** Progress line in tqdm format; clients parse it. */
  text: string;
  /** How many seconds of the first song the preview can play. */
  previewSeconds: number;
}

export type JobStep = Exclude<StageName, `${string} ${string}`>;

/** Progress in a step; the engine also says in which of its stages. */
type StepProgress = Omit<Progress, "stage"> & Partial<Progress>;

/** Starts the progress of a job: clients see it before the first step. */
const START = 0.01;
/** A job is not done before its record is stored. */
const MAX = 0.99;

/** Songs [first, first + count) of the job. */
interface Songs {
  first: number;
  count: number;
}

/** A stage in progress. */
interface Current {
  name: StageName;
  title: string;
  startedMs: number;
}

export class SongProgress {
  #songs: Songs = { first: 0, count: 1 };
  #current: Current = { name: "load", title: "running", startedMs: performance.now() };
  #step: JobStep = "load";
  /** Share of each song that is finished. */
  readonly #finished: number[] = [];
  #latest: TaskProgress = { value: START, stage: "running", text: "", previewSeconds: 0 };
  /** Number of songs that are done, by stage. */
  readonly #done = new Map<StageName, number>();
  readonly #seconds = new Map<StageName, number>();

  /** @param expected seconds for each song */
  constructor(
    private readonly batchSize: number,
    private readonly expected: StageSeconds,
    private readonly onProgress: (progress: TaskProgress) => void,
  ) {}

  /** Sets the songs that the next steps make together: `count` songs, from index `first` on. */
  beginSongs(first: number, count: number): void {
    this.#songs = { first, count };
  }

  /** Starts `step`. Returns the progress callback to pass to the engine. */
  enter(step: JobStep): (progress: StepProgress) => void {
    this.#step = step;
    this.#update(step, this.#songs, { done: 0, total: 0 });
    return (progress) => this.#update(step, this.#songs, progress);
  }

  /** Progress callback of a song that is finished while others are rendered, whose stage stays in the title. */
  finish(index: number): (progress: StepProgress) => void {
    return (progress) => {
      this.#finished[index] = shareOf(progress);
      this.#done.set(
        "encode",
        this.#finished.reduce((sum, share) => sum + share, 0),
      );
      // The song alone reaches nothing: songs may be finished in any order.
      if (this.#step === "encode") this.#update("encode", { first: 0, count: 0 }, progress);
      else this.#notify({ value: this.#value() });
    };
  }

  /** Ends the last stage. @returns the seconds that the stages took for each song */
  end(): StageSeconds {
    this.#measure();
    return new Map([...this.#seconds].map(([name, seconds]) => [name, seconds / this.batchSize]));
  }

  #update(step: JobStep, songs: Songs, { stage: reported, done, total }: StepProgress): void {
    const { first, count } = songs;
    const numbers = count === 1 ? `song ${first + 1}` : `songs ${first + 1} to ${first + count}`;
    const detailed = `${step} ${reported}`;
    const name = isStage(detailed) ? detailed : step;
    const { name: pattern, label } = STAGES[name];
    const title = pattern.replace("#", `${numbers} of ${this.batchSize}`);
    if (title !== this.#current.title) {
      this.#measure();
      this.#current = { name, title, startedMs: performance.now() };
    }
    const elapsedSeconds = (performance.now() - this.#current.startedMs) / 1000;
    const text = total > 0 ? progressLine(label, done, total, elapsedSeconds) : label;
    this.#notify({ value: this.#advance(name, songs, shareOf({ done, total })), stage: title, text });
  }

  /** Adds the time of the current stage. */
  #measure(): void {
    const { name, startedMs } = this.#current;
    const seconds = (performance.now() - startedMs) / 1000;
    this.#seconds.set(name, (this.#seconds.get(name) ?? 0) + seconds);
  }

  /** @returns the share of the expected time of the job that is over */
  #advance(current: StageName, { first, count }: Songs, fraction: number): number {
    const reach = (name: StageName, songs: number) =>
      this.#done.set(name, Math.max(this.#done.get(name) ?? 0, songs));
    for (const name of STAGE_NAMES.slice(0, STAGE_NAMES.indexOf(current))) reach(name, first + count);
    reach(current, first + fraction * count);
    return this.#value();
  }

  #value(): number {
    let over = 0;
    let all = 0;
    for (const [name, seconds] of this.expected) {
      over += seconds * (this.#done.get(name) ?? 0);
      all += seconds * this.batchSize;
    }
    const value = Math.min(Math.max(this.#latest.value, all > 0 ? over / all : 0), MAX);
    return Math.round(value * 1e4) / 1e4;
  }

  reportPreview(previewSeconds: number): void {
    this.#notify({ previewSeconds });
  }

  #notify(change: Partial<TaskProgress>): void {
    this.#latest = { ...this.#latest, ...change };
    this.onProgress(this.#latest);
  }
}

function shareOf({ done, total }: StepProgress): number {
  return total > 0 ? Math.min(done / total, 1) : 0;
}

function isStage(name: string): name is StageName {
  return name in STAGES;
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
