import { EventEmitter } from "node:events";
import { expect } from "chai";
import type { CatalogFilter } from "../../src/music/queue/catalog.js";
import type { Retention } from "../../src/music/queue/retention.js";
import type { TaskQueue } from "../../src/music/queue/task-queue.js";
import type { SongRunner } from "../../src/music/song/song-runner.js";
import { Tasks } from "../../src/music/tasks.js";
import { makeTask } from "./tasks.js";

describe("a page of the task list with large tasks", () => {
  for (const megabytes of [5, 9]) {
    it(`a page contains one task of ${megabytes} MB if a second task would exceed the size limit`, async () => {
      const error = "x".repeat(megabytes * 2 ** 20);
      const queue = {
        events: new EventEmitter(),
        page: async () => ({ total: 3, ids: ["a", "b", "c"] }),
        get: async (id: string) => makeTask({ id, state: "failed", finishedAtMs: 1, error }),
      } as unknown as TaskQueue;
      const runner = { audioFiles: {} } as SongRunner;
      const tasks = new Tasks(queue, runner, {} as Retention, (detail) => detail, AbortSignal.abort());
      const page = await tasks.list({ offset: 0, limit: 3 } as CatalogFilter);
      expect(page.tasks.map(({ task_id }) => task_id)).to.deep.equal(["a"]);
      expect(page.total).to.equal(3);
    });
  }
});
