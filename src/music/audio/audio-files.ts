import { mkdirSync, realpathSync } from "node:fs";
import { mkdir, readdir, realpath, rename, rm, stat } from "node:fs/promises";
import { isAbsolute, join, resolve } from "node:path";
import { PARTIAL_SUFFIX } from "../../whole-file.js";
import { HttpError } from "../errors.js";
import { isWithin } from "../permitted-root.js";
import type { Task } from "../queue/store.js";
import type { AudioFormat } from "../request/schema.js";
import type { ObjectStore, StoredObject } from "../storage/object-store.js";
import { Shelf } from "../storage/shelf.js";
import { AUDIO_PROFILES } from "./encode.js";

/** A task's UUID, the item's index, the extension, and the suffix of an unfinished file. */
const OWN_FILE = /^([0-9a-f-]{36})-\d+\.[a-z0-9]+(\.part)?$/;

/** No song is written for so long, and no two machines' clocks are so far apart. */
const UNFINISHED_AGE_MS = 24 * 60 * 60_000;

/** A song that a client may read: in the folder, or only in the store behind it. */
export interface FoundAudio {
  path: string;
  /** Null: the file lies at `path`. */
  stored: StoredObject | null;
}

/** Finished songs: what their files are called, and which path a client may read. */
export class AudioFiles {
  /** Absolute, symbolic links resolved. */
  readonly directory: string;
  readonly shelf: Shelf;

  constructor(directory: string, store: ObjectStore | null = null) {
    mkdirSync(directory, { recursive: true });
    this.directory = realpathSync(directory);
    this.shelf = new Shelf(this.directory, store, "audio/");
  }

  /** Unique per task and index, so no song overwrites another. */
  nameOf(taskId: string, index: number, format: AudioFormat): string {
    return `${taskId}-${index}.${AUDIO_PROFILES[format].extension}`;
  }

  /** The files that the items of a task have or would have. */
  namesOf({ id, request }: Task): string[] {
    return Array.from({ length: request.batchSize }, (_, index) =>
      this.nameOf(id, index, request.audioFormat),
    );
  }

  pathOf(name: string): string {
    return join(this.directory, name);
  }

  /** The relative URL that clients append to the server's address. Ends with the file's extension. */
  urlOf(name: string): string {
    return `/v1/audio?path=${encodeURIComponent(this.pathOf(name))}`;
  }

  /**
   * The file that a client's `path` names: absolute, or relative to the folder.
   * @throws HttpError 400, 403 (outside the folder) or 404; StoreError
   */
  async resolve(path: string): Promise<FoundAudio> {
    if (path.includes("\0")) throw new HttpError(400, "path must not contain a NUL character");
    if (path === "") throw notFound();
    const candidate = isAbsolute(path) ? resolve(path) : resolve(this.directory, path);
    const file = await realpath(candidate).catch(() => null);
    if (!isWithin(this.directory, file ?? candidate)) {
      throw new HttpError(403, "Access denied: path outside allowed directory");
    }
    if (candidate.endsWith(PARTIAL_SUFFIX)) throw notFound();
    if (file === null) {
      const stored = await this.shelf.store?.head(this.shelf.objectName(candidate));
      if (stored) return { path: candidate, stored };
      throw notFound();
    }
    if (!(await stat(file)).isFile()) throw notFound();
    return { path: file, stored: null };
  }

  /** The path of a song's file, brought from the store where it has to be. @throws HttpError 404, StoreError */
  async local(path: string): Promise<string> {
    if (!(await this.shelf.bring(path))) throw notFound();
    return path;
  }

  async remove(names: readonly string[]): Promise<void> {
    for (const name of names) await this.shelf.remove(this.pathOf(name));
  }

  /**
   * For the start: removes unfinished files, and those of known tasks that do not name them, as an interrupted job
   * leaves. Audio of a task that nobody knows is not thrown away, for it may be the record that is lost: it is moved to
   * `quarantine`, where it stays until a person takes it.
   * @param namesOf the files that a task names: "all" where that cannot be told, null where there is no such task
   * @returns what was moved
   */
  async clearOrphans(
    namesOf: (taskId: string) => readonly string[] | "all" | null,
    quarantine: string,
  ): Promise<string[]> {
    const moved: string[] = [];
    for (const name of await readdir(this.directory)) {
      const [, taskId, partialSuffix] = OWN_FILE.exec(name) ?? [];
      if (taskId === undefined) continue;
      const named = namesOf(taskId);
      if (partialSuffix !== undefined || (named !== null && named !== "all" && !named.includes(name))) {
        await rm(this.pathOf(name), { force: true });
      } else if (named === null) {
        await mkdir(quarantine, { recursive: true });
        await rename(this.pathOf(name), join(quarantine, name));
        moved.push(name);
      }
    }
    return moved;
  }

  /**
   * Removes unfinished files that nobody has written to for a day, as a worker leaves that is killed: in a directory
   * that several share the start of one must not touch what another writes.
   */
  async dropUnfinished(nowMs = Date.now()): Promise<void> {
    for (const name of await readdir(this.directory).catch(() => [])) {
      if (!name.endsWith(PARTIAL_SUFFIX) || !OWN_FILE.test(name)) continue;
      const path = this.pathOf(name);
      const found = await stat(path).catch(() => null);
      if (found !== null && nowMs - found.mtimeMs > UNFINISHED_AGE_MS) await rm(path, { force: true });
    }
  }
}

function notFound(): HttpError {
  return new HttpError(404, "Audio file not found");
}
