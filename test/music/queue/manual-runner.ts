import type { SongResult, Task } from "../../../src/music/queue/store.js";
import type { RunControl, TaskRunner } from "../../../src/music/queue/task-queue.js";
import { makeResult } from "../tasks.js";

export interface HeldJob {
  task: Task;
  context: RunControl;
  succeed(result?: SongResult): void;
  fail(error: Error): void;
}

/** Task runner whose jobs run until the test ends them. `started` lists the jobs in starting order. */
export class ManualRunner implements TaskRunner {
  readonly started: HeldJob[] = [];
  /** Ids and final states of tasks, in the order in which they ended. */
  readonly ends: { id: string; state: string }[] = [];
  /** Whether jobs ignore their abort signal. */
  ignoresAbort = false;
  /** Work of `cleanUp`; a test may let it hang or fail. */
  cleansUp: () => Promise<void> = async () => {};
  #onStart: (() => void) | null = null;

  run(task: Task, context: RunControl): Promise<SongResult> {
    return new Promise<SongResult>((resolve, reject) => {
      context.signal.addEventListener("abort", () => {
        if (!this.ignoresAbort) reject(context.signal.reason);
      });
      this.started.push({ task, context, succeed: (result = makeResult()) => resolve(result), fail: reject });
      this.#onStart?.();
    });
  }

  async cleanUp({ id, state }: Task): Promise<void> {
    this.ends.push({ id, state });
    await this.cleansUp();
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
