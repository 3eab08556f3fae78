import { EventEmitter } from "node:events";
import { setImmediate } from "node:timers/promises";
import { expect } from "chai";
import { NO_UPLOADS } from "../../src/music/audio/uploads.js";
import { HttpError, StoreError } from "../../src/music/errors.js";
import type { CatalogFilter } from "../../src/music/queue/catalog.js";
import type { Retention } from "../../src/music/queue/retention.js";
import { DamagedRecordError, type Task } from "../../src/music/queue/store.js";
import type { QueueEvents, TaskQueue } from "../../src/music/queue/task-queue.js";
import { Previews } from "../../src/music/song/preview.js";
import type { TaskFiles } from "../../src/music/task-files.js";
import { Tasks } from "../../src/music/tasks.js";
import { failureOf } from "../failures.js";
import { makeTask } from "./tasks.js";

describe("tasks whose records are gone or cannot be read", () => {
  const files = { songs: {} } as TaskFiles;
  const ended = makeTask({ id: "a", state: "failed", finishedAtMs: 1, error: "broken" });
  const running = makeTask({ id: "a", state: "running" });
  const tasksOf = (queue: Partial<TaskQueue>, stopping = new AbortController().signal) => {
    const live = async () => ({ progress: undefined, position: undefined });
    const all = { events: new EventEmitter<QueueEvents>(), live, ...queue } as TaskQueue;
    return {
      queue: all,
      tasks: new Tasks(all, files, new Previews(), {} as Retention, (detail) => detail, stopping),
    };
  };
  const { signal } = new AbortController();

  it("a client that waits for a task gets it although the store did not answer for a while", async () => {
    let reads = 0;
    const get = async () => {
      if (reads++ === 0) throw new StoreError("UNREACHABLE", "the store does not answer");
      return ended;
    };
    expect(await tasksOf({ get }).tasks.whenEnded("a", signal)).to.equal(ended);
  });

  it("clients that wait for a task or follow it are not left waiting if it is removed", async () => {
    let record: Task | undefined = running;
    const { queue, tasks } = tasksOf({ get: async () => record });
    const failure = failureOf(tasks.whenEnded("a", signal));
    const { log } = await tasks.follow("a", "");
    await setImmediate();
    record = undefined;
    queue.events.emit("removed", "a");
    expect(await failure)
      .to.be.instanceOf(HttpError)
      .and.include({ status: 500 });
    expect(log.hasEnded).to.equal(true);
    expect(tasks.eventLogs).to.equal(0);
    expect(await failureOf(tasks.whenEnded("a", signal))).to.include({ status: 500 });
  });

  it("no memory is held for tasks that clients follow in vain", async () => {
    const { tasks } = tasksOf({ get: async () => undefined });
    expect(await failureOf(tasks.follow("a", ""))).to.include({ status: 404 });
    const unread = tasksOf({ live: () => Promise.reject(new StoreError("UNREACHABLE", "no answer")) });
    expect(await failureOf(unread.tasks.follow("a", ""))).to.be.instanceOf(StoreError);
    expect([tasks.eventLogs, unread.tasks.eventLogs]).to.deep.equal([0, 0]);
  });

  it("changing, removing or cancelling a task with a damaged record answers 404", async () => {
    const damaged = () =>
      Promise.reject(new DamagedRecordError("a", "corrupt", "the checksum does not match"));
    const { tasks } = tasksOf({ get: damaged, update: damaged, cancel: damaged });
    for (const call of [
      tasks.get("a"),
      tasks.mark("a", { title: "x", favorite: undefined }),
      tasks.remove("a", ["failed"]),
      tasks.cancel("a"),
      tasks.retakeOf("a", NO_UPLOADS),
      tasks.follow("a", ""),
    ])
      expect(await failureOf(call)).to.include({ status: 404 });
  });

  it("removing a task that another client removes meanwhile answers 404", async () => {
    let reads = 0;
    const get = async () => (reads++ === 0 ? running : undefined);
    const { tasks } = tasksOf({ get, cancel: async () => false });
    expect(await failureOf(tasks.remove("a", ["queued", "running"]))).to.include({ status: 404 });
  });
});

describe("a page of the task list with large tasks", () => {
  for (const megabytes of [5, 9]) {
    it(`a page contains one task of ${megabytes} MB if a second task would exceed the size limit`, async () => {
      const error = "x".repeat(megabytes * 2 ** 20);
      const queue = {
        events: new EventEmitter(),
        page: async () => ({ total: 3, ids: ["a", "b", "c"] }),
        get: async (id: string) => makeTask({ id, state: "failed", finishedAtMs: 1, error }),
      } as unknown as TaskQueue;
      const files = { songs: {} } as TaskFiles;
      const tasks = new Tasks(
        queue,
        files,
        new Previews(),
        {} as Retention,
        (detail) => detail,
        AbortSignal.abort(),
      );
      const page = await tasks.list({ offset: 0, limit: 3 } as CatalogFilter);
      expect(page.tasks.map(({ task_id }) => task_id)).to.deep.equal(["a"]);
      expect(page.total).to.equal(3);
    });
  }
});
