/** What a store holds, in order and without reading it: for lists of many tasks, each of which may be large. */
import { encodeTask } from "./lmdb-store.js";
import type { StoredTask, Task, TaskState, TaskStore } from "./store.js";

/** Characters of each of a task's texts that a search looks at. */
const MAX_SEARCHED = 512;

/** What is remembered of a task beside its record, which may be large. */
export interface TaskSummary {
  id: string;
  sequence: number;
  state: TaskState;
  isFavorite: boolean;
  submissionKey: string | undefined;
  /** That a search looks at, in lower case. */
  words: string;
  /** By the clock that songs age by; null before the end. */
  finishedAtMs: number | null;
  audioNames: string[];
  audioBytes: number;
  recordBytes: number;
}

export function summaryOf(task: Task, recordBytes: number): TaskSummary {
  const { id, sequence, state, favorite = false, submission, title = "", request, result } = task;
  const { prompt, sampleQuery = "", lyrics = "" } = request;
  // Cut before they are joined: a piece cut from a long text would keep all of it in memory.
  const words = [title, prompt, sampleQuery, result?.prompt, lyrics]
    .map((text) => text?.slice(0, MAX_SEARCHED))
    .join("\n")
    .toLowerCase();
  const files = result?.audioFiles ?? [];
  return {
    id,
    sequence,
    state,
    isFavorite: favorite,
    submissionKey: submission?.key,
    words,
    finishedAtMs: task.finishedAtMs ?? (hasEnded(state) ? task.createdAtMs : null),
    audioNames: files.map(({ name }) => name),
    audioBytes: files.reduce((sum, { bytes }) => sum + bytes, 0),
    recordBytes,
  };
}

export function hasEnded(state: TaskState): boolean {
  return state === "succeeded" || state === "failed";
}

/** Whether the filter lets a task pass. */
function fits({ state, favorite, search }: CatalogFilter): (summary: TaskSummary) => boolean {
  const words = search.toLowerCase().split(/\s+/);
  return (summary) =>
    (state === null || summary.state === state) &&
    (favorite === null || summary.isFavorite === favorite) &&
    words.every((word) => summary.words.includes(word));
}

/** The ids of the tasks that the filter fits, newest first, and how many fit in all. */
export function pageOf(
  summaries: Iterable<TaskSummary>,
  filter: CatalogFilter,
): { total: number; ids: string[] } {
  const fitting = [...summaries].filter(fits(filter));
  fitting.sort((a, b) => b.sequence - a.sequence);
  const { offset, limit } = filter;
  return { total: fitting.length, ids: fitting.slice(offset, offset + limit).map(({ id }) => id) };
}

export interface CatalogFilter {
  /** Null: any. */
  state: TaskState | null;
  favorite: boolean | null;
  /** All of these words stand in the title, the prompt or the lyrics, in any case. */
  search: string;
  offset: number;
  /** Ids at most. */
  limit: number;
}

/** A store that knows what it holds once `scan` has run through; everything else passes to the store beneath. */
export class CatalogedStore implements TaskStore {
  readonly #summaries = new Map<string, TaskSummary>();
  readonly #bySubmission = new Map<string, string>();

  constructor(private readonly store: TaskStore) {}

  page(filter: CatalogFilter): { total: number; ids: string[] } {
    return pageOf(this.#summaries.values(), filter);
  }

  /** The id of the task that was submitted under this key. */
  submittedAs(key: string): string | undefined {
    return this.#bySubmission.get(key);
  }

  summary(id: string): TaskSummary | undefined {
    return this.#summaries.get(id);
  }

  finished(): TaskSummary[] {
    return [...this.#summaries.values()].filter(({ state }) => hasEnded(state)).sort(byEnd);
  }

  async add(task: Task): Promise<void> {
    await this.store.add(task);
    this.#note(task);
  }

  get(id: string): Promise<Task | undefined> {
    return this.store.get(id);
  }

  async update(id: string, change: (task: Task) => Task): Promise<Task | undefined> {
    const task = await this.store.update(id, change);
    if (task !== undefined) this.#note(task);
    return task;
  }

  async remove(id: string): Promise<void> {
    const summary = this.#summaries.get(id);
    // First of all, so that nobody else removes it meanwhile.
    this.#summaries.delete(id);
    try {
      await this.store.remove(id);
    } catch (error) {
      if (summary !== undefined) this.#summaries.set(id, summary);
      throw error;
    }
    if (summary?.submissionKey !== undefined) this.#bySubmission.delete(summary.submissionKey);
  }

  async *scan(): AsyncIterable<StoredTask> {
    for await (const stored of this.store.scan()) {
      if (stored.task !== null) this.#note(stored.task, stored.bytes);
      yield stored;
    }
  }

  close(): Promise<void> {
    return this.store.close();
  }

  /** What the record of a task takes counts once the task has ended. */
  #note(task: Task, bytes = hasEnded(task.state) ? encodeTask(task).length : 0): void {
    const summary = summaryOf(task, bytes);
    this.#summaries.set(task.id, summary);
    if (summary.submissionKey !== undefined) this.#bySubmission.set(summary.submissionKey, task.id);
  }
}

function byEnd(a: TaskSummary, b: TaskSummary): number {
  return (a.finishedAtMs as number) - (b.finishedAtMs as number);
}
