/** The rules of every queue: who is next, how often a task is tried, what a refused client is told; and what it counts. */
import type { TaskState } from "./store.js";

/**
 * A task that was running when its process died this often is not tried again. A server that works alone meets all of
 * its kills with the same tasks, and a few from outside say nothing of them; in a fleet each death is another process'.
 */
export const MAX_DEATHS = { embedded: 10, fleet: 3 } as const;
/** How often a task is tried whose song the disk has no room for. */
export const MAX_DISK_FAILURES = 10;
/** What a task waits after its second interruption, or after a full disk; twice as long each further time. */
const FIRST_HOLD_MS = 5_000;
const MAX_HOLD_MS = 10 * 60_000;
const MAX_RETRY_AFTER_SECONDS = 3600;

/** `times`: how often it was held before. */
export function holdMs(times: number): number {
  return Math.min(FIRST_HOLD_MS * 2 ** times, MAX_HOLD_MS);
}

/** When a full queue is likely to have room again, which is when the next job ends. */
export function retryAfterSeconds(averageJobSeconds: number, places: number): number {
  return Math.min(Math.max(Math.ceil(averageJobSeconds / places), 1), MAX_RETRY_AFTER_SECONDS);
}

export function deathsMessage(deaths: number): string {
  return `the server stopped ${deaths} times while this task ran; it is not tried again`;
}

/**
 * Fair shares: waiting tasks are begun by their turn, then in the order of acceptance. A share's next task has the turn
 * after its last one, but none that has passed: whoever sends many waits for them, and whoever comes new waits for one
 * task of each other share. With one share this is first in, first out.
 */
export class Turns {
  #current = 0;
  readonly #last = new Map<string, number>();

  /** The turn of a new task. */
  next(share: string): number {
    const turn = Math.max(this.#current, (this.#last.get(share) ?? 0) + 1);
    this.#last.set(share, turn);
    return turn;
  }

  /** A task was found waiting or has begun. */
  took(share: string, turn: number): void {
    this.#last.set(share, Math.max(turn, this.#last.get(share) ?? 0));
  }

  began(turn: number): void {
    this.#current = Math.max(this.#current, turn);
    for (const [share, last] of this.#last) if (last < this.#current) this.#last.delete(share);
  }
}

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
