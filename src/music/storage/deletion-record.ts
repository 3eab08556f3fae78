/** Record of the files that are to be deleted. */
import { readFile, writeFile } from "node:fs/promises";
import { z } from "zod";
import { writeAtomically } from "../../system/atomic-file.js";
import type { Logger } from "../../system/log.js";

/** Names that a record may have. Others could lead out of the folders. */
export const STORED_NAME = /^(audio|uploads|adapters)\/[A-Za-z0-9_-][A-Za-z0-9_.-]*$/;

/** Files have the names that they have in the storage, such as `audio/ID-0.mp3`. */
export interface DeletionRecord {
  /** Each file with the id of its task. */
  all(): Promise<Iterable<[name: string, task: string]>>;
  has(name: string): Promise<boolean>;
  add(task: string, names: readonly string[]): Promise<void>;
  drop(names: readonly string[]): Promise<void>;
}

const savedSchema = z.record(z.string().regex(STORED_NAME), z.string());

/** Record of a server that shares no tasks. */
export class OwnDeletionRecord implements DeletionRecord {
  #read: Promise<Map<string, string>> | undefined;
  #writing: Promise<void> = Promise.resolve();

  /** @param file null: not kept, because this server moves files without a task away when it starts */
  constructor(
    private readonly file: string | null,
    private readonly log: Logger,
  ) {}

  async all(): Promise<[string, string][]> {
    return [...(await this.#files())];
  }

  async has(name: string): Promise<boolean> {
    return (await this.#files()).has(name);
  }

  add(task: string, names: readonly string[]): Promise<void> {
    return this.#change((files) => {
      for (const name of names) files.set(name, task);
    });
  }

  drop(names: readonly string[]): Promise<void> {
    return this.#change((files) => {
      for (const name of names) files.delete(name);
    });
  }

  #files(): Promise<Map<string, string>> {
    this.#read ??= this.#load();
    return this.#read;
  }

  async #load(): Promise<Map<string, string>> {
    if (this.file === null) return new Map();
    try {
      return new Map(Object.entries(savedSchema.parse(JSON.parse(await readFile(this.file, "utf8")))));
    } catch (err) {
      if ((err as NodeJS.ErrnoException).code !== "ENOENT")
        this.log.error({ err, file: this.file }, "could not read the list of files that are to be deleted");
      return new Map();
    }
  }

  async #change(change: (files: Map<string, string>) => void): Promise<void> {
    const files = await this.#files();
    change(files);
    const { file } = this;
    if (file === null) return;
    // Writes follow each other, so that the latest content stays.
    const written = this.#writing.then(() =>
      writeAtomically(file, (partial) => writeFile(partial, JSON.stringify(Object.fromEntries(files)))),
    );
    this.#writing = written.catch(() => {});
    await written;
  }
}
