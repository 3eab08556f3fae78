import { randomUUID } from "node:crypto";
import { mkdirSync, realpathSync } from "node:fs";
import { mkdir, readdir, realpath, rename, rm, stat, writeFile } from "node:fs/promises";
import { basename, isAbsolute, join, resolve } from "node:path";
import { PARTIAL_SUFFIX } from "../../system/atomic-file.js";
import { HttpError, RequestError } from "../errors.js";
import type { Task } from "../queue/store.js";
import { FileStorage } from "../storage/file-storage.js";
import type { ObjectStore, StoredObject } from "../storage/object-store.js";
import { isWithin } from "../storage/permitted-root.js";
import { AUDIO_PROFILES, type AudioFormat } from "./formats.js";
import { LATENTS_EXTENSION } from "./latents-file.js";

/** Name of a song file: task UUID, item index, extension, and a suffix if unfinished. */
const OWN_FILE = /^([0-9a-f-]{36})-(\d+)\.[a-z0-9]+(\.part)?$/;

/** Matches the `file` URL of a result, with any prefix. */
export const RESULT_URL_PATTERN = /\/v1\/audio\?(?:[^#]*&)?path=([^&#]*)/;

/** Unfinished files older than this are abandoned. */
const UNFINISHED_AGE_MS = 24 * 60 * 60_000;

/** A readable song, in the folder or only in the object store. */
export interface FoundAudio {
  path: string;
  /** Object in the object store; null if there is a local file at `path`. */
  stored: StoredObject | null;
}

/** Finished songs: file names, and access checks for client paths. */
export class AudioFiles {
  /** Folder of the songs: an absolute path without symbolic links. */
  readonly directory: string;
  readonly storage: FileStorage;

  /** @param staging and isDeleted: see FileStorage */
  constructor(
    directory: string,
    store: ObjectStore | null = null,
    staging: string | null = null,
    isDeleted?: (objectName: string) => Promise<boolean>,
  ) {
    mkdirSync(directory, { recursive: true });
    this.directory = realpathSync(directory);
    this.storage = new FileStorage(this.directory, store, "audio/", staging, isDeleted);
  }

  /** File name of a song, unique per task and index, so that no song overwrites another. */
  nameOf(taskId: string, index: number, format: AudioFormat): string {
    return `${taskId}-${index}.${AUDIO_PROFILES[format].extension}`;
  }

  latentsNameOf(taskId: string, index: number): string {
    return `${taskId}-${index}.${LATENTS_EXTENSION}`;
  }

  namesOf({ id, request: { songs, output, analysis } }: Task): string[] {
    const hasLatents = output.returnLatents || analysis === "latents";
    return songs.flatMap((_, index) => [
      this.nameOf(id, index, output.audioFormat),
      ...(hasLatents ? [this.latentsNameOf(id, index)] : []),
    ]);
  }

  pathOf(name: string): string {
    return join(this.directory, name);
  }

  /** Relative URL of a song for clients; ends with the file extension. */
  urlOf(name: string): string {
    return `/v1/audio?path=${encodeURIComponent(this.pathOf(name))}`;
  }

  /**
   * Finds the file of a client's `path`: absolute, relative to the folder, or the `file` URL of a result.
   * @throws HttpError 400, 403 (outside the folder) or 404; StoreError; the signal's reason
   */
  async resolve(value: string, signal?: AbortSignal): Promise<FoundAudio> {
    const path = pathFromResultUrl(value, "path");
    if (path === "") throw notFound();
    const candidate = isAbsolute(path) ? resolve(path) : resolve(this.directory, path);
    const file = await realpath(candidate).catch(() => null);
    if (!isWithin(this.directory, file ?? candidate)) {
      throw new HttpError(403, "Access denied: path outside allowed directory");
    }
    if (candidate.endsWith(PARTIAL_SUFFIX)) throw notFound();
    if (await this.storage.isBeingDeleted(candidate)) throw notFound();
    if (file === null) {
      const stored = await this.storage.store?.head(this.storage.objectName(candidate), signal);
      if (stored) return { path: candidate, stored };
      if (this.storage.store === null) await this.storage.assertAvailable();
      throw notFound();
    }
    if (!(await stat(file)).isFile()) throw notFound();
    return { path: file, stored: null };
  }

  /**
   * Local path of a song, fetched from the object store if necessary.
   * @throws HttpError 404, StoreError, the signal's reason
   */
  async localPath(path: string, signal: AbortSignal): Promise<string> {
    if (!(await this.storage.fetch(path, signal))) throw notFound();
    return path;
  }

  /**
   * Called at start-up. Removes files of interrupted jobs: unfinished files, and files that their task's record
   * does not list. Moves audio without a task record to `quarantine`, because the record may have been lost.
   * @param namesOf returns the file names of a task; "all" if its record is unreadable, null for an unknown task
   * @returns the moved files
   */
  async clearOrphans(
    namesOf: (taskId: string) => readonly string[] | "all" | null,
    quarantine: string,
  ): Promise<string[]> {
    const moved: string[] = [];
    for (const name of await readdir(this.directory)) {
      const [, taskId, , partialSuffix] = OWN_FILE.exec(name) ?? [];
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
   * Removes unfinished files of killed workers, once a file has not changed for a day. Keeps newer files even at
   * start-up, because another server that shares the directory may be writing them.
   */
  async removeAbandoned(): Promise<void> {
    const names = (await readdir(this.directory).catch(() => [])).filter(
      (name) => name.endsWith(PARTIAL_SUFFIX) && OWN_FILE.test(name),
    );
    if (names.length === 0) return;
    // If the folder's clock cannot be read, 0 is used, and no file counts as abandoned.
    const nowMs = await this.#folderTimeMs().catch(() => 0);
    for (const name of names) {
      const path = this.pathOf(name);
      const found = await stat(path).catch(() => null);
      if (found !== null && nowMs - found.mtimeMs > UNFINISHED_AGE_MS) await rm(path, { force: true });
    }
  }

  /** Current time on the clock of the folder's file system, which may differ from this machine's clock. */
  async #folderTimeMs(): Promise<number> {
    const probe = this.pathOf(`.clock-${randomUUID()}`);
    await writeFile(probe, "");
    const { mtimeMs } = await stat(probe);
    await rm(probe, { force: true });
    return mtimeMs;
  }
}

/** Task and index of a song file; null for other files. */
export function songOf(path: string): { taskId: string; index: number } | null {
  const [, taskId, index] = OWN_FILE.exec(basename(path)) ?? [];
  return taskId === undefined ? null : { taskId, index: Number(index) };
}

/** Extracts the path from a result's URL; other values are returned unchanged. */
export function pathFromResultUrl(value: string, parameter: string): string {
  const [, encoded] = RESULT_URL_PATTERN.exec(value) ?? [];
  const path = encoded === undefined ? value : decoded(encoded, parameter);
  if (path.includes("\0")) throw new RequestError(`${parameter} must not contain a NUL character`);
  return path;
}

function decoded(text: string, parameter: string): string {
  try {
    return decodeURIComponent(text);
  } catch (error) {
    throw new RequestError(`${parameter} is not a valid result URL`, { cause: error });
  }
}

function notFound(): HttpError {
  return new HttpError(404, "Audio file not found");
}
