/**
 * A program that reads a task store, for a process of its own: some damaged files end the process that reads them.
 *
 *     store-check whole DIRECTORY         walks all of the store, and tries whether it could be written
 *     store-check copy DIRECTORY COPY     copies the store into the directory COPY and walks that
 *     store-check forward DIRECTORY       prints what can be read, a line of JSON each: a task, or the id of one whose
 *     store-check backward DIRECTORY      record is damaged; from either end, as the walk may not come through
 *
 * A walk exits with 0 if all is whole. One damaged record makes the store a damaged one, for even to replace such a
 * record may end the process.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { ABORT, open, type RootDatabase } from "lmdb";
import { storedTask } from "./lmdb-store.js";

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
