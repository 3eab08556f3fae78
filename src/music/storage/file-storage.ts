/**
 * Files of the service in a folder, and optionally in an object store. With an object store, the folder is a
 * cache. Songs are in the object store before their tasks are reported as done.
 */
import { access, copyFile, mkdir, readdir, rm, stat, utimes } from "node:fs/promises";
import { basename, join } from "node:path";
import { PARTIAL_SUFFIX, writeAtomically } from "../../system/atomic-file.js";
import { StoreError } from "../errors.js";
import type { ObjectStore } from "./object-store.js";

/** Local copies that were not used for this long are removed. */
const COPY_AGE_MS = 24 * 60 * 60_000;

export class FileStorage {
  constructor(
    readonly directory: string,
    /**
     * Object store that keeps the files. Null: the files are only in `directory`, which several machines may
     * share.
     */
    readonly store: ObjectStore | null,
    /** Beginning of the names in the object store, unique for each folder. */
    readonly prefix: string,
    /** Local folder that gets new files first, in case `directory` is unavailable. Null: no such folder. */
    private readonly staging: string | null = null,
    /** Whether the object of this name is to be deleted. Such a file counts as absent. */
    private readonly isDeleted: (objectName: string) => Promise<boolean> = async () => false,
  ) {}

  /** Temporary path of a new file; `publish` makes the file available at its final path. */
  newPath(name: string): string {
    return join(this.staging ?? this.directory, name);
  }

  /** Name of a file in the object store, the same on all machines. */
  objectName(path: string): string {
    return this.prefix + basename(path);
  }

  /**
   * Makes a new file available to all machines.
   * @throws StoreError, UNREACHABLE if the storage is unavailable; the signal's reason
   */
  async publish(path: string, signal?: AbortSignal): Promise<void> {
    if (this.staging !== null && path.startsWith(this.staging)) await this.#copy(path);
    await this.store?.put(this.objectName(path), path, signal);
  }

  async #copy(path: string): Promise<void> {
    const target = join(this.directory, basename(path));
    await makeFolder(this.directory);
    try {
      await writeAtomically(target, (partial) => copyFile(path, partial), {
        partial: target + PARTIAL_SUFFIX,
      });
    } catch (error) {
      const { code = "" } = error as NodeJS.ErrnoException;
      const isFull = code === "ENOSPC" || code === "EDQUOT";
      const what = `the storage ${this.directory} ${isFull ? "is full" : `is not writable (${code})`}`;
      throw new StoreError(isFull ? "DISK_FULL" : "UNREACHABLE", what, { cause: error });
    }
    await rm(path, { force: true });
  }

  /** Whether the file is to be deleted, but the storage has not deleted it yet. */
  isBeingDeleted(path: string): Promise<boolean> {
    return this.isDeleted(this.objectName(path));
  }

  /** @throws StoreError UNREACHABLE */
  async assertAvailable(): Promise<void> {
    await access(this.directory).catch((cause: unknown) => {
      throw new StoreError("UNREACHABLE", `the storage ${this.directory} is unavailable`, { cause });
    });
  }

  /**
   * Copies the file from the object store to the folder, unless the folder has the file. Returns false if neither
   * has the file.
   * @throws StoreError, or the signal's reason
   */
  async fetch(path: string, signal?: AbortSignal): Promise<boolean> {
    const now = new Date();
    const found = this.store === null ? access(path) : utimes(path, now, now);
    const isHere = await found.then(
      () => true,
      () => false,
    );
    if (!isHere && this.store === null) await this.assertAvailable();
    if (isHere || this.store === null) return isHere;
    if (await this.isBeingDeleted(path)) return false;
    return this.store.fetch(this.objectName(path), path, signal);
  }

  /** Lists the files of all machines. @throws StoreError, or the signal's reason */
  async *list(signal: AbortSignal): AsyncGenerator<{ name: string; modifiedMs: number }> {
    if (this.store === null) {
      for (const name of await readdir(this.directory).catch(() => [])) {
        const found = await stat(join(this.directory, name)).catch(() => null);
        if (found !== null) yield { name, modifiedMs: found.mtimeMs };
      }
      return;
    }
    for await (const { name, modifiedMs } of this.store.list(this.prefix, signal)) {
      yield { name: name.slice(this.prefix.length), modifiedMs };
    }
  }

  /** Removes a file from the folder and the object store. @throws StoreError, file system errors, the signal's reason */
  async remove(name: string, signal?: AbortSignal): Promise<void> {
    const path = join(this.directory, name);
    await rm(path, { force: true });
    if (this.store === null) await this.assertAvailable();
    else await this.store.remove(this.objectName(path), signal);
  }

  /**
   * Removes local files that were not used for a day. Does nothing without an object store, because the local
   * files are then the only ones.
   */
  async removeUnusedCopies(): Promise<void> {
    if (this.store === null) return;
    for (const name of await readdir(this.directory).catch(() => [])) {
      const path = join(this.directory, name);
      const found = await stat(path).catch(() => null);
      if (found !== null && Date.now() - found.mtimeMs > COPY_AGE_MS) await rm(path, { force: true });
    }
  }
}

/**
 * Creates a folder. Does not create its parent: if that is missing, a file system is probably not mounted.
 * @throws StoreError UNREACHABLE
 */
export async function makeFolder(path: string): Promise<void> {
  await mkdir(path).catch(async (cause: NodeJS.ErrnoException) => {
    const isFolder = await stat(path).then(
      (found) => found.isDirectory(),
      () => false,
    );
    if (isFolder) return;
    throw new StoreError("UNREACHABLE", `the storage ${path} is not writable (${cause.code})`, { cause });
  });
}
