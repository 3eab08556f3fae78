import type { TaskState } from "./store.js";

/** How many tasks the store holds in each state, and how long the last jobs took. */
export class JobStatistics {
  readonly #counts: Record<TaskState, number> = { queued: 0, running: 0, succeeded: 0, failed: 0 };
  readonly #jobSeconds: number[] = [];

  /** `initialJobSeconds` is the average until the first job ends; `window` the number of jobs averaged. */
  constructor(
    private readonly initialJobSeconds: number,
    private readonly window: number,
  ) {}

  /** A task came in (`from` null), changed state, or left the store (`to` null). */
  moved(from: TaskState | null, to: TaskState | null): void {
    if (from !== null) this.#counts[from]--;
    if (to !== null) this.#counts[to]++;
  }

  jobTook(seconds: number): void {
    this.#jobSeconds.push(seconds);
    if (this.#jobSeconds.length > this.window) this.#jobSeconds.shift();
  }

  get averageJobSeconds(): number {
    if (this.#jobSeconds.length === 0) return this.initialJobSeconds;
    return this.#jobSeconds.reduce((sum, seconds) => sum + seconds, 0) / this.#jobSeconds.length;
  }

  get counts(): Record<TaskState | "total", number> {
    const { queued, running, succeeded, failed } = this.#counts;
    return { total: queued + running + succeeded + failed, queued, running, succeeded, failed };
  }
}
