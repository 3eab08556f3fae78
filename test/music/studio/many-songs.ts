/** A library of many songs, for tests and measurements. */
import { join } from "node:path";
import { open } from "lmdb";
import { v4 as uuid } from "uuid";
import { decodeStoredTask, encodeTask } from "../../../src/music/queue/lmdb-store.js";

/**
 * Copies the stored song `id` until there are `count` of them, with the prompts "song 1" and so on. No server may run.
 * @param directory SVC_TMPDIR
 */
export async function fillLibrary(directory: string, id: string, count: number): Promise<void> {
  const path = join(directory, "tasks");
  const database = open<Buffer, string>({ path, encoding: "binary", overlappingSync: false });
  const { task } = decodeStoredTask(id, database.get(id) as Buffer);
  if (task === null) throw new Error("the first song was not stored");
  // One transaction, instead of a disk flush for each song.
  database.transactionSync(() => {
    for (let number = 1; number < count; number++) {
      const request = { ...task.request, prompt: `song ${number}` };
      const copy = { ...task, id: uuid(), sequence: task.sequence + number, request };
      database.putSync(copy.id, encodeTask(copy));
    }
  });
  await database.close();
}
