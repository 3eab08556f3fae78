/** A folder of the service's own files. With an object store behind it, what lies there are copies and new files. */
import { access, readdir, rm, stat, utimes } from "node:fs/promises";
import { basename, join } from "node:path";
import type { ObjectStore } from "./object-store.js";

/** Copies that nobody asked for in this time go. */
const COPY_AGE_MS = 24 * 60 * 60_000;

export class Shelf {
  constructor(
    readonly directory: string,
    /** Null: the folder is all there is, this machine's own or one that several share. */
    readonly store: ObjectStore | null,
    /** What the names in the store begin with. */
    private readonly prefix: string,
  ) {}

  /** The name in the store of a file of the folder, whatever folder it lay in on the machine that wrote it. */
  objectName(path: string): string {
    return this.prefix + basename(path);
  }

  /** Lets other machines have a file of the folder. @throws StoreError */
  async publish(path: string): Promise<void> {
    await this.store?.put(this.objectName(path), path);
  }

  /** Whether there is such a file, in the folder from now on. @throws StoreError */
  async bring(path: string): Promise<boolean> {
    const now = new Date();
    const found = this.store === null ? access(path) : utimes(path, now, now);
    const isHere = await found.then(
      () => true,
      () => false,
    );
    if (isHere || this.store === null) return isHere;
    return this.store.fetch(this.objectName(path), path);
  }

  /** Everywhere. @throws StoreError */
  async remove(path: string): Promise<void> {
    await rm(path, { force: true });
    await this.store?.remove(this.objectName(path));
  }

  /**
   * Lets files go that nobody asked for in a day: the store has them by then, or their task has failed long since.
   * Does nothing where the folder is all there is.
   */
  async dropCopies(nowMs = Date.now()): Promise<void> {
    if (this.store === null) return;
    for (const name of await readdir(this.directory).catch(() => [])) {
      const path = join(this.directory, name);
      const found = await stat(path).catch(() => null);
      if (found !== null && nowMs - found.mtimeMs > COPY_AGE_MS) await rm(path, { force: true });
    }
  }
}
