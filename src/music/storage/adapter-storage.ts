/** Stores adapters where all machines can read them. Each file is stored under the hash of its content. */
import { createHash } from "node:crypto";
import { createWriteStream } from "node:fs";
import { mkdir, mkdtemp, readdir, rm, stat, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, extname, join } from "node:path";
import { pipeline } from "node:stream/promises";
import { EngineError } from "../../engine/errors.js";
import { writeAtomically } from "../../system/atomic-file.js";
import { MAX_ADAPTER_BYTES, openRegular, UnusableFileError } from "../../system/regular-file.js";
import { StoreError } from "../errors.js";
import { type FileStorage, makeFolder } from "./file-storage.js";

/** An adapter identified by its content. */
export interface StoredAdapter {
  /** Hash of the files and their names. */
  digest: string;
  /** Object name of each file, by its path in the adapter. */
  files: Record<string, string>;
  /** The weights file that was loaded; "" for a folder. */
  entry: string;
}

const CONFIG_NAME = "adapter_config.json";
const SAFETENSORS = ".safetensors";
/** Extensions of PyTorch files. */
const PICKLES = [".bin", ".pt", ".pth"];
/**
 * Name of the PyTorch file in which PEFT stores weights. PyTorch files with other names, such as optimizer
 * state, are not adapters.
 */
const PICKLED_WEIGHTS = "adapter_model.bin";
/** Name of a stored file: its hash and extension. */
const OWN_FILE = /^[0-9a-f]{64}\.[a-z]+$/;
const UNUSED_AGE_MS = 24 * 60 * 60_000;
/** Subfolders that are searched for adapter files. */
const FOLDERS = ["", "adapter"];

export class AdapterStorage {
  constructor(private readonly storage: FileStorage) {}

  /**
   * Stores the files of an adapter.
   * @throws EngineError ADAPTER if there is no adapter, UnusableFileError, StoreError, or the signal's reason
   */
  async publish(path: string, signal?: AbortSignal): Promise<StoredAdapter> {
    const { folder, entry, names } = await adapterAt(path);
    const files: Record<string, string> = {};
    for (const name of names) {
      const stored = await this.#publish(join(folder, name), signal);
      if (stored !== null) files[name] = stored;
    }
    return { digest: digestOf(JSON.stringify([entry, files])), files, entry };
  }

  /**
   * Calls `work` with a path that exists until `work` ends.
   * @throws StoreError if the adapter is no longer stored, or the signal's reason
   */
  async withAdapter<T>(
    { files, entry }: StoredAdapter,
    work: (path: string) => Promise<T>,
    signal?: AbortSignal,
  ): Promise<T> {
    const folder = await mkdtemp(join(tmpdir(), "carillon-adapter-"));
    try {
      for (const [name, stored] of Object.entries(files)) {
        const path = join(this.storage.directory, stored);
        if (!(await this.storage.fetch(path, signal))) {
          throw new StoreError(
            "WRITE_FAILED",
            `the adapter file ${stored} is missing from the storage; load the adapter again`,
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

  /**
   * Deletes files that nothing uses and that were stored more than a day ago. Storing a file again makes it new, so the
   * files of a request that is being accepted stay.
   * @param namesInUse called only if there are old files
   * @throws StoreError, or the signal's reason
   */
  async removeUnused(namesInUse: () => Promise<ReadonlySet<string>>, signal: AbortSignal): Promise<void> {
    const old: string[] = [];
    for await (const { name, modifiedMs } of this.storage.list(signal)) {
      if (OWN_FILE.test(name) && Date.now() - modifiedMs > UNUSED_AGE_MS) old.push(name);
    }
    if (old.length === 0) return;
    const inUse = await namesInUse();
    const unused = old.filter((name) => !inUse.has(name));
    // A file that the storage does not delete keeps no other one.
    const removals = await Promise.allSettled(unused.map((name) => this.storage.remove(name, signal)));
    for (const removal of removals) if (removal.status === "rejected") throw removal.reason;
  }

  /** Stores a file under its hash. Returns the name of the stored object; null if the file does not exist. */
  async #publish(path: string, signal: AbortSignal | undefined): Promise<string | null> {
    const file = await openRegular(path, MAX_ADAPTER_BYTES).catch((error: unknown) => {
      if (error instanceof UnusableFileError && error.reason === "absent") return null;
      throw error;
    });
    if (file === null) return null;
    const content = () => file.createReadStream({ start: 0, autoClose: false });
    try {
      const hash = createHash("sha256");
      await pipeline(content(), hash);
      const name = hash.digest("hex") + extname(path);
      const target = join(this.storage.directory, name);
      await makeFolder(this.storage.directory);
      await writeAtomically(target, (partial) =>
        pipeline(content(), createWriteStream(partial, { flags: "wx" })),
      );
      await this.storage.publish(target, signal);
      return name;
    } finally {
      await file.close();
    }
  }
}

/** Returns a hash of the path, sizes and modification times of the adapter files. @throws EngineError ADAPTER */
export async function adapterSignature(path: string): Promise<string> {
  const { folder, names } = await adapterAt(path);
  const stats = names.map(async (name) => {
    const { size, mtimeMs, ino } = await stat(join(folder, name));
    return [name, size, mtimeMs, ino];
  });
  return digestOf(JSON.stringify([path, await Promise.all(stats)]));
}

/**
 * Finds the files of an adapter: all in a folder, or a single weights file and its configuration.
 * @throws EngineError ADAPTER
 */
async function adapterAt(path: string): Promise<{ folder: string; entry: string; names: string[] }> {
  const found = await stat(path).catch(() => null);
  if (found === null) throw new EngineError("ADAPTER", `${path}: there is no such file or folder`);
  if (found.isDirectory()) {
    const names = await adapterFilesIn(path);
    if (names.length === 0) throw new EngineError("ADAPTER", `${path}: no adapter found`);
    return { folder: path, entry: "", names };
  }
  if (![SAFETENSORS, ...PICKLES].includes(extname(path))) {
    const what = extname(path) === ".gguf" ? "a GGUF file; " : "";
    throw new EngineError(
      "ADAPTER",
      `${path}: ${what}adapters are read from .safetensors and .bin files, and folders that hold one`,
    );
  }
  if (!found.isFile()) throw new EngineError("ADAPTER", `${path}: not a regular file`);
  const folder = dirname(path);
  const hasConfig = await stat(join(folder, CONFIG_NAME)).then(
    (config) => config.isFile(),
    () => false,
  );
  const entry = basename(path);
  return { folder, entry, names: hasConfig ? [entry, CONFIG_NAME] : [entry] };
}

async function adapterFilesIn(folder: string): Promise<string[]> {
  const names = FOLDERS.map(async (inner) => {
    const found = await readdir(join(folder, inner)).catch(() => []);
    return found
      .filter((name) => [CONFIG_NAME, PICKLED_WEIGHTS].includes(name) || extname(name) === SAFETENSORS)
      .map((name) => join(inner, name));
  });
  return (await Promise.all(names)).flat().sort();
}

function digestOf(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
