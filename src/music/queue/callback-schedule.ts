import type { Task } from "./store.js";

/** A process that has taken a callback must deliver it within this time; then another process may take it. */
export const CALLBACK_HOLD_MS = 60_000;

/** Due times of callbacks, for one process. */
export class CallbackSchedule {
  /** Due time of each task's callback, on the monotonic clock. */
  readonly #dueMs = new Map<string, number>();

  /**
   * Restores a callback after a restart. Caps the delay at CALLBACK_HOLD_MS, in case the system clock was set
   * back.
   */
  resume({ id, callback }: Task): void {
    const delayMs = (callback?.nextAtMs ?? 0) - Date.now();
    this.set(id, Math.min(Math.max(delayMs, 0), CALLBACK_HOLD_MS));
  }

  /** @param delayMs null: no callback is due */
  set(id: string, delayMs: number | null): void {
    if (delayMs === null) this.#dueMs.delete(id);
    else this.#dueMs.set(id, performance.now() + delayMs);
  }

  /** Takes the due callbacks. Each is due again after CALLBACK_HOLD_MS. */
  take(max: number): string[] {
    const nowMs = performance.now();
    const due = [...this.#dueMs].filter(([, dueMs]) => dueMs <= nowMs).slice(0, max);
    for (const [id] of due) this.set(id, CALLBACK_HOLD_MS);
    return due.map(([id]) => id);
  }
}

/** Whether the callback of the task is pending, now or once the task ends. */
export function isCallbackPending({ request, callback }: Task): boolean {
  const isAsked = request.callbackUrl !== undefined && request.callbackUrl !== null;
  return isAsked && (callback === undefined || callback.state === "pending");
}
