/**
 * Program that checks or copies a task store. It runs as a separate process, because reading some damaged files
 * crashes the reading process.
 *
 *     store-check whole DIRECTORY         reads the whole store and tries to write to it
 *     store-check copy DIRECTORY COPY     copies the store into the directory COPY and reads the copy
 *     store-check forward DIRECTORY       prints each task as a line of JSON, or only the id if it is damaged
 *     store-check backward DIRECTORY      like forward, but from the end, to get past a damaged task
 *
 * Exits with 0 if the store is valid. One damaged record makes the store invalid, since even replacing such a
 * record may crash the process.
 */
import { existsSync } from "node:fs";
import { ABORT, open, type RootDatabase } from "lmdb";
import { dataFile, decodeStoredTask } from "./lmdb-store.js";

const TRIAL_BYTES = 2 ** 20;

const [task, directory, copy] = process.argv.slice(2) as [string, string, string | undefined];

if (task === "forward" || task === "backward") {
  for (const stored of walk(openToRead(directory), task === "backward")) {
    if (stored.task !== null) console.log(JSON.stringify(stored.task));
    else if (stored.damage.kind !== "newer") console.log(JSON.stringify(stored.id));
  }
} else {
  if (copy === undefined) tryToWrite(directory);
  else await openToRead(directory).backup(copy, true);
  assertWhole(openToRead(copy ?? directory));
}

function assertWhole(store: RootDatabase<Buffer, string>): void {
  const { entryCount } = store.getStats() as { entryCount: number };
  let count = 0;
  for (const stored of walk(store, false)) {
    count++;
    if (stored.task === null && stored.damage.kind === "corrupt") throw stored.damage;
  }
  if (count !== entryCount)
    throw new Error(`the store should hold ${entryCount} tasks, but ${count} were found`);
}

function openToRead(directory: string): RootDatabase<Buffer, string> {
  if (!existsSync(dataFile(directory))) throw new Error(`there is no data.mdb in ${directory}`);
  return open<Buffer, string>({ path: directory, encoding: "binary", readOnly: true });
}

/**
 * Writes in a transaction, then aborts the transaction. Unlike reading, the write allocates pages and thus checks
 * the list of free pages.
 */
function tryToWrite(directory: string): void {
  const store = open<Buffer, string>({ path: directory, encoding: "binary", overlappingSync: false });
  store.transactionSync(() => {
    store.putSync("trial", Buffer.alloc(TRIAL_BYTES));
    return ABORT;
  });
}

function* walk(store: RootDatabase<Buffer, string>, reverse: boolean) {
  for (const { key, value } of store.getRange({ reverse })) yield decodeStoredTask(String(key), value);
}
