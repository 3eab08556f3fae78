/** Files of tasks: songs, uploads and adapters, in local folders or in the object store. */
import { accessSync, constants, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { Config } from "../config.js";
import type { Logger } from "../system/log.js";
import { AudioFiles } from "./audio/audio-files.js";
import { AudioInputs } from "./audio/audio-inputs.js";
import { StoreError } from "./errors.js";
import type { Task } from "./queue/store.js";
import { RequestedAdapters } from "./song/requested-adapters.js";
import { AdapterStorage } from "./storage/adapter-storage.js";
import { OwnDeletionRecord } from "./storage/deletion-record.js";
import { Deletions } from "./storage/deletions.js";
import { FileStorage } from "./storage/file-storage.js";
import type { ObjectStore } from "./storage/object-store.js";
import { PermittedRoot } from "./storage/permitted-root.js";

export class TaskFiles {
  readonly songs: AudioFiles;
  /** Uploaded files of unfinished tasks, and of tasks whose songs are kept. */
  readonly uploads: FileStorage;
  readonly inputs: AudioInputs;
  readonly adapters: AdapterStorage;
  readonly requestedAdapters: RequestedAdapters;
  readonly deletions: Deletions;
  readonly #adapterFiles: FileStorage;

  /** @param store object store that keeps the files; null: local folders keep them */
  constructor(
    config: Config,
    private readonly store: ObjectStore | null,
    log: Logger,
  ) {
    const { temporaryDirectory, storage } = config;
    const root = storage?.directory ?? temporaryDirectory;
    // Delete files that the previous process did not publish. Its interrupted songs are made again.
    const staging = storage?.directory == null ? null : join(temporaryDirectory, "unpublished");
    if (staging !== null) {
      rmSync(staging, { recursive: true, force: true });
      mkdirSync(staging, { recursive: true });
    }
    const isDeleted = (name: string) => this.deletions.has(name);
    this.songs = new AudioFiles(join(root, "api_audio"), store, staging, isDeleted);
    this.uploads = new FileStorage(join(root, "uploads"), store, "uploads/", null, isDeleted);
    this.#adapterFiles = new FileStorage(join(root, "adapters"), store, "adapters/");
    const record = storage === null ? null : join(temporaryDirectory, "deletions.json");
    this.deletions = new Deletions(
      new OwnDeletionRecord(record, log),
      [this.songs.storage, this.uploads, this.#adapterFiles],
      log,
    );
    this.adapters = new AdapterStorage(this.#adapterFiles);
    const permittedRoot = new PermittedRoot(config.trainingRoot);
    const isShared = config.redisUrl !== null;
    this.requestedAdapters = new RequestedAdapters(
      permittedRoot,
      config.adaptersDirectory,
      config.isLocal,
      this.adapters,
      isShared,
    );
    this.inputs = new AudioInputs({
      roots: config.audioRoots,
      songs: this.songs.storage,
      uploads: this.uploads,
      maxSeconds: config.sourceMaxSeconds,
      discard: (names) => this.deletions.discard(names),
    });
  }

  /**
   * Makes the local folder of new songs again if it was deleted, so that no song is made in vain.
   * @throws StoreError if it cannot be written
   */
  makeSongFolder(): void {
    const folder = this.songs.storage.newPath("");
    try {
      mkdirSync(folder, { recursive: true });
      accessSync(folder, constants.W_OK);
    } catch (cause) {
      const { message } = cause as Error;
      throw new StoreError("WRITE_FAILED", `the folder of songs is not writable: ${message}`, { cause });
    }
  }

  /** Deletes unfinished files of killed processes, and old local copies of files in the object store. */
  async removeStale(): Promise<void> {
    await this.songs.removeAbandoned();
    await this.songs.storage.removeUnusedCopies();
    await this.uploads.removeUnusedCopies();
    await this.#adapterFiles.removeUnusedCopies();
  }

  /**
   * Deletes the uploads and songs of an ended task that failed. The files of a successful task are kept until the task
   * is removed.
   */
  async cleanUp(task: Task): Promise<void> {
    if (task.state !== "failed") return;
    const songs = this.songs.namesOf(task).map((name) => this.songs.storage.objectName(name));
    await this.deletions.discard([...this.inputs.objectNames(task.request), ...songs], task.id);
  }

  close(): void {
    this.store?.close();
  }
}
