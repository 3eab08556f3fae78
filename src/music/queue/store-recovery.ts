/** Checks the task store before opening it, restores a damaged one from its backup, and keeps the backup up to date. */
import { execFile } from "node:child_process";
import { existsSync, statSync } from "node:fs";
import { copyFile, mkdir, mkdtemp, readdir, rename, rm, statfs } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { Logger } from "pino";
import { writeAtomically } from "../../system/atomic-file.js";
import { dataFile, LmdbTaskStore, PARTIAL_STORE } from "./lmdb-store.js";

const run = promisify(execFile);

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

const MISSING = "it is missing";

/** The store and its backup in the server's folder. */
function placesIn(directory: string) {
  return { directory, store: join(directory, "tasks"), backup: join(directory, "tasks-backup") };
}

/**
 * Opens or creates the task store in `directory`. A damaged store is moved aside, never deleted, and its backup
 * replaces it.
 */
export async function openTaskStore(
  directory: string,
  log: Logger,
): Promise<{ store: LmdbTaskStore; backup: StoreBackup }> {
  const places = placesIn(directory);
  // Folders that an earlier process left unfinished.
  for (const name of await readdir(directory)) {
    if (name.startsWith(PARTIAL_STORE)) await rm(join(directory, name), { recursive: true, force: true });
  }
  const fault = await faultOf(places.store);
  if (fault !== null) await replace(fault, places, log);
  const store = LmdbTaskStore.open(places.store, undefined, () =>
    log.error(
      { store: places.store },
      "the task store was deleted while the server runs; it was written again",
    ),
  );
  return { store, backup: new StoreBackup(store, directory, log) };
}

/** Builds the new store in a temporary folder, and moves it into place when it is complete. */
async function replace(
  reason: string,
  { directory, store, backup }: ReturnType<typeof placesIn>,
  log: Logger,
): Promise<void> {
  const backupFault = await faultOf(backup);
  if (reason === MISSING && backupFault === MISSING) return;
  log.error({ reason, backup: backupFault ?? "whole" }, "the task store is damaged or missing; restoring it");
  const partial = await mkdtemp(join(directory, PARTIAL_STORE));
  if (backupFault === null) await copyFile(dataFile(backup), dataFile(partial));
  // Use no dot in the name: LMDB treats a path with an extension as a file.
  const aside = `${store}-damaged-${new Date().toISOString().replaceAll(/[:.]/g, "-")}`;
  if (existsSync(store)) await rename(store, aside);
  await rename(partial, store);
  log.error({ aside }, "restored the task store from its backup");
}

/** Returns why the store in a folder cannot be used; null if it is whole. */
async function faultOf(directory: string): Promise<string | null> {
  return bytesOf(directory) === 0 ? MISSING : await check(["whole", directory]);
}

/** Runs the check program until it ends or `signal` fires. */
async function check(args: readonly string[], signal?: AbortSignal): Promise<string | null> {
  // Without this check, a missing program would look like a damaged store.
  if (!existsSync(checkProgram)) throw new Error(`${checkProgram} is missing: run npm run build`);
  const limits = { timeout: READ_LIMIT_MS, killSignal: "SIGKILL", ...(signal && { signal }) } as const;
  return run(process.execPath, [checkProgram, ...args], limits).then(
    () => null,
    ({ stderr, code, signal }) =>
      /^\w*Error: (.*)$/m.exec(stderr)?.[1] ?? `the reading process ended with ${code ?? signal}`,
  );
}

function bytesOf(directory: string): number {
  return statSync(dataFile(directory), { throwIfNoEntry: false })?.size ?? 0;
}

/**
 * Backs up the store every ten minutes if it changed, and on close. A failed copy does not replace the last valid
 * one.
 */
class StoreBackup {
  readonly #places: ReturnType<typeof placesIn>;
  readonly #timer: NodeJS.Timeout;
  /** Version of the store when it was last copied. Initially 0, the version of an empty store. */
  #copiedVersion = 0;
  readonly #closing = new AbortController();
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
    const limit = setTimeout(() => this.#closing.abort(), limitMs);
    await this.copy();
    clearTimeout(limit);
  }

  async #copy(): Promise<void> {
    this.store.keepInPlace();
    const version = this.store.version;
    if (version === this.#copiedVersion) return;
    const { directory, store, backup } = this.#places;
    const { bavail, bsize } = await statfs(store);
    if (bavail * bsize < bytesOf(store) + MIN_FREE_BYTES) throw new Error("the disk is nearly full");
    const partial = await mkdtemp(join(directory, PARTIAL_STORE));
    try {
      await mkdir(backup, { recursive: true });
      // A damaged store replaces no valid backup.
      const copy = async () => {
        const fault = await check(["copy", store, partial], this.#closing.signal);
        if (fault !== null) throw new Error(fault);
      };
      await writeAtomically(dataFile(backup), copy, { partial: dataFile(partial) });
    } finally {
      await rm(partial, { recursive: true, force: true });
    }
    this.#copiedVersion = version;
  }
}
