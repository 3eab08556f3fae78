/** What a store holds, in order and without reading it: for lists of many tasks, each of which may be large. */
import type { StoredTask, Task, TaskState, TaskStore } from "./store.js";

/** What the catalog remembers of a task. */
interface Entry {
  id: string;
  sequence: number;
  state: TaskState;
}

export interface CatalogPage {
  /** Tasks that the filter fits. */
  total: number;
  /** Newest first. */
  ids: string[];
}

/** A store that knows what it holds once `scan` has run through; everything else passes to the store beneath. */
export class CatalogedStore implements TaskStore {
  readonly #entries = new Map<string, Entry>();

  constructor(private readonly store: TaskStore) {}

  /** `states`: null takes all. `limit`: ids at most, from `offset` on. */
  page({ state, offset, limit }: { state: TaskState | null; offset: number; limit: number }): CatalogPage {
    const fitting = [...this.#entries.values()].filter((entry) => state === null || entry.state === state);
    fitting.sort((a, b) => b.sequence - a.sequence);
    return { total: fitting.length, ids: fitting.slice(offset, offset + limit).map(({ id }) => id) };
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
    this.#entries.delete(id);
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

  #note({ id, sequence, state }: Task): void {
    this.#entries.set(id, { id, sequence, state });
  }
}
