/** Checks the task store before opening it, restores a damaged one from its backup, and keeps the backup up to date. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { copyFile, mkdir, mkdtemp, readdir, rename, rm, stat, statfs } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import type { Logger } from "pino";
import { writeAtomically } from "../../system/atomic-file.js";
import { dataFile, LmdbTaskStore, PARTIAL_STORE } from "./lmdb-store.js";
import { DamagedRecordError, type Task } from "./store.js";

const BACKUP_INTERVAL_MS = 10 * 60 * 1000;
/** Time limit of a check process, because reading a damaged file may never end. */
const READ_LIMIT_MS = 5 * 60 * 1000;
/** Disk space that must stay free after a backup copy. */
const MIN_FREE_BYTES = 64 * 2 ** 20;

/**
 * Path of the compiled check program, which starts faster than its source. The relative path is the same from src/
 * and dist/.
 */
const checkProgram = fileURLToPath(new URL("../../../dist/music/queue/store-check.js", import.meta.url));

interface Places {
  /** The server's folder, which contains `store` and `backup`. */
  directory: string;
  store: string;
  backup: string;
}

function placesIn(directory: string): Places {
  return { directory, store: join(directory, "tasks"), backup: join(directory, "tasks-backup") };
}

type Finding = { state: "absent" } | { state: "whole" } | { state: "damaged"; reason: string };

/**
 * Opens or creates the task store in `directory`. A damaged store is moved aside, never deleted. The backup
 * replaces it, completed with the damaged store's records that are still readable.
 */
export async function openTaskStore(
  directory: string,
  log: Logger,
): Promise<{ store: LmdbTaskStore; backup: StoreBackup }> {
  const places = placesIn(directory);
  await removePartial(directory);
  const found = await inspect(places.store);
  if (found.state !== "whole") await replace(found, places, log);
  const store = LmdbTaskStore.open(places.store, undefined, () =>
    log.error(
      { store: places.store },
      "the task store was deleted while the server runs; it was written again",
    ),
  );
  return { store, backup: new StoreBackup(store, directory, log) };
}

/** Removes folders that an earlier process left unfinished. */
async function removePartial(directory: string): Promise<void> {
  for (const name of await readdir(directory)) {
    if (name.startsWith(PARTIAL_STORE)) await rm(join(directory, name), { recursive: true, force: true });
  }
}

/** Builds the new store in a temporary folder, and moves it into place when it is complete. */
async function replace(found: Finding, places: Places, log: Logger): Promise<void> {
  const backup = await inspect(places.backup);
  if (found.state === "absent" && backup.state === "absent") return;
  const reason = found.state === "damaged" ? found.reason : "the store is missing";
  log.error({ reason }, "the task store is damaged or missing; restoring it");
  if (backup.state === "damaged")
    log.error({ reason: backup.reason }, "the backup of the task store is damaged too");

  const partial = await mkdtemp(join(places.directory, PARTIAL_STORE));
  if (backup.state === "whole") await copyFile(dataFile(places.backup), dataFile(partial));
  const replacement = LmdbTaskStore.open(partial);
  const salvaged = found.state === "damaged" ? await salvage(places.store, replacement, log) : 0;
  await replacement.close();
  const aside = await moveAside(places.store);
  await rename(partial, places.store);
  log.error(
    { backup: backup.state, salvaged, aside },
    "restored the task store from its backup and readable records",
  );
}

/** Adds the readable records of a damaged store to the new store if they are missing there. Returns their number. */
async function salvage(damaged: string, store: LmdbTaskStore, log: Logger): Promise<number> {
  let count = 0;
  const lost = new Set<string>();
  try {
    for (const direction of ["forward", "backward"]) {
      for await (const found of readable(direction, damaged)) {
        if (typeof found === "string") lost.add(found);
        else if (await addIfNewer(found, store)) count++;
      }
    }
    for (const id of lost) await store.addLost(id);
  } catch (err) {
    log.error({ err, damaged }, "could not add all readable records of the damaged task store");
  }
  return count;
}

/** Yields each readable task of a store, and the id of each task whose record is damaged. */
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

async function addIfNewer(task: Task, store: LmdbTaskStore): Promise<boolean> {
  const known = await store.get(task.id).catch((error: unknown) => {
    if (error instanceof DamagedRecordError) return undefined;
    throw error;
  });
  if (known !== undefined && (known.finishedAtMs !== null || task.finishedAtMs === null)) return false;
  await store.add(task);
  return true;
}

/** Parses a line of the check program. Returns null if the line is incomplete because the program crashed. */
function parsed(line: string): Task | string | null {
  try {
    return JSON.parse(line);
  } catch {
    return null;
  }
}

/** Renames the store's folder. Returns the new path; null if there is no store. */
async function moveAside(store: string): Promise<string | null> {
  // Use no dot in the name: LMDB treats a path with an extension as a file.
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
  child.stdout.resume();
  const [stderr, [code, signal]] = await Promise.all([text(child.stderr), once(child, "close")]);
  if (code === 0) return { state: "whole" };
  const message = /^\w*Error: (.*)$/m.exec(stderr)?.[1] ?? `the reading process ended with ${code ?? signal}`;
  return { state: "damaged", reason: message };
}

type CheckProcess = ReturnType<typeof startCheck>;

function startCheck(args: readonly string[]) {
  // Without this check, a missing program would look like a damaged store.
  if (!existsSync(checkProgram)) throw new Error(`${checkProgram} is missing: run npm run build`);
  return spawn(process.execPath, [checkProgram, ...args], {
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

/**
 * Backs up the store every ten minutes if it changed, and on close. A failed copy does not replace the last valid
 * one.
 */
class StoreBackup {
  readonly #places: Places;
  readonly #timer: NodeJS.Timeout;
  /** Version of the store when it was last copied. Initially 0, the version of an empty store. */
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

  /** Backs up the store. Failures are logged, never thrown. */
  copy(): Promise<void> {
    this.#copying = this.#copying
      .then(() => this.#copy())
      .catch((err: unknown) => this.log.warn({ err }, "could not back up the task store"));
    return this.#copying;
  }

  /** Makes a final backup. Aborts it if it takes longer than `limitMs`. */
  async close(limitMs: number): Promise<void> {
    clearInterval(this.#timer);
    const limit = setTimeout(() => this.#child?.kill("SIGKILL"), limitMs);
    await this.copy();
    clearTimeout(limit);
  }

  async #copy(): Promise<void> {
    this.store.keepInPlace();
    const version = this.store.version;
    if (version === this.#copiedVersion) return;
    const { directory, store, backup } = this.#places;
    const { bavail, bsize } = await statfs(store);
    if (bavail * bsize < (await bytesOf(store)) + MIN_FREE_BYTES) throw new Error("the disk is nearly full");
    const partial = await mkdtemp(join(directory, PARTIAL_STORE));
    try {
      await mkdir(backup, { recursive: true });
      await writeAtomically(dataFile(backup), () => this.#copyTo(partial), { partial: dataFile(partial) });
    } finally {
      await rm(partial, { recursive: true, force: true });
    }
    this.#copiedVersion = version;
  }

  /** @throws Error if the store is damaged; the last valid backup is kept */
  async #copyTo(partial: string): Promise<void> {
    this.#child = startCheck(["copy", this.#places.store, partial]);
    const found = await check(this.#child);
    this.#child = null;
    if (found.state !== "whole")
      throw new Error(found.state === "damaged" ? found.reason : "the store is missing");
  }
}
