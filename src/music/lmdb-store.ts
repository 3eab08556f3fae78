import { mkdirSync } from "node:fs";
import { open, type RootDatabase } from "lmdb";
import { StoreError, type Task, type TaskStore } from "./store.js";

/**
 * Tasks in an LMDB file. A write is on the disk before its promise resolves, so neither kill -9 nor a power
 * cut loses an accepted task, and a torn write is never seen.
 *
 * Writes are synchronous: there are three small ones a song, and the library's asynchronous ones end the
 * process when the disk is full, because one of its promises then rejects unheard.
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

  async add(task: Task): Promise<void> {
    this.#write(() => this.#database.putSync(task.id, task));
  }

  async get(id: string): Promise<Task | undefined> {
    return this.#read(id);
  }

  async list(ids: readonly string[]): Promise<(Task | undefined)[]> {
    return ids.map((id) => this.#read(id));
  }

  async update(id: string, change: (task: Task) => Task): Promise<Task | undefined> {
    const current = this.#read(id);
    if (current === undefined) return undefined;
    const next = change(current);
    this.#write(() => this.#database.putSync(id, next));
    return next;
  }

  async remove(id: string): Promise<void> {
    this.#write(() => this.#database.removeSync(id));
  }

  async *scan(): AsyncIterable<Task> {
    const order = this.#database.getRange().map(({ value: { id, sequence } }) => ({ id, sequence }));
    for (const { id } of [...order].sort((a, b) => a.sequence - b.sequence)) {
      const task = this.#read(id);
      if (task !== undefined) yield task;
    }
  }

  async close(): Promise<void> {
    await this.#database.close();
  }

  /** LMDB refuses empty and very long keys; no task has such an id. */
  #read(id: string): Task | undefined {
    return id.length > 0 && id.length <= 256 ? this.#database.get(id) : undefined;
  }

  #write(write: () => void): void {
    try {
      write();
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : String(cause);
      throw new StoreError(`the task store cannot be written (${reason}); is its disk full?`, { cause });
    }
  }
}
