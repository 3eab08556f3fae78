/** Rules that all queues share: fair turns between clients, retry limits and delays, job statistics. */

import { say } from "../../notes.js";
import type { TaskState } from "./store.js";

/**
 * A task fails after this many crashes of the process that ran it. The embedded queue allows more, because a
 * user who kills the server repeatedly interrupts the same task each time.
 */
export const MAX_CRASHES = { embedded: 10, fleet: 3 } as const;
/** Maximum attempts to run a task whose song does not fit on the disk. */
export const MAX_DISK_FAILURES = 10;
/** Failed attempts to record the end of a task, until clients see it unrecorded: about four seconds. */
export const MAX_END_FAILURES = 4;
/** Delay of a task after its second crash, or after the first full disk. It doubles with each further one. */
const FIRST_HOLD_MS = 5_000;
const MAX_HOLD_MS = 10 * 60_000;
const MAX_RETRY_AFTER_SECONDS = 3600;

/**
 * Delay before a task is run again after a crash or a full disk.
 * @param times how often this task was delayed before
 */
export function requeueDelayMs(times: number): number {
  return Math.min(FIRST_HOLD_MS * 2 ** times, MAX_HOLD_MS);
}

/** Estimated time until a job ends and a place in the queue becomes free. */
export function retryAfterSeconds(averageJobSeconds: number, places: number): number {
  return Math.min(Math.max(Math.ceil(averageJobSeconds / places), 1), MAX_RETRY_AFTER_SECONDS);
}

export function crashMessage(crashes: number): string {
  return say("server_stopped", { count: crashes });
}

/**
 * Fair order of the tasks of different clients. Waiting tasks start by turn, then in order of acceptance. A
 * new task gets the turn after the last task of its client, but at least the current turn. A client with many
 * tasks therefore delays only its own tasks, and a new client waits for at most one task of each other
 * client. `Authenticator.clientOf` identifies clients by API key.
 */
export class FairTurns {
  #current = 0;
  readonly #last = new Map<string, number>();

  next(client: string): number {
    const turn = Math.max(this.#current, (this.#last.get(client) ?? 0) + 1);
    this.#last.set(client, turn);
    return turn;
  }

  /** Records the turn of a stored task, which an earlier process queued. */
  record(client: string, turn: number): void {
    this.#last.set(client, Math.max(turn, this.#last.get(client) ?? 0));
  }

  started(turn: number): void {
    this.#current = Math.max(this.#current, turn);
    for (const [client, last] of this.#last) if (last < this.#current) this.#last.delete(client);
  }
}

/** Number of tasks in each state, and the mean length of recent jobs. */
export class JobStatistics {
  readonly #counts: Record<TaskState, number> = { queued: 0, running: 0, succeeded: 0, failed: 0 };
  readonly #jobSeconds: number[] = [];

  /**
   * @param initialJobSeconds average that is reported until the first job ends
   * @param window number of recent jobs in the average
   */
  constructor(
    private readonly initialJobSeconds: number,
    private readonly window: number,
  ) {}

  /** Counts a state change. A new task changes from null; a removed task changes to null. */
  stateChanged(from: TaskState | null, to: TaskState | null): void {
    if (from !== null) this.#counts[from]--;
    if (to !== null) this.#counts[to]++;
  }

  jobFinished(seconds: number): void {
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
