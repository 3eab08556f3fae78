import { mkdirSync } from "node:fs";
import { open, type RootDatabase } from "lmdb";
import type { Task, TaskStore } from "./store.js";

/**
 * Tasks in an LMDB file. A transaction is in the file once its promise resolves, so neither kill -9 nor a
 * power cut loses an accepted task, and a torn write is never seen.
 */
export class LmdbTaskStore implements TaskStore {
  readonly #database: RootDatabase<Task, string>;

  private constructor(database: RootDatabase<Task, string>) {
    this.#database = database;
  }

  /** Opens or creates the store in `directory`. */
  static open(directory: string): LmdbTaskStore {
    mkdirSync(directory, { recursive: true });
    return new LmdbTaskStore(
      open<Task, string>({ path: directory, encoding: "json", overlappingSync: false }),
    );
  }

  async put(task: Task): Promise<void> {
    await this.#database.put(task.id, task);
  }

  async get(id: string): Promise<Task | undefined> {
    return isKey(id) ? this.#database.get(id) : undefined;
  }

  async list(ids: readonly string[]): Promise<(Task | undefined)[]> {
    return Promise.all(ids.map((id) => this.get(id)));
  }

  async update(id: string, change: (task: Task) => Task): Promise<Task | undefined> {
    return this.#database.transaction(() => {
      const current = this.#database.get(id);
      if (current === undefined) return undefined;
      const next = change(current);
      void this.#database.put(id, next);
      return next;
    });
  }

  async remove(id: string): Promise<void> {
    await this.#database.remove(id);
  }

  async *scan(): AsyncIterable<Task> {
    const tasks = this.#database.getRange().map(({ value }) => ({ id: value.id, sequence: value.sequence }));
    for (const { id } of [...tasks].sort((a, b) => a.sequence - b.sequence)) {
      const task = this.#database.get(id);
      if (task !== undefined) yield task;
    }
  }

  async close(): Promise<void> {
    await this.#database.close();
  }
}

/** LMDB refuses empty and very long keys; no task has such an id. */
function isKey(id: string): boolean {
  return id.length > 0 && id.length <= 256;
}
