/** Opens the task store of a server only after it was found whole, else from its backup; and keeps that backup. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { copyFile, mkdir, mkdtemp, readdir, rename, rm, stat, statfs } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { Logger } from "pino";
import { writeWhole } from "../../whole-file.js";
import { LmdbTaskStore } from "./lmdb-store.js";
import { DamagedRecordError, type Task } from "./store.js";

const BACKUP_INTERVAL_MS = 10 * 60 * 1000;
/** A damaged file may also lead its reader in circles. */
const READ_LIMIT_MS = 5 * 60 * 1000;
/** What a copy leaves free on its disk: the store itself needs room too. */
const MIN_FREE_BYTES = 64 * 2 ** 20;

const checkProgram = fileURLToPath(
  new URL(import.meta.url.endsWith(".ts") ? "store-check.ts" : "store-check.js", import.meta.url),
);

/** Begins the names of folders that are not complete yet. */
const PARTIAL = "tasks-part-";

interface Places {
  /** The server's own folder, in which the others are. */
  directory: string;
  store: string;
  backup: string;
}

function placesIn(directory: string): Places {
  return { directory, store: join(directory, "tasks"), backup: join(directory, "tasks-backup") };
}

function dataFile(store: string): string {
  return join(store, "data.mdb");
}

type Finding = { state: "absent" } | { state: "whole" } | { state: "damaged"; reason: string };

/**
 * Opens or creates the store of the server that works on `directory`. A damaged one is moved aside and never deleted:
 * its place is taken by the backup, and what can still be read of it is added to that.
 */
export async function openTaskStore(
  directory: string,
  log: Logger,
): Promise<{ store: LmdbTaskStore; backup: StoreBackup }> {
  const places = placesIn(directory);
  await removePartial(directory);
  const found = await inspect(places.store);
  const store =
    found.state === "whole" ? LmdbTaskStore.open(places.store) : await replace(found, places, log);
  return { store, backup: new StoreBackup(store, directory, log) };
}

/** What an earlier process left unfinished. */
async function removePartial(directory: string): Promise<void> {
  for (const name of await readdir(directory)) {
    if (name.startsWith(PARTIAL)) await rm(join(directory, name), { recursive: true, force: true });
  }
}

/** Makes the new store in a folder of its own: one that takes the old one's place is complete. */
async function replace(found: Finding, places: Places, log: Logger): Promise<LmdbTaskStore> {
  const backup = await inspect(places.backup);
  if (found.state === "absent" && backup.state === "absent") return LmdbTaskStore.open(places.store);
  const reason = found.state === "damaged" ? found.reason : "it is not there";
  log.error({ reason }, "the task store cannot be used");
  if (backup.state === "damaged") log.error({ reason: backup.reason }, "nor can its backup");

  const partial = await mkdtemp(join(places.directory, PARTIAL));
  if (backup.state === "whole") await copyFile(dataFile(places.backup), dataFile(partial));
  const replacement = LmdbTaskStore.open(partial);
  const salvaged = found.state === "damaged" ? await salvage(places.store, replacement, log) : 0;
  await replacement.close();
  const aside = await moveAside(places.store);
  await rename(partial, places.store);
  log.error({ backup: backup.state, salvaged, aside }, "the task store was made anew from what there is");
  return LmdbTaskStore.open(places.store);
}

/** Adds what can be read of a damaged store, unless the store knows more of it; resolves with the number of tasks. */
async function salvage(damaged: string, store: LmdbTaskStore, log: Logger): Promise<number> {
  let count = 0;
  const lost = new Set<string>();
  try {
    for (const direction of ["forward", "backward"]) {
      for await (const found of readable(direction, damaged)) {
        if (typeof found === "string") lost.add(found);
        else if (await addIfNews(found, store)) count++;
      }
    }
    for (const id of lost) await store.addLost(id);
  } catch (err) {
    log.error({ err, damaged }, "not all that can be read of the damaged task store was taken from it");
  }
  return count;
}

/** Tasks, and ids of those whose records are damaged. */
async function* readable(direction: string, directory: string): AsyncIterable<Task | string> {
  const child = startCheck([direction, directory]);
  child.stderr.resume();
  try {
    for await (const line of createInterface({ input: child.stdout })) {
      const found = parsed(line);
      if (found !== null) yield found;
    }
  } finally {
    child.kill("SIGKILL");
  }
}

async function addIfNews(task: Task, store: LmdbTaskStore): Promise<boolean> {
  const known = await store.get(task.id).catch((error: unknown) => {
    if (error instanceof DamagedRecordError) return undefined;
    throw error;
  });
  if (known !== undefined && (known.finishedAtMs !== null || task.finishedAtMs === null)) return false;
  await store.add(task);
  return true;
}

/** The last line may be cut short, as the program may not have ended of its own will. */
function parsed(line: string): Task | string | null {
  try {
    return JSON.parse(line);
  } catch {
    return null;
  }
}

/** The store's folder under another name; null where there is none. */
async function moveAside(store: string): Promise<string | null> {
  // No dot: the library takes a name with an extension for a file.
  const stamp = new Date().toISOString().replaceAll(/[:.]/g, "-");
  const aside = `${store}-damaged-${stamp}`;
  try {
    await rename(store, aside);
    return aside;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}

async function inspect(directory: string): Promise<Finding> {
  if ((await bytesOf(directory)) === 0) return { state: "absent" };
  return check(startCheck(["whole", directory]));
}

async function check(child: CheckProcess): Promise<Finding> {
  let complaint = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    complaint += text;
  });
  child.stdout.resume();
  const [code, signal] = (await once(child, "close")) as [number | null, string | null];
  if (code === 0) return { state: "whole" };
  const message = /^\w*Error: (.*)$/m.exec(complaint)?.[1] ?? `its reader ended with ${code ?? signal}`;
  return { state: "damaged", reason: message };
}

type CheckProcess = ReturnType<typeof startCheck>;

function startCheck(args: readonly string[]) {
  return spawn(process.execPath, [...process.execArgv, checkProgram, ...args], {
    stdio: ["ignore", "pipe", "pipe"],
    timeout: READ_LIMIT_MS,
    killSignal: "SIGKILL",
  });
}

async function bytesOf(directory: string): Promise<number> {
  try {
    return (await stat(dataFile(directory))).size;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return 0;
    throw error;
  }
}

/** Copies the store every few minutes in which it changed, and when it is closed. The last whole copy always stays. */
class StoreBackup {
  readonly #places: Places;
  readonly #timer: NodeJS.Timeout;
  /** The version of the store when it was copied; 0: nothing was ever written to it. */
  #copiedVersion = 0;
  #child: CheckProcess | null = null;
  #copying: Promise<void> = Promise.resolve();

  constructor(
    private readonly store: LmdbTaskStore,
    directory: string,
    private readonly log: Logger,
  ) {
    this.#places = placesIn(directory);
    this.#timer = setInterval(() => void this.copy(), BACKUP_INTERVAL_MS).unref();
  }

  /** Resolves once a copy was made, or could not be: the log then says why. */
  copy(): Promise<void> {
    this.#copying = this.#copying
      .then(() => this.#copy())
      .catch((err: unknown) => this.log.warn({ err }, "the task store could not be backed up"));
    return this.#copying;
  }

  /** Makes a last copy if that takes no longer than `limitMs`. */
  async close(limitMs: number): Promise<void> {
    clearInterval(this.#timer);
    const limit = setTimeout(() => this.#child?.kill("SIGKILL"), limitMs);
    await this.copy();
    clearTimeout(limit);
  }

  async #copy(): Promise<void> {
    const version = this.store.version;
    if (version === this.#copiedVersion) return;
    const { directory, store, backup } = this.#places;
    const { bavail, bsize } = await statfs(store);
    if (bavail * bsize < (await bytesOf(store)) + MIN_FREE_BYTES) throw new Error("its disk is nearly full");
    const partial = await mkdtemp(join(directory, PARTIAL));
    try {
      await mkdir(backup, { recursive: true });
      await writeWhole(dataFile(backup), () => this.#copyTo(partial), { partial: dataFile(partial) });
    } finally {
      await rm(partial, { recursive: true, force: true });
    }
    this.#copiedVersion = version;
  }

  /** @throws where the store is damaged; the last copy then stays */
  async #copyTo(partial: string): Promise<void> {
    this.#child = startCheck(["copy", this.#places.store, partial]);
    const found = await check(this.#child);
    this.#child = null;
    if (found.state !== "whole") throw new Error(found.state === "damaged" ? found.reason : "it is gone");
  }
}
