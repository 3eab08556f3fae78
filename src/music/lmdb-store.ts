import { mkdirSync, statfsSync } from "node:fs";
import { setImmediate } from "node:timers/promises";
import { open, type RootDatabase } from "lmdb";
import { StoreError, type Task, type TaskStore } from "./store.js";

/** Tasks that a scan reads before it lets others have their turn. */
const SCAN_BATCH = 50;

/** Disk space that must be left for a new task; those accepted may then still be finished. */
const MIN_FREE_BYTES_TO_ADD = 16 * 2 ** 20;
const MIN_FREE_BYTES_TO_CHANGE = 2 ** 20;

/**
 * Tasks in an LMDB file. A write is on the disk before its promise resolves, so neither kill -9 nor a power
 * cut loses an accepted task, and a torn write is never seen.
 *
 * The library must not meet a full disk: its asynchronous writes then leave a promise rejected unheard, and
 * the text of its error overruns a buffer, either of which ends the process. Hence writes are synchronous,
 * three small ones a song, and refused while the disk is nearly full.
 */
export class LmdbTaskStore implements TaskStore {
  readonly #database: RootDatabase<Task, string>;

  private constructor(
    database: RootDatabase<Task, string>,
    private readonly freeBytes: () => number,
  ) {
    this.#database = database;
  }

  /** Opens or creates the store in `directory`. `freeBytes` tells how much the disk still takes. */
  static open(directory: string, freeBytes: () => number = () => freeBytesOf(directory)): LmdbTaskStore {
    mkdirSync(directory, { recursive: true });
    const database = open<Task, string>({ path: directory, encoding: "json", overlappingSync: false });
    return new LmdbTaskStore(database, freeBytes);
  }

  async add(task: Task): Promise<void> {
    this.#write(MIN_FREE_BYTES_TO_ADD, () => this.#database.putSync(task.id, task));
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
    this.#write(MIN_FREE_BYTES_TO_CHANGE, () => this.#database.putSync(id, next));
    return next;
  }

  async remove(id: string): Promise<void> {
    this.#write(MIN_FREE_BYTES_TO_CHANGE, () => this.#database.removeSync(id));
  }

  async *scan(): AsyncIterable<Task> {
    let count = 0;
    for (const id of [...this.#database.getKeys()]) {
      if (++count % SCAN_BATCH === 0) await setImmediate();
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

  #write(minFreeBytes: number, write: () => void): void {
    const freeBytes = this.freeBytes();
    if (freeBytes < minFreeBytes) {
      const left = Math.floor(freeBytes / 2 ** 20);
      throw new StoreError(`the disk of the task store is full: ${left} MiB are left`);
    }
    try {
      write();
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : String(cause);
      throw new StoreError(`the task store cannot be written: ${reason}`, { cause });
    }
  }
}

function freeBytesOf(directory: string): number {
  const { bavail, bsize } = statfsSync(directory);
  return bavail * bsize;
}
