import { expect } from "chai";
import { StoreError } from "../../../src/music/errors.js";
import { type JobControl, type Jobs, QueueFullError } from "../../../src/music/queue/job-queue.js";
import { LmdbTaskStore } from "../../../src/music/queue/lmdb-store.js";
import type { QueueOptions, TaskQueue } from "../../../src/music/queue/queue.js";
import { JobStatistics } from "../../../src/music/queue/statistics.js";
import type { SongResult, Task } from "../../../src/music/queue/store.js";
import { embeddedQueue, makeResult, makeTask, temporaryDirectory } from "../tasks.js";

/** A job held open until the test says how it ends. */
interface HeldJob {
  task: Task;
  context: JobControl;
  succeed(result?: SongResult): void;
  fail(error: Error): void;
}

/** Holds every job, in the order in which they start. */
class Bench implements Jobs {
  readonly started: HeldJob[] = [];
  /** How the tasks that ended did so, in order. */
  readonly ends: { id: string; state: string }[] = [];
  /** Whether jobs go on when they are told to stop. */
  isDeaf = false;
  #onStart: (() => void) | null = null;

  run(task: Task, context: JobControl): Promise<SongResult> {
    return new Promise<SongResult>((resolve, reject) => {
      context.signal.addEventListener("abort", () => {
        if (!this.isDeaf) reject(context.signal.reason);
      });
      this.started.push({ task, context, succeed: (result = makeResult()) => resolve(result), fail: reject });
      this.#onStart?.();
    });
  }

  async ended({ id, state }: Task): Promise<void> {
    this.ends.push({ id, state });
  }

  async startedAtLeast(count: number): Promise<HeldJob> {
    while (this.started.length < count) {
      await new Promise<void>((resolve) => {
        this.#onStart = resolve;
      });
    }
    return this.started[count - 1] as HeldJob;
  }
}

const request = { prompt: "a song" } as Task["request"];

describe("TaskQueue", () => {
  let store: LmdbTaskStore;
  let bench: Bench;
  let queue: TaskQueue;

  async function openQueue(options: Partial<QueueOptions> = {}): Promise<void> {
    bench = new Bench();
    queue = embeddedQueue(store, bench, options);
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

  it("runs tasks in the order of acceptance and keeps each result", async () => {
    const ids: string[] = [];
    ids.push((await queue.submit(request)).task.id);
    const first = await bench.startedAtLeast(1);
    ids.push((await queue.submit(request)).task.id, (await queue.submit(request)).task.id);
    expect((await store.get(ids[0] as string))?.state).to.equal("running");
    first.succeed(makeResult({ prompt: "the first" }));
    (await bench.startedAtLeast(2)).succeed();
    (await bench.startedAtLeast(3)).succeed();
    await untilSettled(ids[2] as string);
    expect(bench.started.map((job) => job.task.id)).to.deep.equal(ids);
    expect((await store.get(ids[0] as string))?.result?.prompt).to.equal("the first");
    expect((await queue.statistics()).counts).to.deep.equal({
      total: 3,
      queued: 0,
      running: 0,
      succeeded: 3,
      failed: 0,
    });
  });

  it("counts positions from 1 and moves them up as the queue moves", async () => {
    expect((await queue.submit(request)).position).to.equal(1);
    const running = await bench.startedAtLeast(1);
    const second = await queue.submit(request);
    const third = await queue.submit(request);
    expect([second.position, third.position]).to.deep.equal([1, 2]);
    running.succeed();
    await bench.startedAtLeast(2);
    expect((await queue.live(third.task.id)).position).to.equal(1);
    expect((await queue.live(second.task.id)).position).to.equal(undefined);
  });

  it("refuses what does not fit, before it leaves a trace", async () => {
    await queue.submit(request);
    await bench.startedAtLeast(1);
    await queue.submit(request);
    await queue.submit(request);
    const before = (await queue.statistics()).counts;
    const refusal = await queue.submit(request).then(
      () => null,
      (error: unknown) => error,
    );
    expect(refusal).to.be.instanceOf(QueueFullError);
    expect((refusal as QueueFullError).retryAfterSeconds).to.equal(5);
    expect((await queue.statistics()).counts).to.deep.equal(before);
    let stored = 0;
    for await (const _ of store.scan()) stored++;
    expect(stored).to.equal(3);
  });

  it("holds to its capacity when many tasks arrive at once", async () => {
    await queue.submit(request);
    await bench.startedAtLeast(1);
    const answers = await Promise.allSettled(Array.from({ length: 10 }, () => queue.submit(request)));
    expect(answers.filter((answer) => answer.status === "fulfilled")).to.have.length(2);
  });

  it("sets no limit with a capacity of 0", async () => {
    await openQueue({ capacity: 0 });
    await Promise.all(Array.from({ length: 20 }, () => queue.submit(request)));
    expect((await queue.statistics()).counts.total).to.equal(20);
  });

  it("runs as many jobs side by side as it has workers", async () => {
    await openQueue({ workers: 2, capacity: 5 });
    for (let i = 0; i < 3; i++) await queue.submit(request);
    await bench.startedAtLeast(2);
    expect((await queue.statistics()).counts).to.include({ running: 2, queued: 1 });
  });

  it("records a failure in one line and goes on", async () => {
    const { task } = await queue.submit(request);
    (await bench.startedAtLeast(1)).fail(new Error("out of memory\n    at secret.ts:1"));
    const failed = await untilSettled(task.id);
    expect(failed).to.include({ state: "failed", error: "out of memory" });
    await queue.submit(request);
    await bench.startedAtLeast(2);
  });

  it("shows the progress of a running task and keeps the last of a failed one", async () => {
    const { task } = await queue.submit(request);
    const job = await bench.startedAtLeast(1);
    job.context.report({ value: 0.6, stage: "Generating music", text: "DiT diffusion" });
    expect((await queue.live(task.id)).progress?.value).to.equal(0.6);
    job.fail(new Error("broken"));
    expect((await untilSettled(task.id)).progress).to.equal(0.6);
    expect((await queue.live(task.id)).progress).to.equal(undefined);
  });

  it("cancels a waiting and a running task", async () => {
    const running = await queue.submit(request);
    await bench.startedAtLeast(1);
    const waiting = await queue.submit(request);
    expect(await queue.cancel(waiting.task.id)).to.equal(true);
    expect(await queue.cancel(running.task.id)).to.equal(true);
    expect(await queue.cancel(running.task.id)).to.equal(false);
    for (const { task } of [running, waiting]) {
      expect(await store.get(task.id)).to.include({ state: "failed", error: "Cancelled by user" });
    }
    expect(bench.started).to.have.length(1);
    expect((await queue.statistics()).counts).to.deep.equal({
      total: 2,
      queued: 0,
      running: 0,
      succeeded: 0,
      failed: 2,
    });
  });

  it("tells of every end once, and of no task that will run again", async () => {
    await openQueue({ capacity: 5 });
    const ids: string[] = [];
    for (let i = 0; i < 4; i++) ids.push((await queue.submit(request)).task.id);
    const [done, failed, cancelled, stopped] = ids as [string, string, string, string];
    (await bench.startedAtLeast(1)).succeed();
    (await bench.startedAtLeast(2)).fail(new Error("broken"));
    await bench.startedAtLeast(3);
    await queue.cancel(cancelled);
    await bench.startedAtLeast(4);
    await queue.stop(0);
    expect((await store.get(stopped))?.state).to.equal("queued");
    expect(bench.ends).to.deep.equal([
      { id: done, state: "succeeded" },
      { id: failed, state: "failed" },
      { id: cancelled, state: "failed" },
    ]);
  });

  it("fails a job that runs too long", async () => {
    await openQueue({ jobTimeoutSeconds: 0.05 });
    const { task } = await queue.submit(request);
    expect((await untilSettled(task.id)).error).to.equal("the job ran longer than 0.05 seconds");
  });

  it("averages the last jobs only", () => {
    const average = new JobStatistics(5, 3);
    expect(average.averageJobSeconds).to.equal(5);
    for (const seconds of [100, 1, 2, 3]) average.jobTook(seconds);
    expect(average.averageJobSeconds).to.equal(2);
  });

  it("puts a running job back when it has to stop, and starts it first the next time", async () => {
    const first = await queue.submit(request);
    await bench.startedAtLeast(1);
    const second = await queue.submit(request);
    await queue.stop(0);
    expect((await store.get(first.task.id))?.state).to.equal("queued");
    await openQueue({ workers: 2 });
    await bench.startedAtLeast(2);
    expect(bench.started.map((job) => job.task.id)).to.deep.equal([first.task.id, second.task.id]);
  });

  it("lets a running job finish within the grace period", async () => {
    const { task } = await queue.submit(request);
    const job = await bench.startedAtLeast(1);
    const stopped = queue.stop(60);
    job.succeed();
    await stopped;
    expect((await store.get(task.id))?.state).to.equal("succeeded");
  });

  it("starts a task again that was running when the process died, but not for ever", async () => {
    const once = makeTask({ sequence: 1, state: "running" });
    const often = makeTask({ sequence: 2, state: "running", interruptions: 9 });
    const done = makeTask({ sequence: 3, state: "succeeded", finishedAtMs: 1, result: makeResult() });
    for (const task of [once, often, done]) await store.add(task);
    await openQueue();
    expect((await bench.startedAtLeast(1)).task).to.include({ id: once.id, interruptions: 1 });
    expect((await store.get(often.id))?.error).to.include("stopped 10 times");
    expect(bench.ends).to.deep.equal([{ id: often.id, state: "failed" }]);
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

  describe("with a full disk", () => {
    let freeBytes: number;

    beforeEach(async () => {
      freeBytes = 2 ** 30;
      store = LmdbTaskStore.open(temporaryDirectory(), () => freeBytes);
    });

    it("starts, keeps what was running, and begins once there is room", async () => {
      const interrupted = makeTask({ state: "running" });
      await store.add(interrupted);
      freeBytes = 0;
      await openQueue();
      await new Promise((resolve) => setImmediate(resolve));
      expect((await queue.live(interrupted.id)).position).to.equal(1);
      expect(bench.started).to.have.length(0);
      freeBytes = 2 ** 30;
      (await bench.startedAtLeast(1)).succeed();
      expect((await untilSettled(interrupted.id)).state).to.equal("succeeded");
      expect((await queue.statistics()).counts).to.deep.equal({
        total: 1,
        queued: 0,
        running: 0,
        succeeded: 1,
        failed: 0,
      });
    });

    it("records the end of a job once there is room", async () => {
      await openQueue();
      const { task } = await queue.submit(request);
      const job = await bench.startedAtLeast(1);
      freeBytes = 0;
      job.succeed();
      expect(await queue.cancel(task.id).catch((error: unknown) => error)).to.be.instanceOf(StoreError);
      expect((await queue.live(task.id)).progress).to.not.equal(undefined);
      freeBytes = 2 ** 30;
      expect((await untilSettled(task.id)).state).to.equal("succeeded");
    });

    it("cancels nothing that it cannot record", async () => {
      await openQueue();
      await queue.submit(request);
      await bench.startedAtLeast(1);
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

  it("puts a job back that does not end when it is told to, and hears no more of it", async () => {
    const { task } = await queue.submit(request);
    const job = await bench.startedAtLeast(1);
    bench.isDeaf = true;
    await queue.stop(0);
    expect((await store.get(task.id))?.state).to.equal("queued");
    job.succeed();
    await new Promise((resolve) => setImmediate(resolve));
    expect((await store.get(task.id))?.state).to.equal("queued");
    expect(bench.ends).to.deep.equal([]);
  });

  it("lets others go before a task that was interrupted twice, in every life of the process", async () => {
    await queue.stop(0);
    const suspect = makeTask({ sequence: 1, state: "running", interruptions: 1 });
    const other = makeTask({ sequence: 2 });
    for (const task of [suspect, other]) await store.add(task);
    for (let life = 0; life < 2; life++) {
      await openQueue();
      expect((await bench.startedAtLeast(1)).task.id).to.equal(other.id);
      await queue.stop(0);
    }
  });

  it("lets a task that was interrupted before run alone", async () => {
    const suspect = makeTask({ sequence: 1, interruptions: 1 });
    const others = [makeTask({ sequence: 2 }), makeTask({ sequence: 3 })];
    for (const task of [suspect, ...others]) await store.add(task);
    await openQueue({ workers: 2, capacity: 5 });
    const alone = await bench.startedAtLeast(1);
    expect(alone.task.id).to.equal(suspect.id);
    expect(bench.started).to.have.length(1);
    alone.succeed();
    await bench.startedAtLeast(3);
  });
});
