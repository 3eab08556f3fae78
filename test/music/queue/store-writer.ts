/**
 * Process that lmdb-store.test.ts kills: stores numbered tasks forever and prints each number once its write is
 * acknowledged.
 */
import { LmdbTaskStore } from "../../../src/music/queue/lmdb-store.js";
import { makeTask } from "../tasks.js";

const store = LmdbTaskStore.open(process.argv[2] as string);
for (let sequence = 1; ; sequence++) {
  await store.add(makeTask({ id: `task-${sequence}`, sequence }));
  await store.update(`task-${sequence}`, (task) => ({ ...task, state: "succeeded" }));
  process.stdout.write(`${sequence}\n`);
}
