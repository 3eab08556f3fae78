/**
 * Saved cities on disk. A save is written atomically (temporary file, fsync, rename), so an older save of the same
 * name stays valid until the new one is complete. The name of an automatic save, such as `AutoSave 3f09c1d2a7be 4`,
 * contains the id of the city and a rotating number. So cities never overwrite each other, and each city keeps its
 * latest saves.
 */
import { createHash, randomBytes } from "node:crypto";
import { mkdir, open, readdir, stat, utimes, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { setImmediate } from "node:timers/promises";
import { PARTIAL_SUFFIX, writeAtomically } from "../../../system/atomic-file.js";
import { readRegular, UnusableFileError } from "../../../system/regular-file.js";
import { RefusedError } from "../../refusal.js";
import { inSteps } from "../../steps.js";
import { DEFAULT_SAVE_NAME } from "../../terms.js";
import type { World } from "../state/world.js";
import { type Capture, captureInSteps, writeCapture } from "./capture.js";
import { LARGEST_CITY_BYTES, packCity, SaveFileError, sha256, unpackCity } from "./crp.js";
import { parseInPieces } from "./parse.js";
import { migrate, restoreInPieces, SNAPSHOT_VERSION } from "./snapshot.js";

const EXTENSION = ".crp";
const MAX_NAME_CHARACTERS = 64;
/** Maximum length of a file name that all common file systems allow. */
const MAX_FILE_NAME_BYTES = 255;

export interface SaveResult {
  /** Name of the file without its extension; unsafe characters are replaced. */
  readonly saveName: string;
  /** Absolute path that the file has once it is complete. */
  readonly path: string;
}

export interface SaveFile {
  /** File name without the extension. */
  readonly name: string;
  readonly path: string;
  readonly lastWriteTimeMs: number;
  readonly lengthBytes: number;
}

/** A save that was read, before its city is loaded. */
export interface LoadedSave {
  readonly path: string;
  readonly mtimeMs: number;
  readonly world: World;
  /** Digest of the saved state. */
  readonly digest: string;
}

export class SaveFiles {
  /** Absolute path of the folder of saves. */
  readonly directory: string;
  readonly #onFailed: (error: Error) => void;
  readonly #onDirectoryMade: () => Promise<void>;
  #writing: Promise<void> | null = null;
  /** Last file written or loaded, with a digest of its city. */
  #last: { readonly path: string; readonly digest: string } | null = null;

  /**
   * @param onFailed called when a save fails; the previous file of that name is still valid
   * @param onDirectoryMade called when a save has made the folder, which was missing
   */
  constructor(
    directory: string,
    onFailed: (error: Error) => void,
    onDirectoryMade: () => Promise<void> = async () => {},
  ) {
    this.directory = resolve(directory);
    this.#onFailed = onFailed;
    this.#onDirectoryMade = onDirectoryMade;
  }

  /**
   * Captures the current state and writes it in the background.
   * @throws RefusedError while another save is running, and for an invalid name
   */
  begin(world: World, name: string): SaveResult {
    if (this.#writing) throw new RefusedError("Another save is still being written");
    const saveName = fileNameFor(name);
    checkSaveName(saveName);
    const path = join(this.directory, saveName + EXTENSION);
    this.#run(path, async () => this.#write(path, await encode(await captureInSteps(world))));
    return { saveName, path };
  }

  /**
   * Waits for a running save, then saves under an automatic name unless the newest save has the same state. Resolves
   * when done, also after a failure (`onFailed`). Returns whether the state is on disk.
   */
  async autosave(world: World): Promise<boolean> {
    while (this.#writing) await this.#writing;
    world.cityId ??= newCityId();
    const { cityId } = world;
    let isSaved = false;
    this.#run(this.directory, async () => {
      const content = await encode(await captureInSteps(world));
      const saves = await this.list();
      isSaved = this.#last?.path === saves[0]?.path && this.#last?.digest === content.digest;
      if (!isSaved)
        await this.#write(join(this.directory, nextAutomaticName(cityId, saves) + EXTENSION), content);
      isSaved = true;
    });
    await this.#writing;
    return isSaved;
  }

  /** Reads and begins a save. @throws SaveFileError with the file and the reason */
  async load(path: string): Promise<World> {
    return this.begun(await this.read(path));
  }

  /** @throws SaveFileError with the file and the reason */
  async read(path: string): Promise<LoadedSave> {
    const { mtimeMs } = await stat(path).catch(() => ({ mtimeMs: 0 }));
    return { path: resolve(path), mtimeMs, ...(await readSave(path)) };
  }

  /**
   * Returns the world of a save that was read. If automatic saves contain a later state of this city, the world gets a
   * new id, so that its own automatic saves never overwrite the later state.
   */
  async begun({ path, mtimeMs, world, digest }: LoadedSave): Promise<World> {
    const later = (await this.list()).filter(({ lastWriteTimeMs }) => lastWriteTimeMs > mtimeMs);
    if (world.cityId !== null && automaticSavesOf(world.cityId, later).length > 0) world.cityId = newCityId();
    // Another save may have overwritten the file after it was read.
    if (later.every((save) => save.path !== path)) this.#last = { path, digest };
    return world;
  }

  /**
   * Loads the newest valid save; null when there is none.
   * @param onRefused called for every newer save that could not be loaded; its file is kept
   */
  async loadNewest(onRefused: (error: Error) => void): Promise<{ world: World; path: string } | null> {
    for (const { path } of await this.list()) {
      try {
        return { world: await this.load(path), path };
      } catch (error) {
        onRefused(error as Error);
      }
    }
    return null;
  }

  /** Resolves when no save is being written any more. */
  async settled(): Promise<void> {
    await this.#writing;
  }

  /** The saves, newest first, without one that is still being written. Empty without a folder. */
  async list(): Promise<readonly SaveFile[]> {
    const names = await readdir(this.directory).catch((error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT") return [];
      throw new Error(`the saves in ${this.directory} cannot be listed: ${error.message}`, { cause: error });
    });
    // Other programs leave hidden files such as `._Town.crp`.
    const files = names.filter((name) => name.toLowerCase().endsWith(EXTENSION) && !name.startsWith("."));
    const saves = await Promise.all(files.map((file) => this.#describe(file)));
    return saves.filter((save) => save !== null).sort((a, b) => b.lastWriteTimeMs - a.lastWriteTimeMs);
  }

  /** Name, path, time and size of a save; null if it is not a file or was removed meanwhile. */
  async #describe(file: string): Promise<SaveFile | null> {
    const path = join(this.directory, file);
    const info = await stat(path).catch(() => null);
    if (!info?.isFile()) return null;
    const name = file.slice(0, -EXTENSION.length);
    return { name, path, lastWriteTimeMs: info.mtimeMs, lengthBytes: info.size };
  }

  /** Writes a save in the background. */
  #run(target: string, work: () => Promise<void>): void {
    this.#writing = work()
      .catch((error: unknown) => {
        const reason = error instanceof Error ? error.message : String(error);
        this.#onFailed(new Error(`Saving the city to ${target} failed: ${reason}`, { cause: error }));
      })
      .finally(() => {
        this.#writing = null;
      });
  }

  async #write(path: string, { bytes: content, digest }: Content): Promise<void> {
    const bytes = await packCity(content, SNAPSHOT_VERSION);
    if (await mkdir(this.directory, { recursive: true })) await this.#onDirectoryMade();
    const writeTime = await this.#nextWriteTime();
    const write = async (partial: string) => {
      await writeFile(partial, bytes);
      await utimes(partial, writeTime, writeTime);
    };
    await writeAtomically(path, write, { partial: path + PARTIAL_SUFFIX });
    await syncDirectory(this.directory);
    this.#last = { path, digest };
  }

  /** Later than the time of every existing save, even if the system clock was once ahead. */
  async #nextWriteTime(): Promise<Date> {
    const newestMs = (await this.list())[0]?.lastWriteTimeMs ?? 0;
    return new Date(Math.max(Date.now(), Math.ceil(newestMs) + 1));
  }
}

/**
 * Reads a saved city.
 * @throws SaveFileError with the file and the reason if it is not a valid save
 */
export async function readSave(path: string): Promise<{ world: World; digest: string }> {
  try {
    const { content, version } = await unpackCity(
      await readRegular(path, LARGEST_CITY_BYTES),
      SNAPSHOT_VERSION,
    );
    const saved = migrate(await inSteps(parseInPieces(content)), version);
    return { world: await inSteps(restoreInPieces(saved)), digest: await sha256(content) };
  } catch (error) {
    const { message } = error as Error;
    const reason = error instanceof UnusableFileError ? `it ${error.fault}` : message;
    throw new SaveFileError(`Cannot load ${path}: ${reason}`, { cause: error });
  }
}

/** Replaces everything but letters with their marks, digits, `-`, `_` and spaces by `_`, so that a name is never a path. */
export function fileNameFor(name: string): string {
  const safe = name.trim().replace(/[^\p{L}\p{M}\p{Nd}\-_ ]/gu, "_");
  return [...safe].slice(0, MAX_NAME_CHARACTERS).join("").trim() || DEFAULT_SAVE_NAME;
}

/** @throws RefusedError for a name that is too long or reserved for automatic saves */
function checkSaveName(saveName: string): void {
  if (AUTOMATIC_NAME.test(saveName)) {
    throw new RefusedError(`The save name "${saveName}" is reserved for automatic saves`);
  }
  const longestBytes = MAX_FILE_NAME_BYTES - Buffer.byteLength(EXTENSION + PARTIAL_SUFFIX);
  const bytes = Buffer.byteLength(saveName);
  if (bytes > longestBytes) {
    const message = `The save name "${saveName}" has ${bytes} bytes; a file name has room for ${longestBytes}`;
    throw new RefusedError(message);
  }
}

interface Content {
  readonly bytes: Buffer;
  readonly digest: string;
}

/** Hash of a city's state, and the frame of that state. */
export interface StateHash {
  readonly frame: number;
  readonly hash: string;
}

/** The running and the next computation of a city's hash. */
const hashes = new WeakMap<World, { running: Promise<unknown>; next: Promise<StateHash> | null }>();

/**
 * SHA-256 of the city's state, without the city's id and the replies to commands. Equal for the same seed and
 * the same commands at the same frames. One hash is computed at a time; requests that arrive meanwhile share the next.
 */
export function hashOf(world: World): Promise<StateHash> {
  const own = hashes.get(world) ?? { running: Promise.resolve(), next: null };
  hashes.set(world, own);
  if (own.next) return own.next;
  own.next = own.running.then(() => {
    own.next = null;
    return computeHash(world);
  });
  own.running = own.next.catch(() => {});
  return own.next;
}

async function computeHash(world: World): Promise<StateHash> {
  const { cityId: _identity, replies: _replies, ...state } = await captureInSteps(world);
  const hash = createHash("sha256");
  for (const text of writeCapture(state)) {
    hash.update(text);
    await setImmediate();
  }
  return { frame: state.frame, hash: hash.digest("hex") };
}

/** Encodes one piece per turn of the event loop, so that requests are not delayed. */
async function encode(capture: Capture): Promise<Content> {
  const pieces: Buffer[] = [];
  for (const text of writeCapture(capture)) {
    pieces.push(Buffer.from(text, "utf8"));
    await setImmediate();
  }
  const bytes = Buffer.concat(pieces);
  return { bytes, digest: await sha256(bytes) };
}

/** Flushes the directory, so that the new name survives a power cut. */
async function syncDirectory(directory: string): Promise<void> {
  const handle = await open(directory, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

const KEPT_PER_CITY = 5;
const CITY_ID_BYTES = 6;
/** Pattern of automatic save names. */
const AUTOMATIC_NAME = /^AutoSave [0-9a-f]{12} \d+$/i;

export function newCityId(): string {
  return randomBytes(CITY_ID_BYTES).toString("hex");
}

/** @param saves newest first */
function automaticSavesOf(cityId: string, saves: readonly SaveFile[]): SaveFile[] {
  const names = namesOf(cityId);
  return saves.filter(({ name }) => names.includes(name));
}

/**
 * Name of a city's next automatic save: an unused name, or the name of the oldest one, which is then overwritten.
 * @param saves newest first
 */
function nextAutomaticName(cityId: string, saves: readonly SaveFile[]): string {
  const own = automaticSavesOf(cityId, saves).map(({ name }) => name);
  return namesOf(cityId).find((name) => !own.includes(name)) ?? (own.at(-1) as string);
}

function namesOf(cityId: string): string[] {
  return Array.from({ length: KEPT_PER_CITY }, (_, i) => `AutoSave ${cityId} ${i + 1}`);
}
