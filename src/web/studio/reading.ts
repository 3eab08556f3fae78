/** Repeated reads of a server that may be slow, unreachable or restarting. */
import { CarillonError, type TaskFilter, type TaskPage } from "../../client/index.js";
import { withTimeLimit } from "../../system/time-limit.js";
import { send } from "./api.js";
import { t } from "./language.js";

/** A server that answers within this time is slow but online. */
const ANSWER_MS = 30_000;
/** Waits between attempts: the first one, doubled each time up to the last one. */
const RETRY_MS = { first: 1000, last: 15_000 };
/** Number of lists that are kept for conditional requests. */
const KEPT_LISTS = 30;

const kept = new Map<string, { etag: string; page: TaskPage }>();

/** Reads a list of tasks. An unchanged list is not sent again, and the result is the same object as before. */
export async function readList(filter: TaskFilter): Promise<TaskPage> {
  const query = new URLSearchParams(Object.entries(filter).map(([name, value]) => [name, String(value)]));
  const path = `/v1/tasks?${query}`;
  const before = kept.get(path);
  const limit = { ms: ANSWER_MS, error: () => new Error(t("The server does not answer.")) };
  const { etag, page } = await withTimeLimit(limit, async (signal) => {
    const headers: HeadersInit = before === undefined ? {} : { "If-None-Match": before.etag };
    const response = await send(path, { headers, signal });
    if (response.status === 304 && before !== undefined) return before;
    if (!response.ok) throw new CarillonError(response.status, `${response.status} ${path}`, null);
    const { data } = (await response.json()) as { data: TaskPage };
    return { etag: response.headers.get("etag") ?? "", page: data };
  });
  kept.delete(path);
  if (etag !== "") kept.set(path, { etag, page });
  for (const oldest of [...kept.keys()].slice(0, Math.max(0, kept.size - KEPT_LISTS))) kept.delete(oldest);
  return page;
}

/** Waits that become longer with each failure, and end when the network or the tab comes back. */
export class BackOff {
  #failures = 0;
  #wake = () => {};

  constructor() {
    addEventListener("online", () => this.wake());
    document.addEventListener("visibilitychange", () => document.hidden || this.wake());
  }

  /** Call after a success. */
  reset(): void {
    this.#failures = 0;
  }

  /** Ends the wait. */
  wake(): void {
    this.#wake();
  }

  async wait(): Promise<void> {
    const longest = Math.min(RETRY_MS.first * 2 ** this.#failures++, RETRY_MS.last);
    // Pages that lost their server together do not come back together.
    const ms = longest * (0.75 + Math.random() / 4);
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}
