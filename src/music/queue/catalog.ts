/** What a store holds, in order and without reading it: for lists of many tasks, each of which may be large. */
import type { StoredTask, Task, TaskState, TaskStore } from "./store.js";

/** Characters of each of a task's texts that a search looks at. */
const MAX_SEARCHED = 512;

/** What the catalog remembers of a task. */
interface Entry {
  id: string;
  sequence: number;
  state: TaskState;
  isFavorite: boolean;
  submissionKey: string | undefined;
  /** In lower case. */
  words: string;
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
  readonly #entries = new Map<string, Entry>();
  readonly #bySubmission = new Map<string, string>();

  constructor(private readonly store: TaskStore) {}

  /** The ids of the tasks that the filter fits, newest first, and how many fit in all. */
  page({ state, favorite, search, offset, limit }: CatalogFilter): { total: number; ids: string[] } {
    const words = search.toLowerCase().split(/\s+/);
    const fitting = [...this.#entries.values()].filter(
      (entry) =>
        (state === null || entry.state === state) &&
        (favorite === null || entry.isFavorite === favorite) &&
        words.every((word) => entry.words.includes(word)),
    );
    fitting.sort((a, b) => b.sequence - a.sequence);
    return { total: fitting.length, ids: fitting.slice(offset, offset + limit).map(({ id }) => id) };
  }

  /** The id of the task that was submitted under this key. */
  submittedAs(key: string): string | undefined {
    return this.#bySubmission.get(key);
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
    await this.store.remove(id);
    const key = this.#entries.get(id)?.submissionKey;
    this.#entries.delete(id);
    if (key !== undefined) this.#bySubmission.delete(key);
  }

  async *scan(): AsyncIterable<StoredTask> {
    for await (const stored of this.store.scan()) {
      if (stored.task !== null) this.#note(stored.task);
      yield stored;
    }
  }

  close(): Promise<void> {
    return this.store.close();
  }

  #note({ id, sequence, state, favorite = false, submission, title = "", request, result }: Task): void {
    const { prompt, sampleQuery = "", lyrics = "" } = request;
    // Cut before they are joined: a piece cut from a long text would keep all of it in memory.
    const words = [title, prompt, sampleQuery, result?.prompt, lyrics]
      .map((text) => text?.slice(0, MAX_SEARCHED))
      .join("\n");
    const submissionKey = submission?.key;
    const entry = { id, sequence, state, isFavorite: favorite, submissionKey, words: words.toLowerCase() };
    this.#entries.set(id, entry);
    if (submissionKey !== undefined) this.#bySubmission.set(submissionKey, id);
  }
}
