/**
 * A program that reads a task store, for a process of its own: some damaged files end the process that reads them.
 *
 *     store-check DIRECTORY             walks all of the store, and tries whether it could be written
 *     store-check DIRECTORY COPY        copies the store into the directory COPY and walks that
 *     store-check --salvage DIRECTORY   prints every task that can be read, a line of JSON each, from both ends
 *
 * A walk prints the ids of records that cannot be read, one a line, and exits with 0 if the store is otherwise whole.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { ABORT, open, type RootDatabase } from "lmdb";
import { storedTask } from "./lmdb-store.js";

const TRIAL_BYTES = 2 ** 20;

const [first, second] = process.argv.slice(2) as [string, string | undefined];

if (first === "--salvage") {
  const store = openToRead(second as string);
  for (const reverse of [false, true]) {
    try {
      for (const { task } of walk(store, reverse)) if (task !== null) console.log(JSON.stringify(task));
    } catch {
      // As far as it goes from this end.
    }
  }
} else {
  if (second === undefined) tryToWrite(first);
  else await openToRead(first).backup(second, true);
  const store = openToRead(second ?? first);
  const { entryCount } = store.getStats() as { entryCount: number };
  let count = 0;
  for (const { id, task } of walk(store, false)) {
    count++;
    if (task === null) console.log(id);
  }
  if (count !== entryCount) throw new Error(`it should hold ${entryCount} tasks, ${count} are found`);
}

function openToRead(directory: string): RootDatabase<Buffer, string> {
  if (!existsSync(join(directory, "data.mdb"))) throw new Error(`there is no data.mdb in ${directory}`);
  return open<Buffer, string>({ path: directory, encoding: "binary", readOnly: true });
}

/** Has the library look for free pages, whose list no walk sees, and gives them back. */
function tryToWrite(directory: string): void {
  const store = open<Buffer, string>({ path: directory, encoding: "binary", overlappingSync: false });
  store.transactionSync(() => {
    store.putSync("trial", Buffer.alloc(TRIAL_BYTES));
    return ABORT;
  });
}

function* walk(store: RootDatabase<Buffer, string>, reverse: boolean) {
  for (const { key, value } of store.getRange({ reverse })) yield storedTask(String(key), value);
}
