import type { Task } from "./store.js";

/** A process that has taken a callback must deliver it within this time. After that, another process may take it. */
export const CALLBACK_LEASE_MS = 60_000;

/** Due times of callbacks, for one process. */
export class CallbackSchedule {
  /** Due time of each task's callback, on the monotonic clock. */
  readonly #dueMs = new Map<string, number>();

  /**
   * Schedules a callback again after a restart. Limits the delay to CALLBACK_LEASE_MS: if the system clock was
   * set back, the stored time may be far in the future.
   */
  resume({ id, callback }: Task): void {
    const delayMs = (callback?.nextAtMs ?? 0) - Date.now();
    this.set(id, Math.min(Math.max(delayMs, 0), CALLBACK_LEASE_MS));
  }

  /** @param delayMs time until the callback is due; null removes it from the schedule */
  set(id: string, delayMs: number | null): void {
    if (delayMs === null) this.#dueMs.delete(id);
    else this.#dueMs.set(id, performance.now() + delayMs);
  }

  /**
   * Returns the ids of at most `max` tasks with a due callback, the longest due first: retries to receivers that do not
   * answer let the callbacks of others pass. Each callback is due again after CALLBACK_LEASE_MS.
   */
  take(max: number): string[] {
    const nowMs = performance.now();
    const due = [...this.#dueMs].filter(([, dueMs]) => dueMs <= nowMs);
    due.sort(([, a], [, b]) => a - b).splice(max);
    for (const [id] of due) this.set(id, CALLBACK_LEASE_MS);
    return due.map(([id]) => id);
  }
}

/** Whether the task has a callback that was neither delivered nor given up. */
export function isCallbackPending({ request, callback }: Task): boolean {
  const isAsked = request.callbackUrl !== undefined && request.callbackUrl !== null;
  return isAsked && (callback === undefined || callback.state === "pending");
}
