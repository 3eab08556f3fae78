/**
 * A folder of the service's files. With an object store behind it, the folder holds only copies and new files. A song
 * is stored before its task is reported as done.
 */
import { access, copyFile, mkdir, readdir, rm, stat, utimes } from "node:fs/promises";
import { basename, join } from "node:path";
import { PARTIAL_SUFFIX, writeAtomically } from "../../system/atomic-file.js";
import { StoreError } from "../errors.js";
import type { ObjectStore } from "./object-store.js";

/** Copies that were not used for this time are removed. */
const COPY_AGE_MS = 24 * 60 * 60_000;

export class FileStorage {
  constructor(
    readonly directory: string,
    /** Object store behind the folder. Null: the folder is the only storage, local or shared by several machines. */
    readonly store: ObjectStore | null,
    private readonly prefix: string,
    /** Where new files are written before they are copied, so that they survive a loss of the shared folder. */
    private readonly staging: string | null = null,
  ) {}

  /** Path for a new file before `publish`. */
  newPath(name: string): string {
    return join(this.staging ?? this.directory, name);
  }

  /** Object name of a file, the same on all machines. */
  objectName(path: string): string {
    return this.prefix + basename(path);
  }

  /** Makes a new file available to other machines. @throws StoreError, UNREACHABLE if the storage is unavailable */
  async publish(path: string): Promise<void> {
    if (this.staging !== null && path.startsWith(this.staging)) await this.#copy(path);
    await this.store?.put(this.objectName(path), path);
  }

  async #copy(path: string): Promise<void> {
    const target = join(this.directory, basename(path));
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

  /** @throws StoreError UNREACHABLE */
  async assertAvailable(): Promise<void> {
    await access(this.directory).catch((cause: unknown) => {
      throw new StoreError("UNREACHABLE", `the storage ${this.directory} is unavailable`, { cause });
    });
  }

  /** Fetches the file into the folder if necessary. False if there is no such file. @throws StoreError */
  async fetch(path: string): Promise<boolean> {
    const now = new Date();
    const found = this.store === null ? access(path) : utimes(path, now, now);
    const isHere = await found.then(
      () => true,
      () => false,
    );
    if (!isHere && this.store === null) await this.assertAvailable();
    if (isHere || this.store === null) return isHere;
    return this.store.fetch(this.objectName(path), path);
  }

  /** Removes the file from the folder and the object store. @throws StoreError */
  async remove(path: string): Promise<void> {
    await rm(path, { force: true });
    await this.store?.remove(this.objectName(path));
  }

  /** With an object store, removes files that were not used for a day: the store has a copy, or their task failed. */
  async removeUnusedCopies(): Promise<void> {
    if (this.store === null) return;
    for (const name of await readdir(this.directory).catch(() => [])) {
      const path = join(this.directory, name);
      const found = await stat(path).catch(() => null);
      if (found !== null && Date.now() - found.mtimeMs > COPY_AGE_MS) await rm(path, { force: true });
    }
  }
}

/** Creates a folder, but not its parent, which may be an unavailable mount. @throws StoreError UNREACHABLE */
export async function makeFolder(path: string): Promise<void> {
  await mkdir(path).catch((cause: NodeJS.ErrnoException) => {
    if (cause.code === "EEXIST") return;
    throw new StoreError("UNREACHABLE", `the storage ${path} is not writable (${cause.code})`, { cause });
  });
}
