/** Tests of the queue interface, run with each implementation. */
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { pino } from "pino";
import { Fleet } from "../../../src/music/fleet/fleet.js";
import { LmdbTaskStore } from "../../../src/music/queue/lmdb-store.js";
import type { Task } from "../../../src/music/queue/store.js";
import { QueueFullError, type TaskQueue } from "../../../src/music/queue/task-queue.js";
import { memberOf } from "../fleet/member.js";
import { RedisServer } from "../fleet/redis-server.js";
import { EVERY_TASK, embeddedQueue, makeRequest, makeResult, temporaryDirectory } from "../tasks.js";
import { ManualRunner } from "./manual-runner.js";

interface Limits {
  capacity?: number;
  workers?: number;
  jobTimeoutSeconds?: number;
}

/** A queue implementation. Its tasks persist across `open` calls until `clear`. */
interface Kind {
  open(runner: ManualRunner, limits: Required<Limits>): Promise<{ queue: TaskQueue; close(): Promise<void> }>;
  clear(): Promise<void>;
  /** Stops the processes that the queue needs. */
  end(): Promise<void>;
}

const request = makeRequest({ prompt: "a song" });

function embedded(): Kind {
  let directory = "";
  return {
    clear: async () => {
      directory = temporaryDirectory();
    },
    end: async () => {},
    open: async (runner, limits) => {
      const store = LmdbTaskStore.open(directory);
      return { queue: embeddedQueue(store, runner, limits), close: () => store.close() };
    },
  };
}

function redis(): Kind {
  let server: RedisServer | undefined;
  const log = pino({ level: "silent" });
  return {
    clear: async () => {
      server ??= await RedisServer.start();
      await server.clear();
    },
    end: async () => server?.kill(),
    open: async (runner, { capacity, workers, jobTimeoutSeconds }) => {
      const fleet = await Fleet.open((server as RedisServer).url, "", log);
      const worker = { name: "worker", places: workers, jobTimeoutSeconds };
      const { queue } = memberOf(fleet, { log, runner, capacity, worker });
      return { queue, close: () => fleet.close() };
    },
  };
}

for (const [name, kind] of Object.entries({ embedded: embedded(), "shared by Redis": redis() })) {
  describe(`the contract of a task queue, ${name}`, () => {
    let runner: ManualRunner;
    let queue: TaskQueue;
    let closeParts: () => Promise<void>;

    async function open(limits: Limits = {}): Promise<void> {
      runner = new ManualRunner();
      const all = { capacity: 2, workers: 1, jobTimeoutSeconds: 0, ...limits };
      ({ queue, close: closeParts } = await kind.open(runner, all));
      await queue.open(() => {});
      queue.start();
      // A fleet's queue accepts tasks once its worker has announced itself.
      while ((await queue.statistics()).workers?.length === 0) await sleep(10);
    }

    async function close(): Promise<void> {
      await queue.stop(0);
      await closeParts();
    }

    async function reopen(limits: Limits): Promise<void> {
      await close();
      await open(limits);
    }

    async function untilEnded(id: string): Promise<Task> {
      for (;;) {
        const task = await queue.get(id);
        if (task?.finishedAtMs) return task;
        await sleep(5);
      }
    }

    const submit = async (client = "") => (await queue.submit(request, { client })).task.id;
    const counts = async () => (await queue.statistics()).counts;

    beforeEach(async () => {
      await kind.clear();
      await open();
    });
    afterEach(() => close());
    after(() => kind.end());

    it("runs tasks in order of acceptance and stores each result", async () => {
      const ids = [await submit()];
      const first = await runner.startedAtLeast(1);
      ids.push(await submit(), await submit());
      expect((await queue.get(ids[0] as string))?.state).to.equal("running");
      first.succeed(makeResult({ prompt: "the first" }));
      (await runner.startedAtLeast(2)).succeed();
      (await runner.startedAtLeast(3)).succeed();
      await untilEnded(ids[2] as string);
      expect(runner.started.map((job) => job.task.id)).to.deep.equal(ids);
      expect((await queue.get(ids[0] as string))?.result?.prompt).to.equal("the first");
      expect(await counts()).to.deep.equal({ total: 3, queued: 0, running: 0, succeeded: 3, failed: 0 });
    });

    it("queue positions count from 1 and decrease as tasks start", async () => {
      expect((await queue.submit(request)).position).to.equal(1);
      const running = await runner.startedAtLeast(1);
      const second = await queue.submit(request);
      const third = await queue.submit(request);
      expect([second.position, third.position]).to.deep.equal([1, 2]);
      expect((await queue.live(third.task.id)).position).to.equal(2);
      running.succeed();
      await runner.startedAtLeast(2);
      expect((await queue.live(third.task.id)).position).to.equal(1);
      expect((await queue.live(second.task.id)).position).to.equal(undefined);
    });

    it("a full queue rejects tasks with a retry time, and does not store them", async () => {
      await submit();
      await runner.startedAtLeast(1);
      const answers = await Promise.allSettled(Array.from({ length: 10 }, () => queue.submit(request)));
      const refused = answers.flatMap((answer) => (answer.status === "rejected" ? [answer.reason] : []));
      expect(refused).to.have.length(8);
      expect(refused[0]).to.be.instanceOf(QueueFullError);
      expect(refused[0].retryAfterSeconds).to.equal(5);
      expect(await queue.assertRoom().catch((error: unknown) => error)).to.be.instanceOf(QueueFullError);
      expect(await counts()).to.include({ total: 3, queued: 2, running: 1 });
      expect((await queue.page(EVERY_TASK)).total).to.equal(3);
    });

    it("the number of jobs that run at once is the number of workers", async () => {
      await reopen({ workers: 2, capacity: 0 });
      for (let i = 0; i < 3; i++) await submit();
      await runner.startedAtLeast(2);
      expect(await counts()).to.include({ running: 2, queued: 1 });
    });

    it("starts the next task while one finishes its songs, and the third when the first has ended", async () => {
      await reopen({ capacity: 0 });
      const ids = [await submit(), await submit(), await submit()];
      const first = await runner.startedAtLeast(1);
      first.context.freePlace();
      const second = await runner.startedAtLeast(2);
      second.context.freePlace();
      expect(await counts()).to.include({ running: 2, queued: 1 });
      await sleep(50);
      expect(runner.started).to.have.length(2);
      first.succeed();
      await runner.startedAtLeast(3);
      expect(await queue.get(ids[1] as string)).to.include({ state: "running" });
    });

    it("clients take turns; the tasks of one client run in order of acceptance", async () => {
      await reopen({ capacity: 0 });
      const first = await submit("a");
      await runner.startedAtLeast(1);
      const a = [await submit("a"), await submit("a"), await submit("a")] as const;
      const b = [await submit("b"), await submit("b")] as const;
      expect((await queue.live(b[0])).position).to.equal(1);
      for (let count = 1; count <= 6; count++) (await runner.startedAtLeast(count)).succeed();
      await untilEnded(a[2]);
      const order = runner.started.map((job) => job.task.id);
      expect(order).to.deep.equal([first, b[0], a[0], b[1], a[1], a[2]]);
    });

    it("records the error of a failed job in one line, keeps its progress, and runs the next task", async () => {
      const id = await submit();
      const job = await runner.startedAtLeast(1);
      job.context.report({ value: 0.6, stage: "Generating music", text: "DiT diffusion", previewSeconds: 0 });
      while ((await queue.live(id)).progress?.value !== 0.6) await sleep(5);
      job.fail(new Error("out of memory\n    at secret.ts:1"));
      expect(await untilEnded(id)).to.include({ state: "failed", error: "out of memory", progress: 0.6 });
      expect((await queue.live(id)).progress).to.equal(undefined);
      await submit();
      await runner.startedAtLeast(2);
    });

    it("cancels a waiting and a running task", async () => {
      const running = await submit();
      await runner.startedAtLeast(1);
      const waiting = await submit();
      expect(await queue.cancel(waiting)).to.equal(true);
      expect(await queue.cancel(running)).to.equal(true);
      expect(await queue.cancel(running)).to.equal(false);
      expect(await queue.cancel("unknown")).to.equal(false);
      for (const id of [running, waiting]) {
        expect(await queue.get(id)).to.include({ state: "failed", error: "Cancelled by user" });
      }
      expect(runner.started).to.have.length(1);
      expect(await counts()).to.deep.equal({ total: 2, queued: 0, running: 0, succeeded: 0, failed: 2 });
    });

    it("emits queued, progress and ended events, with one ended event per task", async () => {
      await reopen({ capacity: 5 });
      const events: string[] = [];
      queue.events.on("queued", (id) => events.push(`${id} queued`));
      queue.events.on("ended", ({ id, state }) => events.push(`${id} ${state}`));
      const stages = new Set<string>();
      queue.events.on("progress", (id, { stage }) => stages.add(`${id} ${stage}`));
      const [done, failed, cancelled, stopped] = [
        await submit(),
        await submit(),
        await submit(),
        await submit(),
      ];
      const first = await runner.startedAtLeast(1);
      first.context.report({ value: 0.5, stage: "Generating music", text: "", previewSeconds: 0 });
      first.succeed();
      (await runner.startedAtLeast(2)).fail(new Error("broken"));
      await runner.startedAtLeast(3);
      await queue.cancel(cancelled);
      await runner.startedAtLeast(4);
      const ends = [`${done} succeeded`, `${failed} failed`, `${cancelled} failed`];
      while (!ends.every((end) => events.includes(end))) await sleep(5);
      expect(events.filter((line) => !line.endsWith("queued"))).to.have.members(ends);
      expect(events).to.include.members([done, failed, cancelled, stopped].map((id) => `${id} queued`));
      expect([...stages]).to.include(`${done} Generating music`);
      await queue.stop(0);
      expect((await queue.get(stopped))?.state).to.equal("queued");
      expect(runner.ends).to.deep.equal([
        { id: done, state: "succeeded" },
        { id: failed, state: "failed" },
        { id: cancelled, state: "failed" },
      ]);
    });

    it("fails a job that runs too long", async () => {
      await reopen({ jobTimeoutSeconds: 0.05 });
      expect((await untilEnded(await submit())).error).to.equal(
        "the job ran longer than 0.05 seconds, the limit of SVC_JOB_TIMEOUT_SECONDS",
      );
    });

    it("stopping requeues a running job, which starts first next time", async () => {
      const first = await submit();
      await runner.startedAtLeast(1);
      const second = await submit();
      await queue.stop(0);
      expect(await queue.get(first)).to.include({ state: "queued", interruptions: 0 });
      await closeParts();
      await open({ workers: 2 });
      await runner.startedAtLeast(2);
      expect(runner.started.map((job) => job.task.id)).to.deep.equal([first, second]);
    });

    it("stopping waits for running jobs for the grace period, then discards results of jobs that ignore the abort", async () => {
      const id = await submit();
      const job = await runner.startedAtLeast(1);
      const stopped = queue.stop(60);
      job.succeed();
      await stopped;
      expect((await queue.get(id))?.state).to.equal("succeeded");

      await closeParts();
      await open();
      const unresponsive = await submit();
      const running = await runner.startedAtLeast(1);
      runner.ignoresAbort = true;
      await queue.stop(0);
      running.succeed();
      await sleep(20);
      expect((await queue.get(unresponsive))?.state).to.equal("queued");
      expect(runner.ends).to.deep.equal([]);
    });

    for (const [how, cleansUp] of Object.entries({
      hangs: () => new Promise<void>(() => {}),
      fails: () => Promise.reject(new Error("the storage refuses")),
    })) {
      it(`a task that has ended does not start again if its clean-up ${how} and the server stops`, async () => {
        runner.cleansUp = cleansUp;
        const failed = await submit();
        (await runner.startedAtLeast(1)).fail(new Error("broken"));
        await untilEnded(failed);
        const ended = await queue.get(failed);
        await queue.stop(0);
        expect(await queue.get(failed)).to.deep.equal(ended);
        await closeParts();
        await open();
        const next = await submit();
        expect((await runner.startedAtLeast(1)).task.id).to.equal(next);
        expect(await counts()).to.deep.equal({ total: 2, queued: 0, running: 1, succeeded: 0, failed: 1 });
      });
    }

    it("a song that is finished while the server stops stays finished if its clean-up hangs", async () => {
      runner.cleansUp = () => new Promise(() => {});
      const id = await submit();
      const job = await runner.startedAtLeast(1);
      const stopped = queue.stop(0.1);
      job.succeed();
      await stopped;
      expect((await queue.get(id))?.state).to.equal("succeeded");
    });

    it("lists tasks by state, favourite and search words, newest first", async () => {
      await reopen({ capacity: 0 });
      const ids = [await submit(), await submit(), await submit()] as const;
      (await runner.startedAtLeast(1)).succeed();
      await runner.startedAtLeast(2);
      await queue.update(ids[0], (task) => ({ ...task, title: "Harbour", favorite: true }));
      const page = (filter: object) => queue.page({ ...EVERY_TASK, ...filter });
      expect(await page({})).to.deep.equal({ total: 3, ids: [ids[2], ids[1], ids[0]] });
      expect(await page({ offset: 1, limit: 1 })).to.deep.equal({ total: 3, ids: [ids[1]] });
      expect(await page({ state: "running" })).to.deep.equal({ total: 1, ids: [ids[1]] });
      expect(await page({ favorite: true })).to.deep.equal({ total: 1, ids: [ids[0]] });
      expect(await page({ favorite: false, state: "queued" })).to.deep.equal({ total: 1, ids: [ids[2]] });
      expect(await page({ search: "HARB song" })).to.deep.equal({ total: 1, ids: [ids[0]] });
      expect(await page({ order: "oldest", limit: 2 })).to.deep.equal({ total: 3, ids: [ids[0], ids[1]] });
      await queue.update(ids[2], (task) => ({ ...task, title: "arrival" }));
      // Sorts by the titles "arrival" and "Harbour"; the task without a title uses its prompt "a song".
      expect((await page({ order: "title" })).ids).to.deep.equal([ids[1], ids[2], ids[0]]);
      expect(await page({ ids: [ids[1], ids[0], "unknown"] })).to.deep.equal({
        total: 2,
        ids: [ids[1], ids[0]],
      });
    });

    it("lists a task with its retakes", async () => {
      await reopen({ capacity: 0 });
      const { id } = (await queue.submit(request)).task;
      await submit();
      const retake = (await queue.submit(request, { retakeOf: id })).task;
      expect(retake.retakeOf).to.equal(id);
      const page = (retakesOf: string) => queue.page({ ...EVERY_TASK, retakesOf });
      expect(await page(id)).to.deep.equal({ total: 2, ids: [retake.id, id] });
      expect(await page(retake.id)).to.deep.equal({ total: 1, ids: [retake.id] });
    });

    it("an idempotency key is kept until its task is removed; ended tasks are listed for removal", async () => {
      const submission = { key: "the key", digest: "the digest" };
      const { task } = await queue.submit(request, { submission });
      expect(await queue.submittedAs("the key")).to.equal(task.id);
      expect(await queue.submittedAs("another")).to.equal(undefined);
      expect(await queue.remove(task.id)).to.equal(undefined);
      const audioFiles = [{ name: "song.mp3", bytes: 7 }];
      (await runner.startedAtLeast(1)).succeed(makeResult({ audioFiles }));
      await untilEnded(task.id);
      const [finished] = await queue.finished();
      expect(finished).to.include({ id: task.id, state: "succeeded", audioBytes: 7 });
      let isJanitor = false;
      await queue.runCleanUp(async (nowMs) => {
        isJanitor = nowMs >= (finished?.finishedAtMs as number);
      });
      expect(isJanitor).to.equal(true);
      expect((await queue.remove(task.id))?.audioNames).to.deep.equal(["song.mp3"]);
      expect(await queue.get(task.id)).to.equal(undefined);
      expect(await queue.submittedAs("the key")).to.equal(undefined);
      expect((await counts()).total).to.equal(0);
    });
  });
}
