import { expect } from "chai";
import { StoreError } from "../../../src/music/errors.js";
import type { EmbeddedQueue, QueueOptions } from "../../../src/music/queue/embedded-queue.js";
import { LmdbTaskStore } from "../../../src/music/queue/lmdb-store.js";
import { JobStatistics } from "../../../src/music/queue/rules.js";
import type { Task } from "../../../src/music/queue/store.js";
import {
  EVERY_TASK,
  embeddedQueue,
  makeRequest,
  makeResult,
  makeTask,
  temporaryDirectory,
} from "../tasks.js";
import { type HeldJob, ManualRunner } from "./manual-runner.js";

const request = makeRequest({ prompt: "a song" });

describe("EmbeddedQueue", () => {
  let store: LmdbTaskStore;
  let runner: ManualRunner;
  let queue: EmbeddedQueue;

  async function openQueue(options: Partial<QueueOptions> = {}): Promise<void> {
    runner = new ManualRunner();
    queue = embeddedQueue(store, runner, options);
    await queue.open(() => {});
    queue.start();
  }

  async function untilSettled(id: string): Promise<Task> {
    for (;;) {
      const task = await store.get(id);
      if (task?.finishedAtMs) return task;
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  beforeEach(async () => {
    store = LmdbTaskStore.open(temporaryDirectory());
    await openQueue();
  });

  afterEach(async () => {
    await queue.stop(0);
    await store.close();
  });

  it("the average job duration includes only the last jobs", () => {
    const average = new JobStatistics(5, 3);
    expect(average.averageJobSeconds).to.equal(5);
    for (const seconds of [100, 1, 2, 3]) average.jobFinished(seconds);
    expect(average.averageJobSeconds).to.equal(2);
  });

  it("restarts a task that a crash interrupted, and fails it after too many crashes", async () => {
    const once = makeTask({ sequence: 1, state: "running" });
    const often = makeTask({ sequence: 2, state: "running", interruptions: 9 });
    const done = makeTask({ sequence: 3, state: "succeeded", finishedAtMs: 1, result: makeResult() });
    for (const task of [once, often, done]) await store.add(task);
    await openQueue();
    expect((await runner.startedAtLeast(1)).task).to.include({ id: once.id, interruptions: 1 });
    expect((await store.get(often.id))?.error).to.include("stopped 10 times");
    expect(runner.ends).to.deep.equal([{ id: often.id, state: "failed" }]);
    expect((await queue.statistics()).counts).to.deep.equal({
      total: 3,
      queued: 0,
      running: 1,
      succeeded: 1,
      failed: 1,
    });
    await queue.submit(request);
    const sequences: number[] = [];
    for await (const { task } of store.scan()) sequences.push((task as Task).sequence);
    expect(sequences).to.have.members([1, 2, 3, 4]);
  });

  describe("tasks on a full disk", () => {
    let freeBytes: number;

    beforeEach(async () => {
      freeBytes = 2 ** 30;
      store = LmdbTaskStore.open(temporaryDirectory(), () => freeBytes);
    });

    it("keeps interrupted tasks while the disk is full, and starts them when space is free", async () => {
      const interrupted = makeTask({ state: "running" });
      await store.add(interrupted);
      freeBytes = 0;
      await openQueue();
      await new Promise((resolve) => setImmediate(resolve));
      expect((await queue.live(interrupted.id)).position).to.equal(1);
      expect(runner.started).to.have.length(0);
      freeBytes = 2 ** 30;
      (await runner.startedAtLeast(1)).succeed();
      expect((await untilSettled(interrupted.id)).state).to.equal("succeeded");
      expect((await queue.statistics()).counts).to.deep.equal({
        total: 1,
        queued: 0,
        running: 0,
        succeeded: 1,
        failed: 0,
      });
    });

    it("the end of a job is recorded once the full disk has space again", async () => {
      await openQueue();
      const { task } = await queue.submit(request);
      const job = await runner.startedAtLeast(1);
      freeBytes = 0;
      job.succeed();
      expect(await queue.cancel(task.id).catch((error: unknown) => error)).to.be.instanceOf(StoreError);
      expect((await queue.live(task.id)).progress).to.not.equal(undefined);
      freeBytes = 2 ** 30;
      expect((await untilSettled(task.id)).state).to.equal("succeeded");
    });

    it("a task ends in memory if the disk stays full, and is recorded when there is space", async () => {
      await openQueue();
      const { task } = await queue.submit({ ...request, callbackUrl: "http://example.com" });
      const job = await runner.startedAtLeast(1);
      const ended = new Promise<Task>((resolve) => queue.events.on("ended", resolve));
      freeBytes = 0;
      job.succeed();
      expect((await ended).result?.warnings.join()).to.match(/could not be recorded: the disk .* is full/);
      expect((await queue.get(task.id))?.state).to.equal("succeeded");
      expect((await queue.page({ ...EVERY_TASK, state: "succeeded" })).ids).to.deep.equal([task.id]);
      expect((await queue.statistics()).counts).to.include({ running: 0, succeeded: 1 });
      expect(await queue.dueCallbacks(1)).to.deep.equal([task.id]);
      const change = (current: Task) => ({ ...current, title: "a title" });
      expect(await queue.update(task.id, change).catch((error: unknown) => error)).to.be.instanceOf(
        StoreError,
      );
      expect((await store.get(task.id))?.state).to.equal("running");
      freeBytes = 2 ** 30;
      await queue.runCleanUp(async () => {});
      expect((await store.get(task.id))?.state).to.equal("succeeded");
      expect(runner.ends).to.deep.equal([{ id: task.id, state: "succeeded" }]);
    });

    it("a cancellation is rejected if the full disk cannot record it", async () => {
      await openQueue();
      await queue.submit(request);
      await runner.startedAtLeast(1);
      const waiting = [await queue.submit(request), await queue.submit(request)].map(({ task }) => task.id);
      freeBytes = 0;
      const refusal = await queue.cancel(waiting[0] as string).catch((error: unknown) => error);
      expect(refusal).to.be.instanceOf(StoreError);
      expect(await Promise.all(waiting.map(async (id) => (await queue.live(id)).position))).to.deep.equal([
        1, 2,
      ]);
      freeBytes = 2 ** 30;
      expect(await queue.cancel(waiting[0] as string)).to.equal(true);
    });
  });

  it("requeues the task of a job that ignores the abort, and discards the job's result", async () => {
    const { task } = await queue.submit(request);
    const job = await runner.startedAtLeast(1);
    runner.ignoresAbort = true;
    await queue.stop(0);
    expect((await store.get(task.id))?.state).to.equal("queued");
    job.succeed();
    await new Promise((resolve) => setImmediate(resolve));
    expect((await store.get(task.id))?.state).to.equal("queued");
    expect(runner.ends).to.deep.equal([]);
  });

  it("a task that was interrupted twice starts after all others, also after a restart", async () => {
    await queue.stop(0);
    const suspect = makeTask({ sequence: 1, state: "running", interruptions: 1 });
    const other = makeTask({ sequence: 2 });
    for (const task of [suspect, other]) await store.add(task);
    for (let life = 0; life < 2; life++) {
      await openQueue();
      expect((await runner.startedAtLeast(1)).task.id).to.equal(other.id);
      await queue.stop(0);
    }
  });

  it("no other task runs while the queue repeats an interrupted one", async () => {
    const suspect = makeTask({ sequence: 1, interruptions: 1 });
    const others = [makeTask({ sequence: 2 }), makeTask({ sequence: 3 })];
    for (const task of [suspect, ...others]) await store.add(task);
    await openQueue({ workers: 2, capacity: 5 });
    const alone = await runner.startedAtLeast(1);
    expect(alone.task.id).to.equal(suspect.id);
    expect(runner.started).to.have.length(1);
    alone.succeed();
    await runner.startedAtLeast(3);
  });

  it("a running job can see the tasks that start next, but not interrupted ones", async () => {
    const tasks = [0, 0, 1, 0].map((interruptions, index) =>
      makeTask({ sequence: index + 1, interruptions }),
    );
    for (const task of tasks) await store.add(task);
    await openQueue({ capacity: 5 });
    const offered = async ({ context }: HeldJob, count = 5) =>
      (await context.waitingTasks(count)).map(({ id }) => id);
    const ids = tasks.map(({ id }) => id);
    const first = await runner.startedAtLeast(1);
    expect(await offered(first)).to.deep.equal([ids[1], ids[3]]);
    expect(await offered(first, 1)).to.deep.equal([ids[1]]);
    first.succeed();
    (await runner.startedAtLeast(2)).succeed();
    const interrupted = await runner.startedAtLeast(3);
    expect(interrupted.task.id).to.equal(ids[2]);
    expect(await offered(interrupted)).to.deep.equal([]);
  });
});
