/** Adapters that several machines use, each file under the hash of its content. */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { copyFile, mkdir, mkdtemp, readdir, rm, stat, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, extname, join } from "node:path";
import { pipeline } from "node:stream/promises";
import { EngineError } from "../../engine/errors.js";
import { writeWhole } from "../../whole-file.js";
import { StoreError } from "../errors.js";
import type { Shelf } from "./shelf.js";

const CONFIG_NAME = "adapter_config.json";
const WEIGHTS_EXTENSION = ".safetensors";
/** Folders of an adapter's folder that adapters are looked for in. */
const FOLDERS = ["", "adapter"];

/** An adapter by what it holds. */
export interface StoredAdapter {
  /** Hash of its files and their names. */
  digest: string;
  /** The name in the store of each file, by its path within the adapter. */
  files: Record<string, string>;
  /** The one of them that was named; "": the folder. */
  entry: string;
}

export class AdapterShelf {
  constructor(private readonly shelf: Shelf) {}

  /**
   * Stores the adapter at `path`: a file with the configuration beside it, or all weights and configurations of a folder.
   * @throws EngineError ADAPTER where there is none, StoreError
   */
  async publish(path: string): Promise<StoredAdapter> {
    const found = await stat(path).catch(() => null);
    if (found === null) throw new EngineError("ADAPTER", `${path}: there is no such file or folder`);
    if (found.isFile() && extname(path) !== WEIGHTS_EXTENSION) {
      throw new EngineError(
        "ADAPTER",
        `${path}: adapters are read from ${WEIGHTS_EXTENSION} files and folders`,
      );
    }
    const entry = found.isFile() ? basename(path) : "";
    const folder = found.isFile() ? dirname(path) : path;
    const names = found.isFile() ? [entry, CONFIG_NAME] : await adapterFilesIn(folder);
    const files: Record<string, string> = {};
    for (const name of names) {
      const stored = await this.#publish(join(folder, name));
      if (stored !== null) files[name] = stored;
    }
    if (Object.keys(files).length === 0)
      throw new EngineError("ADAPTER", `${path}: there is no adapter here`);
    return { digest: digestOf(JSON.stringify([entry, files])), files, entry };
  }

  /** Calls `work` with a path where the adapter lies meanwhile. @throws StoreError where the store has it no longer */
  async lend<T>({ files, entry }: StoredAdapter, work: (path: string) => Promise<T>): Promise<T> {
    const folder = await mkdtemp(join(tmpdir(), "carillon-adapter-"));
    try {
      for (const [name, stored] of Object.entries(files)) {
        const path = join(this.shelf.directory, stored);
        if (!(await this.shelf.bring(path))) {
          throw new StoreError(
            "WRITE_FAILED",
            `the adapter's file ${stored} is no longer in the storage: load it again`,
          );
        }
        await mkdir(dirname(join(folder, name)), { recursive: true });
        await symlink(path, join(folder, name));
      }
      return await work(join(folder, entry));
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  }

  /** The name in the store of a file; null: there is no such file. */
  async #publish(path: string): Promise<string | null> {
    const hash = createHash("sha256");
    try {
      await pipeline(createReadStream(path), hash);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
      throw error;
    }
    const name = hash.digest("hex") + extname(path);
    const target = join(this.shelf.directory, name);
    await mkdir(this.shelf.directory, { recursive: true });
    await writeWhole(target, (partial) => copyFile(path, partial));
    await this.shelf.publish(target);
    return name;
  }
}

async function adapterFilesIn(folder: string): Promise<string[]> {
  const names = FOLDERS.map(async (inner) => {
    const found = await readdir(join(folder, inner)).catch(() => []);
    return found
      .filter((name) => name === CONFIG_NAME || extname(name) === WEIGHTS_EXTENSION)
      .map((name) => join(inner, name));
  });
  return (await Promise.all(names)).flat().sort();
}

function digestOf(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
