/** A library of many songs, for tests and measurements. */

import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { open } from "lmdb";
import { decodeStoredTask, encodeTask } from "../../../src/music/queue/lmdb-store.js";

/**
 * Fills a library: copies the stored song `id` until there are `count` songs. The server must be stopped.
 * @param directory SVC_TMPDIR of the server
 * @param promptOf prompt of the song with a number
 */
export async function fillLibrary(
  directory: string,
  id: string,
  count: number,
  promptOf = (number: number) => `song ${number}`,
): Promise<void> {
  const path = join(directory, "tasks");
  const database = open<Buffer, string>({ path, encoding: "binary", overlappingSync: false });
  const { task } = decodeStoredTask(id, database.get(id) as Buffer);
  if (task === null) throw new Error("the first song was not stored");
  // Inserts all songs in one transaction, because a disk flush for each song would be slow.
  database.transactionSync(() => {
    for (let number = 1; number < count; number++) {
      const words = { ...task.request.words, prompt: promptOf(number) };
      const request = { ...task.request, words };
      const copy = { ...task, id: randomUUID(), sequence: task.sequence + number, request };
      database.putSync(copy.id, encodeTask(copy));
    }
  });
  await database.close();
}
