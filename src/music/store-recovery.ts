/** Opens the task store of a server only after it was found whole, else from its backup; and keeps that backup. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { copyFile, mkdir, mkdtemp, open, readdir, rename, rm, stat, statfs } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { Logger } from "pino";
import { LmdbTaskStore } from "./lmdb-store.js";
import type { Task } from "./store.js";

const BACKUP_INTERVAL_MS = 10 * 60 * 1000;
/** What the last backup may hold up the end of the server. */
const CLOSING_BACKUP_MS = 2_000;
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

type Finding =
  | { state: "absent" }
  | { state: "whole"; unreadable: string[] }
  | { state: "damaged"; reason: string };

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
  const lost = found.state === "whole" ? await mend(store, found.unreadable, places.backup, log) : [];
  return { store, backup: new StoreBackup(store, directory, lost, log) };
}

/** What an earlier process left unfinished. */
async function removePartial(directory: string): Promise<void> {
  for (const name of await readdir(directory)) {
    if (name.startsWith(PARTIAL)) await rm(join(directory, name), { recursive: true, force: true });
  }
}

async function replace(found: Finding, places: Places, log: Logger): Promise<LmdbTaskStore> {
  const backup = await inspect(places.backup);
  if (found.state === "absent" && backup.state === "absent") return LmdbTaskStore.open(places.store);
  if (backup.state === "damaged")
    log.error({ reason: backup.reason }, "the backup of the task store is damaged");

  const partial = await mkdtemp(join(places.directory, PARTIAL));
  if (backup.state === "whole") await copyFile(dataFile(places.backup), dataFile(partial));
  const aside = await moveAside(places.store);
  await rename(partial, places.store);
  const store = LmdbTaskStore.open(places.store);
  const reason = found.state === "damaged" ? found.reason : "it is not there";
  const origin = backup.state === "whole" ? "its backup" : "nothing: there is no backup";
  log.error({ reason, aside }, `the task store is damaged or gone; it was made anew from ${origin}`);
  if (aside !== null) await salvage(aside, store, log);
  return store;
}

/** Takes tasks whose records cannot be read from the backup, where it has them; resolves with the others. */
async function mend(
  store: LmdbTaskStore,
  unreadable: readonly string[],
  backup: string,
  log: Logger,
): Promise<string[]> {
  const found: Finding = unreadable.length > 0 ? await inspect(backup) : { state: "absent" };
  if (found.state !== "whole") return [...unreadable];
  const lost: string[] = [];
  const copies = LmdbTaskStore.open(backup);
  for (const id of unreadable) {
    const task = found.unreadable.includes(id) ? undefined : await copies.get(id);
    if (task === undefined) {
      lost.push(id);
      continue;
    }
    await store.add(task);
    log.error(
      { task: id, state: task.state },
      "the record of a task was damaged; it was taken from the backup",
    );
  }
  await copies.close();
  return lost;
}

/** Adds what can be read of a damaged store, unless the store knows more of it. */
async function salvage(directory: string, store: LmdbTaskStore, log: Logger): Promise<void> {
  let count = 0;
  const child = startCheck(["--salvage", directory]);
  const ended = endOf(child);
  try {
    for await (const line of createInterface({ input: child.stdout })) {
      const task = parsed(line);
      if (task === null) continue;
      const known = await store.get(task.id);
      if (known !== undefined && (known.finishedAtMs !== null || task.finishedAtMs === null)) continue;
      await store.add(task);
      count++;
    }
  } catch (err) {
    child.kill("SIGKILL");
    log.error({ err, directory }, "not all that can be read of the damaged task store was taken from it");
  }
  await ended;
  log.warn({ count }, "tasks were taken from the damaged task store");
}

/** The last line may be cut short, as the program may not have ended of its own will. */
function parsed(line: string): Task | null {
  try {
    return JSON.parse(line);
  } catch {
    return null;
  }
}

/** The store's folder under another name; null where there is none. */
async function moveAside(store: string): Promise<string | null> {
  const aside = `${store}-damaged-${new Date().toISOString().replaceAll(":", "-")}`;
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
  return check(startCheck([directory]));
}

async function check(child: CheckProcess): Promise<Finding> {
  let complaint = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    complaint += text;
  });
  const ended = endOf(child);
  const unreadable: string[] = [];
  for await (const line of createInterface({ input: child.stdout })) unreadable.push(line);
  const end = await ended;
  if (end === 0) return { state: "whole", unreadable };
  const message = /^\w*Error: (.*)$/m.exec(complaint)?.[1] ?? `its reader ended with ${end}`;
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

/** The exit code, or the signal that ended it. */
async function endOf(child: ChildProcess): Promise<number | string> {
  const [code, signal] = (await once(child, "close")) as [number | null, string | null];
  return code ?? (signal as string);
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
  /** Of the store when it was copied; 0: nothing was ever written to it. */
  #copiedVersion = 0;
  #child: CheckProcess | null = null;
  #copying: Promise<void> = Promise.resolve();

  /** `lost`: records that cannot be read, and could not be when the store was opened. */
  constructor(
    private readonly store: LmdbTaskStore,
    directory: string,
    private readonly lost: readonly string[],
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

  /** A last copy, if it takes no longer than a server may need to end. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    const limit = setTimeout(() => this.#child?.kill("SIGKILL"), CLOSING_BACKUP_MS);
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
      await this.#copyTo(partial);
      await mkdir(backup, { recursive: true });
      await rename(dataFile(partial), dataFile(backup));
    } finally {
      await rm(partial, { recursive: true, force: true });
    }
    this.#copiedVersion = version;
  }

  /** @throws where the copy has lost what the last one may still hold */
  async #copyTo(partial: string): Promise<void> {
    this.#child = startCheck([this.#places.store, partial]);
    const found = await check(this.#child);
    this.#child = null;
    if (found.state !== "whole") throw new Error(found.state === "damaged" ? found.reason : "it is gone");
    const damaged = found.unreadable.filter((id) => !this.lost.includes(id));
    if (damaged.length > 0) throw new Error(`records became unreadable: ${damaged.join(", ")}`);
    const file = await open(dataFile(partial), "r+");
    await file.sync().finally(() => file.close());
  }
}
