/**
 * Saved cities on disk. A save is written to a temporary file, flushed to the disk, and only then given its name, so
 * that whatever happens meanwhile the last good save of that name stays whole.
 */
import { mkdir, open, readdir, readFile, rename, stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import { setImmediate } from "node:timers/promises";
import { CommandRefusedError, type SaveDirectory, type SaveFile, type SaveResult } from "../../game.js";
import type { World } from "../state/world.js";
import { packCity, SaveFileError, unpackCity } from "./crp.js";
import { restoreSnapshot, SNAPSHOT_VERSION, type Snapshot, takeSnapshot } from "./snapshot.js";

const EXTENSION = ".crp";
const PART_SUFFIX = ".part";
const DEFAULT_NAME = "AgentAutoSave";
const MAX_NAME_CHARACTERS = 64;

export class SaveFiles {
  /** Absolute path. */
  readonly directory: string;
  private writing: Promise<void> | null = null;

  /** @param onFailed told when a save could not be written; the earlier file of that name is then still whole */
  constructor(
    directory: string,
    private readonly onFailed: (error: Error) => void,
  ) {
    this.directory = resolve(directory);
  }

  /**
   * Captures the city as it is now and writes it in the background.
   * @throws CommandRefusedError while another save is being written
   */
  begin(world: World, name: string): SaveResult {
    if (this.writing)
      throw new CommandRefusedError("save-in-progress", "Another save is still being written");
    const saveName = fileNameFor(name);
    const path = join(this.directory, saveName + EXTENSION);
    this.writing = this.write(path, takeSnapshot(world))
      .catch((error: unknown) => {
        const reason = error instanceof Error ? error.message : String(error);
        this.onFailed(new Error(`Saving the city to ${path} failed: ${reason}`, { cause: error }));
      })
      .finally(() => {
        this.writing = null;
      });
    return { saveName, path };
  }

  /** Resolves when no save is being written any more. */
  async settled(): Promise<void> {
    await this.writing;
  }

  async list(): Promise<SaveDirectory> {
    const names = await readdir(this.directory).catch(emptyWhenMissing);
    const files = names.filter((name) => name.toLowerCase().endsWith(EXTENSION));
    const saves = await Promise.all(files.map((file) => this.describe(file)));
    return {
      directory: this.directory,
      saves: saves.filter((save) => save !== null).sort((a, b) => b.lastWriteTimeMs - a.lastWriteTimeMs),
    };
  }

  /** Null for what is no file, or went away after the directory was read. */
  private async describe(file: string): Promise<SaveFile | null> {
    const path = join(this.directory, file);
    const info = await stat(path).catch(() => null);
    if (!info?.isFile()) return null;
    const name = file.slice(0, -EXTENSION.length);
    return { name, path, lastWriteTimeMs: info.mtimeMs, lengthBytes: info.size };
  }

  private async write(path: string, snapshot: Snapshot): Promise<void> {
    const bytes = await packCity(await encode(snapshot), SNAPSHOT_VERSION);
    await mkdir(this.directory, { recursive: true });
    const part = path + PART_SUFFIX;
    const file = await open(part, "w");
    try {
      await file.writeFile(bytes);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(part, path);
    await syncDirectory(this.directory);
  }
}

/**
 * Reads a saved city.
 * @throws SaveFileError naming the file and the reason when it cannot be one
 */
export async function loadWorld(path: string): Promise<World> {
  try {
    const content = await unpackCity(await readFile(path), SNAPSHOT_VERSION);
    return restoreSnapshot(JSON.parse(content.toString("utf8")) as Snapshot);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new SaveFileError(`Cannot load ${path}: ${reason}`, { cause: error });
  }
}

/** Letters, digits, `-`, `_` and spaces stay; everything else becomes `_`. No path can come of it. */
export function fileNameFor(name: string): string {
  const safe = name.trim().replace(/[^\p{L}\p{Nd}\-_ ]/gu, "_");
  return [...safe].slice(0, MAX_NAME_CHARACTERS).join("").trim() || DEFAULT_NAME;
}

/** The snapshot as JSON, one field per turn of the event loop, so that reads are not held up by a large city. */
async function encode(snapshot: Snapshot): Promise<Buffer> {
  const fields: string[] = [];
  for (const [name, value] of Object.entries(snapshot)) {
    fields.push(`${JSON.stringify(name)}:${JSON.stringify(value)}`);
    await setImmediate();
  }
  return Buffer.from(`{${fields.join(",")}}`, "utf8");
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
