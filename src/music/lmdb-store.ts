import { mkdirSync, statfsSync } from "node:fs";
import { setImmediate } from "node:timers/promises";
import { open, type RootDatabase } from "lmdb";
import { DamagedRecordError, type StoredTask, StoreError, type Task, type TaskStore } from "./store.js";
import { decodeTask, encodeTask, LOST_RECORD } from "./task-record.js";

/** Tasks that a scan reads before it lets others have their turn. */
const SCAN_BATCH = 10;

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
  readonly #database: RootDatabase<Buffer, string>;

  private constructor(
    database: RootDatabase<Buffer, string>,
    private readonly freeBytes: () => number,
  ) {
    this.#database = database;
  }

  /** Opens or creates the store in `directory`. `freeBytes` tells how much the disk still takes. */
  static open(directory: string, freeBytes: () => number = () => freeBytesOf(directory)): LmdbTaskStore {
    mkdirSync(directory, { recursive: true });
    const database = open<Buffer, string>({ path: directory, encoding: "binary", overlappingSync: false });
    return new LmdbTaskStore(database, freeBytes);
  }

  async add(task: Task): Promise<void> {
    this.#write(MIN_FREE_BYTES_TO_ADD, () => this.#database.putSync(task.id, encodeTask(task)));
  }

  /** Remembers that there was such a task, unless something is known of it. */
  async addLost(id: string): Promise<void> {
    if (this.#database.doesExist(id)) return;
    this.#write(MIN_FREE_BYTES_TO_ADD, () => this.#database.putSync(id, LOST_RECORD));
  }

  async get(id: string): Promise<Task | undefined> {
    return this.#read(id);
  }

  async update(id: string, change: (task: Task) => Task): Promise<Task | undefined> {
    const current = this.#read(id);
    if (current === undefined) return undefined;
    const next = change(current);
    this.#write(MIN_FREE_BYTES_TO_CHANGE, () => this.#database.putSync(id, encodeTask(next)));
    return next;
  }

  async remove(id: string): Promise<void> {
    this.#write(MIN_FREE_BYTES_TO_CHANGE, () => this.#database.removeSync(id));
  }

  async *scan(): AsyncIterable<StoredTask> {
    let count = 0;
    for (const id of [...this.#database.getKeys()]) {
      if (++count % SCAN_BATCH === 0) await setImmediate();
      const record = this.#database.get(id);
      if (record !== undefined) yield storedTask(id, record);
    }
  }

  /** Rises with every change. */
  get version(): number {
    return (this.#database.getStats() as { lastTxnId: number }).lastTxnId;
  }

  async close(): Promise<void> {
    await this.#database.close();
  }

  /** LMDB refuses empty and very long keys; no task has such an id. */
  #read(id: string): Task | undefined {
    if (id.length === 0 || id.length > 256) return undefined;
    const record = this.#database.get(id);
    return record && decodeTask(id, record);
  }

  #write(minFreeBytes: number, write: () => void): void {
    const freeBytes = this.freeBytes();
    if (freeBytes < minFreeBytes) {
      const left = Math.floor(freeBytes / 2 ** 20);
      throw new StoreError("DISK_FULL", `the disk of the task store is full: ${left} MiB are left`);
    }
    try {
      write();
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : String(cause);
      throw new StoreError("WRITE_FAILED", `the task store cannot be written: ${reason}`, { cause });
    }
  }
}

export function storedTask(id: string, record: Buffer): StoredTask {
  const bytes = record.length;
  try {
    return { id, bytes, task: decodeTask(id, record) };
  } catch (error) {
    if (error instanceof DamagedRecordError) return { id, bytes, task: null, damage: error };
    throw error;
  }
}

function freeBytesOf(directory: string): number {
  const { bavail, bsize } = statfsSync(directory);
  return bavail * bsize;
}
