import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, renameSync, rmSync, statfsSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { open, type RootDatabase } from "lmdb";
import { StoreError } from "../errors.js";
import { flatRequestOf, fromOlderTask, withNewParameters } from "./older-tasks.js";
import { DamagedRecordError, type StoredTask, TASK_STATES, type Task } from "./store.js";

/** Number of tasks that a scan reads before it yields to the event loop. */
const SCAN_BATCH = 10;

/** Free disk space required to accept a task. Changes of accepted tasks need less. */
const MIN_FREE_BYTES_TO_ADD = 16 * 2 ** 20;
const MIN_FREE_BYTES_TO_CHANGE = 2 ** 20;

/**
 * Stores tasks in an LMDB file. A write is on the disk before its promise resolves, or it rejects with StoreError. So
 * kill -9 or a power cut loses no accepted task and leaves no torn record.
 *
 * LMDB can crash the process when the disk is full. Therefore this store refuses writes when the disk is nearly full.
 * Its writes are synchronous, because a failed asynchronous write causes an unhandled rejection.
 */
export class LmdbTaskStore {
  readonly #parent: string | undefined;
  #database: Database;
  #file: string | undefined;

  private constructor(
    private readonly directory: string,
    private readonly freeBytes: () => number,
    private readonly onWrittenAgain: () => void,
  ) {
    mkdirSync(directory, { recursive: true });
    this.#parent = identityOf(dirname(directory));
    this.#database = openDatabase(directory);
    this.#file = identityOf(dataFile(directory));
  }

  /**
   * Opens or creates the store in `directory`.
   * @param freeBytes returns the free disk space
   * @param onWrittenAgain called after a deleted store was written again
   */
  static open(
    directory: string,
    freeBytes = () => freeBytesOf(directory),
    onWrittenAgain = () => {},
  ): LmdbTaskStore {
    return new LmdbTaskStore(directory, freeBytes, onWrittenAgain);
  }

  /** Resolves with the size of the record. */
  async add(task: Task): Promise<number> {
    return this.#put(task, MIN_FREE_BYTES_TO_ADD);
  }

  /** Adds an empty record for a task that was lost, unless the store has a record with this id. */
  async addLost(id: string): Promise<void> {
    if (this.#database.doesExist(id)) return;
    this.#write(MIN_FREE_BYTES_TO_ADD, () => this.#database.putSync(id, LOST_RECORD));
  }

  /** Undefined also for empty and very long ids, which LMDB rejects as keys. @throws DamagedRecordError */
  async get(id: string): Promise<Task | undefined> {
    return this.#read(id);
  }

  /** Replaces a task with the result of `change`. Resolves with the new task and the size of its record. */
  async update(id: string, change: (task: Task) => Task): Promise<{ task: Task; bytes: number } | undefined> {
    const current = this.#read(id);
    if (current === undefined) return undefined;
    const task = change(current);
    return { task, bytes: this.#put(task, MIN_FREE_BYTES_TO_CHANGE) };
  }

  async remove(id: string): Promise<void> {
    this.#write(MIN_FREE_BYTES_TO_CHANGE, () => this.#database.removeSync(id));
  }

  /** Yields all tasks in any order, one at a time, because together they may not fit in memory. */
  async *scan(): AsyncIterable<StoredTask> {
    let count = 0;
    for (const id of [...this.#database.getKeys()]) {
      if (++count % SCAN_BATCH === 0) await setImmediate();
      const record = this.#database.get(id);
      if (record !== undefined) yield decodeStoredTask(id, record);
    }
  }

  /** Number that increases with every change of the store. */
  get version(): number {
    return (this.#database.getStats() as { lastTxnId: number }).lastTxnId;
  }

  async close(): Promise<void> {
    await this.#database.close();
  }

  #read(id: string): Task | undefined {
    if (id.length === 0 || id.length > 256) return undefined;
    const record = this.#database.get(id);
    return record && decodeTask(id, record);
  }

  #put(task: Task, minFreeBytes: number): number {
    const record = encodeTask(task);
    this.#write(minFreeBytes, () => this.#database.putSync(task.id, record));
    return record.length;
  }

  #write(minFreeBytes: number, write: () => void): void {
    this.keepInPlace();
    this.#assertFree(minFreeBytes);
    try {
      write();
    } catch (cause) {
      throw writeError("cannot write to the task store", cause);
    }
  }

  #assertFree(minBytes: number): void {
    const freeBytes = this.freeBytes();
    if (freeBytes >= minBytes) return;
    const left = Math.floor(freeBytes / 2 ** 20);
    throw new StoreError(
      "DISK_FULL",
      `the disk of the task store is full (${left} MiB left); free some space`,
    );
  }

  /**
   * Writes the store again if its folder was deleted: LMDB still reads the deleted file, but what it writes there is
   * lost when the process ends. Refuses if the file was replaced, or if the parent folder was deleted, and the lock on
   * it with it: another server may use the new one.
   * @throws StoreError
   */
  keepInPlace(): void {
    const path = dataFile(this.directory);
    const found = identityOf(path);
    if (found === this.#file) return;
    if (found !== undefined || identityOf(dirname(this.directory)) !== this.#parent) {
      throw new StoreError(
        "WRITE_FAILED",
        `the task store ${path} was deleted or replaced while the server runs: restart the server`,
      );
    }
    try {
      this.#writeAgain();
    } catch (cause) {
      if (cause instanceof StoreError) throw cause;
      throw writeError(
        `the task store ${path} was deleted while the server runs and cannot be written again`,
        cause,
      );
    }
  }

  #writeAgain(): void {
    mkdirSync(this.directory, { recursive: true });
    const { pageSize, lastPageNumber } = this.#database.getStats() as Record<string, number>;
    this.#assertFree(MIN_FREE_BYTES_TO_ADD + (pageSize as number) * (lastPageNumber as number));
    const partial = mkdtempSync(join(dirname(this.directory), PARTIAL_STORE));
    const copy = openDatabase(partial);
    copy.transactionSync(() => {
      for (const { key, value } of this.#database.getRange()) copy.putSync(key, value);
    });
    // LMDB's lock file may be left.
    rmSync(this.directory, { recursive: true });
    renameSync(partial, this.directory);
    void this.#database.close();
    this.#database = copy;
    this.#file = identityOf(dataFile(this.directory));
    this.onWrittenAgain();
  }
}

type Database = RootDatabase<Buffer, string>;

/** Name prefix of folders that are still being written. */
export const PARTIAL_STORE = "tasks-part-";

function openDatabase(directory: string): Database {
  return open<Buffer, string>({ path: directory, encoding: "binary", overlappingSync: false });
}

/** Identifies a file or folder; a deleted folder's inode may be used again, so its creation counts, too. */
function identityOf(path: string): string | undefined {
  const found = statSync(path, { bigint: true, throwIfNoEntry: false });
  return found && `${found.ino} ${found.birthtimeNs}`;
}

function writeError(what: string, cause: unknown): StoreError {
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new StoreError("WRITE_FAILED", `${what}: ${reason}`, { cause });
}

export function decodeStoredTask(id: string, record: Buffer): StoredTask {
  const bytes = record.length;
  try {
    return { id, bytes, task: decodeTask(id, record) };
  } catch (error) {
    if (error instanceof DamagedRecordError) return { id, bytes, task: null, damage: error };
    throw error;
  }
}

/** File of the store in a folder. */
export function dataFile(directory: string): string {
  return join(directory, "data.mdb");
}

function freeBytesOf(directory: string): number {
  const { bavail, bsize } = statfsSync(directory);
  return bavail * bsize;
}

/**
 * Format version of a record. A record is a line `carillon-task VERSION CHECKSUM`, followed by the task as JSON.
 * The checksum is the first half of the SHA-256 of the JSON. Records older than version 1 are bare JSON.
 */
const VERSION = 2;
/** Version of records with a flat request. */
const FLAT_VERSION = 1;
const HEADER = /^carillon-task (\d+) ([0-9a-f]{32})$/;
const LINE_FEED = 0x0a;
const OPENING_BRACE = 0x7b;

/** A request never changes, so a task of an older version keeps its form, which older servers of a fleet can read. */
export function encodeTask(task: Task): Buffer {
  const flat = flatRequestOf(task.request);
  const json = Buffer.from(JSON.stringify(flat === undefined ? task : { ...task, request: flat }));
  const version = flat === undefined ? VERSION : FLAT_VERSION;
  return Buffer.concat([Buffer.from(`carillon-task ${version} ${checksum(json)}\n`), json]);
}

/** Record of a task that was lost when the store was damaged. It lets clients learn of the loss. */
const LOST_RECORD = Buffer.alloc(0);

/** @throws DamagedRecordError if the record is damaged or was lost */
export function decodeTask(id: string, record: Buffer): Task {
  if (record.length === 0)
    throw new DamagedRecordError(id, "lost", "the record was lost when the store was damaged");
  const { json, version } =
    record[0] === OPENING_BRACE ? { json: record, version: 0 } : checkedBody(id, record);
  // biome-ignore lint/suspicious/noExplicitAny: the JSON of a task of any version
  let task: any;
  try {
    task = JSON.parse(json.toString());
  } catch {
    throw new DamagedRecordError(id, "corrupt", "the record is not valid JSON");
  }
  if (task?.id !== id) throw new DamagedRecordError(id, "corrupt", "the task's id differs from its key");
  if (!TASK_STATES.includes(task.state))
    throw new DamagedRecordError(id, "corrupt", "the task's state is unknown");
  if (!(typeof task.request === "object" && task.request !== null))
    throw new DamagedRecordError(id, "corrupt", "the task has no request");
  return version <= FLAT_VERSION ? fromOlderTask(task) : withNewParameters(task);
}

function checkedBody(id: string, record: Buffer): { json: Buffer; version: number } {
  const end = record.indexOf(LINE_FEED);
  const [, version, expected] = HEADER.exec(record.subarray(0, Math.max(end, 0)).toString("latin1")) ?? [];
  if (version === undefined) throw new DamagedRecordError(id, "corrupt", "the record's header is invalid");
  if (Number(version) > VERSION) {
    throw new DamagedRecordError(
      id,
      "newer",
      `the record has format version ${version}; this server reads up to ${VERSION}`,
    );
  }
  const json = record.subarray(end + 1);
  if (checksum(json) !== expected)
    throw new DamagedRecordError(id, "corrupt", "the record's checksum does not match");
  return { json, version: Number(version) };
}

function checksum(json: Buffer): string {
  return createHash("sha256").update(json).digest("hex").slice(0, 32);
}
