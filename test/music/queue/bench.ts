import type { JobControl, Jobs } from "../../../src/music/queue/job-queue.js";
import type { SongResult, Task } from "../../../src/music/queue/store.js";
import { makeResult } from "../tasks.js";

/** A job held open until the test says how it ends. */
export interface HeldJob {
  task: Task;
  context: JobControl;
  succeed(result?: SongResult): void;
  fail(error: Error): void;
}

/** Holds every job, in the order in which they start. */
export class Bench implements Jobs {
  readonly started: HeldJob[] = [];
  /** How the tasks that ended did so, in order. */
  readonly ends: { id: string; state: string }[] = [];
  /** Whether jobs go on when they are told to stop. */
  isDeaf = false;
  #onStart: (() => void) | null = null;

  run(task: Task, context: JobControl): Promise<SongResult> {
    return new Promise<SongResult>((resolve, reject) => {
      context.signal.addEventListener("abort", () => {
        if (!this.isDeaf) reject(context.signal.reason);
      });
      this.started.push({ task, context, succeed: (result = makeResult()) => resolve(result), fail: reject });
      this.#onStart?.();
    });
  }

  async ended({ id, state }: Task): Promise<void> {
    this.ends.push({ id, state });
  }

  async startedAtLeast(count: number): Promise<HeldJob> {
    while (this.started.length < count) {
      await new Promise<void>((resolve) => {
        this.#onStart = resolve;
      });
    }
    return this.started[count - 1] as HeldJob;
  }
}
