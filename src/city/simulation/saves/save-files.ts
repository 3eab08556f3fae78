/**
 * Saved cities on disk. A save is written to a temporary file, flushed to the disk, and only then given its name, so
 * that whatever happens meanwhile the last good save of that name stays whole. Automatic saves are named
 * `AutoSave 3f09c1d2a7be 4`: the identity of the city is part of them, so that none replaces a file of another city, and
 * the number goes round, so that each city keeps its latest ones.
 */
import { createHash, randomBytes } from "node:crypto";
import { mkdir, open, readdir, readFile, stat, utimes, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { setImmediate } from "node:timers/promises";
import { PARTIAL_SUFFIX, writeWhole } from "../../../whole-file.js";
import { CommandRefusedError, type SaveDirectory, type SaveFile, type SaveResult } from "../../game.js";
import { DEFAULT_SAVE_NAME } from "../../terms.js";
import type { World } from "../state/world.js";
import { type Capture, captureInTurns, writeCapture } from "./capture.js";
import { packCity, SaveFileError, unpackCity } from "./crp.js";
import { migrate, restoreSnapshot, SNAPSHOT_VERSION } from "./snapshot.js";

const EXTENSION = ".crp";
const MAX_NAME_CHARACTERS = 64;
/** All common file systems allow it. */
const MAX_FILE_NAME_BYTES = 255;

export class SaveFiles {
  /** Absolute path. */
  readonly directory: string;
  readonly #onFailed: (error: Error) => void;
  #writing: Promise<void> | null = null;
  /** The last file that was written or loaded, and a digest of the city in it. */
  #last: { readonly path: string; readonly digest: string } | null = null;

  /** @param onFailed told when a save could not be written; the earlier file of that name is then still whole */
  constructor(directory: string, onFailed: (error: Error) => void) {
    this.directory = resolve(directory);
    this.#onFailed = onFailed;
  }

  /**
   * Captures the city as it is now and writes it in the background.
   * @throws CommandRefusedError while another save is being written, and for a name that no file can have
   */
  begin(world: World, name: string): SaveResult {
    if (this.#writing)
      throw new CommandRefusedError("save-in-progress", "Another save is still being written");
    const saveName = fileNameFor(name);
    checkSaveName(saveName);
    const path = join(this.directory, saveName + EXTENSION);
    this.#run(path, async () => this.#write(path, await encode(await captureInTurns(world))));
    return { saveName, path };
  }

  /**
   * Saves the city under an automatic name of its own, after the save that is being written if there is one, and not at
   * all where the newest save holds just this state. Resolves once that is done, or has failed and was told.
   */
  async autosave(world: World): Promise<void> {
    while (this.#writing) await this.#writing;
    world.cityId ??= newCityId();
    const { cityId } = world;
    this.#run(this.directory, async () => {
      const content = await encode(await captureInTurns(world));
      const { saves } = await this.list();
      const isSaved = this.#last?.path === saves[0]?.path && this.#last?.digest === content.digest;
      if (!isSaved)
        await this.#write(join(this.directory, nextAutomaticName(cityId, saves) + EXTENSION), content);
    });
    await this.#writing;
  }

  /**
   * Reads a saved city. One whose automatic saves hold a later state goes on as another city from here, so that its own
   * automatic saves never replace those.
   * @throws SaveFileError naming the file and the reason when it cannot be loaded
   */
  async load(path: string): Promise<World> {
    const { world, digest } = await readSave(path);
    const { saves } = await this.list();
    const { mtimeMs } = await stat(path);
    const later = saves.filter(({ lastWriteTimeMs }) => lastWriteTimeMs > mtimeMs);
    if (world.cityId !== null && automaticSavesOf(world.cityId, later).length > 0) world.cityId = newCityId();
    this.#last = { path: resolve(path), digest };
    return world;
  }

  /**
   * Reads the newest save that is whole; null where none is.
   * @param onRefused told of every newer one that could not be loaded; it stays as it is
   */
  async loadNewest(onRefused: (error: Error) => void): Promise<World | null> {
    for (const { path } of (await this.list()).saves) {
      try {
        return await this.load(path);
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

  async list(): Promise<SaveDirectory> {
    const names = await readdir(this.directory).catch(emptyWhenMissing);
    const files = names.filter((name) => name.toLowerCase().endsWith(EXTENSION));
    const saves = await Promise.all(files.map((file) => this.#describe(file)));
    return {
      directory: this.directory,
      saves: saves.filter((save) => save !== null).sort((a, b) => b.lastWriteTimeMs - a.lastWriteTimeMs),
    };
  }

  /** Null for what is no file, or went away after the directory was read. */
  async #describe(file: string): Promise<SaveFile | null> {
    const path = join(this.directory, file);
    const info = await stat(path).catch(() => null);
    if (!info?.isFile()) return null;
    const name = file.slice(0, -EXTENSION.length);
    return { name, path, lastWriteTimeMs: info.mtimeMs, lengthBytes: info.size };
  }

  /** Does the work of a save in the background. */
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
    await mkdir(this.directory, { recursive: true });
    const writeTime = await this.#nextWriteTime();
    const write = async (partial: string) => {
      await writeFile(partial, bytes);
      await utimes(partial, writeTime, writeTime);
    };
    await writeWhole(path, write, { partial: path + PARTIAL_SUFFIX });
    await syncDirectory(this.directory);
    this.#last = { path, digest };
  }

  /** Later than that of every save there is, also where the clock of the system was once ahead. */
  async #nextWriteTime(): Promise<Date> {
    const newestMs = (await this.list()).saves[0]?.lastWriteTimeMs ?? 0;
    return new Date(Math.max(Date.now(), Math.ceil(newestMs) + 1));
  }
}

/**
 * Reads a saved city.
 * @throws SaveFileError naming the file and the reason when it cannot be one
 */
export async function readSave(path: string): Promise<{ world: World; digest: string }> {
  try {
    const { content, version } = await unpackCity(await readFile(path), SNAPSHOT_VERSION);
    const world = restoreSnapshot(migrate(JSON.parse(content.toString("utf8")), version));
    return { world, digest: digestOf(content) };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new SaveFileError(`Cannot load ${path}: ${reason}`, { cause: error });
  }
}

/** Letters, digits, `-`, `_` and spaces stay; everything else becomes `_`. No path can come of it. */
export function fileNameFor(name: string): string {
  const safe = name.trim().replace(/[^\p{L}\p{Nd}\-_ ]/gu, "_");
  return [...safe].slice(0, MAX_NAME_CHARACTERS).join("").trim() || DEFAULT_SAVE_NAME;
}

/** @throws CommandRefusedError */
function checkSaveName(saveName: string): void {
  if (AUTOMATIC_NAME.test(saveName)) {
    const message = `The save name "${saveName}" is one of those that automatic saves have`;
    throw new CommandRefusedError("bad-save-name", message);
  }
  const longestBytes = MAX_FILE_NAME_BYTES - Buffer.byteLength(EXTENSION + PARTIAL_SUFFIX);
  const bytes = Buffer.byteLength(saveName);
  if (bytes > longestBytes) {
    const message = `The save name "${saveName}" has ${bytes} bytes; a file name has room for ${longestBytes}`;
    throw new CommandRefusedError("bad-save-name", message);
  }
}

const DIGEST = "sha256";

function digestOf(content: Buffer): string {
  return createHash(DIGEST).update(content).digest("hex");
}

interface Content {
  readonly bytes: Buffer;
  readonly digest: string;
}

/** A piece per turn of the event loop, so that reads are not held up by a large city. */
async function encode(capture: Capture): Promise<Content> {
  const pieces: Buffer[] = [];
  const hash = createHash(DIGEST);
  for (const text of writeCapture(capture)) {
    const piece = Buffer.from(text, "utf8");
    hash.update(piece);
    pieces.push(piece);
    await setImmediate();
  }
  return { bytes: Buffer.concat(pieces), digest: hash.digest("hex") };
}

/** Makes the new name itself survive a power cut, where the system allows to flush a directory. */
async function syncDirectory(directory: string): Promise<void> {
  if (process.platform === "win32") return;
  const handle = await open(directory, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

function emptyWhenMissing(error: NodeJS.ErrnoException): string[] {
  if (error.code === "ENOENT") return [];
  throw error;
}

const KEPT_PER_CITY = 5;
const CITY_ID_BYTES = 6;
/** The automatic save of some city. */
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
 * The name for a city's next automatic save: an unused one, else that of the oldest.
 * @param saves newest first
 */
function nextAutomaticName(cityId: string, saves: readonly SaveFile[]): string {
  const own = automaticSavesOf(cityId, saves).map(({ name }) => name);
  return namesOf(cityId).find((name) => !own.includes(name)) ?? (own.at(-1) as string);
}

function namesOf(cityId: string): string[] {
  return Array.from({ length: KEPT_PER_CITY }, (_, i) => `AutoSave ${cityId} ${i + 1}`);
}
