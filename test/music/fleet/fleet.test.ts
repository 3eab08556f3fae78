/** Tests of the shared queue without servers: workers that start, stop, crash and differ. */
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect } from "chai";
import { pino } from "pino";
import { EngineError } from "../../../src/engine/errors.js";
import { HttpError, RequestError } from "../../../src/music/errors.js";
import { RemoteCalls, TEXT_CALL_QUEUE } from "../../../src/music/fleet/calls.js";
import { Fleet } from "../../../src/music/fleet/fleet.js";
import { FleetUnreachableError } from "../../../src/music/fleet/redis.js";
import { RECORD_VERSION } from "../../../src/music/fleet/workers.js";
import type { Task } from "../../../src/music/queue/store.js";
import { failureOf } from "../../failures.js";
import { makeRequest, makeTask } from "../tasks.js";
import { type describeWorker, memberOf, stubModel } from "./member.js";
import { RedisServer, startSilentWay } from "./redis-server.js";

const log = pino({ level: "silent" });
const request = makeRequest({ prompt: "a song" });
/** A short lease, so that the tasks of a dead worker are requeued soon. */
const LEASE_MS = 600;
const DAY_MS = 24 * 60 * 60_000;

type Member = ReturnType<typeof memberOf>;

describe("gateways and workers of a fleet", () => {
  let server: RedisServer;
  const members: Member[] = [];

  async function join(
    describes: Partial<ReturnType<typeof describeWorker>> | null = null,
    places = 1,
    url = server.url,
  ): Promise<Member> {
    const fleet = await Fleet.open(url, "", log, LEASE_MS);
    const name = `worker ${members.length}`;
    const member = memberOf(fleet, { log, worker: describes && { name, places, describes } });
    members.push(member);
    member.queue.start();
    const isKnown = async () => (await fleet.workers.refresh()).some((other) => other.name === name);
    while (describes !== null && !(await isKnown())) await sleep(10);
    return member;
  }

  /** Simulates a killed process: closes its connections without stopping its queue. */
  async function die({ fleet }: Member): Promise<void> {
    await fleet.close();
  }

  async function leave({ fleet, queue }: Member): Promise<void> {
    await queue.stop(0);
    await fleet.close();
  }

  async function untilEnded({ queue }: Member, id: string): Promise<Task> {
    for (;;) {
      const task = await queue.get(id);
      if (task?.finishedAtMs) return task;
      await sleep(5);
    }
  }

  /** Waits until a member knows `count` workers. */
  async function untilKnown({ fleet }: Member, count: number): Promise<void> {
    while (fleet.workers.known.length < count) await sleep(5);
  }

  before(async () => {
    server = await RedisServer.start();
  });
  after(() => server.kill());
  beforeEach(() => server.clear());
  afterEach(async () => {
    for (const member of members.splice(0)) await leave(member).catch(() => {});
  });

  it("gives each task to a worker with its model and language model", async () => {
    const gateway = await join();
    const a = await join({ models: [stubModel("a")], lm_models: ["lm-1"] });
    const b = await join({ models: [stubModel("b")], lm_models: ["lm-1", "lm-2"] });
    await untilKnown(gateway, 2);
    const submit = async (model: string, languageModel: string | null = null) => {
      const planning = { ...request.planning, languageModel };
      return (await gateway.queue.submit({ ...request, model, planning })).task;
    };
    const forB = await submit("vendor/b", "lm-2");
    expect((await b.runner.startedAtLeast(1)).task.id).to.equal(forB.id);
    const forA = await submit("a", "lm-1");
    expect((await a.runner.startedAtLeast(1)).task.id).to.equal(forA.id);
    expect(forA.request.model).to.equal("a");

    const noModel = await failureOf(submit("c"));
    expect(noModel).to.be.instanceOf(RequestError);
    expect(noModel.message).to.equal('model: no worker of the fleet has "c"; available: a, b');
    const noLanguageModel = await failureOf(submit("a", "lm-2"));
    expect(noLanguageModel.message).to.include('has "lm-2"; available: lm-1');
    expect((await gateway.queue.statistics()).counts.total).to.equal(2);
  });

  it("gives no task to a worker whose model files differ from those of running workers", async () => {
    const first = await join({});
    const other = await join({ models: [stubModel("stub", true, "other files")] });
    const tasks = [await other.queue.submit(request), await other.queue.submit(request)];
    expect((await first.runner.startedAtLeast(1)).task.id).to.equal(tasks[0]?.task.id);
    const { workers } = await first.queue.statistics();
    expect(workers?.map(({ models }) => models.length)).to.deep.equal([1, 0]);
    await die(first);
    // No worker renews the key, so it would expire. Deleting it saves the wait.
    await server.forget("carillon:checkpoint:stub");
    expect((await other.runner.startedAtLeast(1)).task.id).to.be.oneOf(tasks.map(({ task }) => task.id));
  });

  it("prefers a worker with the model in memory", async () => {
    const cold = await join({ models: [stubModel("stub", false)] });
    const warm = await join({ models: [stubModel("stub", true)] });
    const { task } = await cold.queue.submit(request);
    expect((await warm.runner.startedAtLeast(1)).task.id).to.equal(task.id);
    // The worker with the loaded model is busy, so the other one takes the second task.
    const second = await cold.queue.submit(request);
    expect((await cold.runner.startedAtLeast(1)).task.id).to.equal(second.task.id);
  });

  it("rejects tasks with 503 if there is no worker, or no worker can read the current record version", async () => {
    const gateway = await join();
    expect(await failureOf(gateway.queue.submit(request)))
      .to.be.instanceOf(HttpError)
      .and.include({ status: 503 });
    await join({ payload_versions: [RECORD_VERSION - 1] });
    expect(await failureOf(gateway.queue.submit(request)))
      .to.be.instanceOf(HttpError)
      .and.include({ status: 503 });
  });

  it("leaves tasks with a newer record version to workers that can read it", async () => {
    const first = await join({});
    const held = await first.queue.submit(request);
    await first.runner.startedAtLeast(1);
    const { task } = await first.queue.submit(request);
    const old = await join({ payload_versions: [RECORD_VERSION - 1] });
    await leave(first);
    const current = await join({});
    expect((await current.runner.startedAtLeast(1)).task.id).to.equal(held.task.id);
    current.runner.started[0]?.succeed();
    expect((await current.runner.startedAtLeast(2)).task.id).to.equal(task.id);
    expect(old.runner.started).to.deep.equal([]);
  });

  it("restarts a dead worker's task unchanged on another worker, up to a limit of restarts", async () => {
    const gateway = await join();
    const deaths: Member[] = [];
    const next = async () => {
      const worker = await join({});
      deaths.push(worker);
      return worker;
    };
    const first = await next();
    const asked = { ...request, seeds: [17] };
    const { task } = await gateway.queue.submit(asked);
    const started = await first.runner.startedAtLeast(1);
    expect(started.task).to.include({ interruptions: 0 });
    await die(first);
    const second = await next();
    const again = await second.runner.startedAtLeast(1);
    expect(again.task).to.include({ id: task.id, interruptions: 1 });
    expect(again.task.request).to.deep.equal(started.task.request);
    // The dead worker's result must be ignored.
    started.succeed();
    await die(second);
    const third = await next();
    expect((await third.runner.startedAtLeast(1)).task.interruptions).to.equal(2);
    await die(third);
    const last = await next();
    const failed = await untilEnded(gateway, task.id);
    expect(failed).to.include({ state: "failed", interruptions: 3 });
    expect(failed.error).to.include("stopped 3 times");
    expect(last.runner.started).to.deep.equal([]);
  });

  it("runs a previously interrupted task alone on a worker", async () => {
    const doomed = await join({});
    const { queue } = await join();
    const suspect = (await queue.submit(request)).task;
    await doomed.runner.startedAtLeast(1);
    const { runner } = await join({}, 2);
    await queue.submit(request);
    const company = await runner.startedAtLeast(1);
    await die(doomed);
    while ((await queue.get(suspect.id))?.interruptions !== 1) await sleep(10);
    const late = (await queue.submit(request)).task;
    expect(runner.started).to.have.length(1);
    company.succeed();
    const alone = await runner.startedAtLeast(2);
    expect(alone.task.id).to.equal(suspect.id);
    expect(await queue.live(late.id)).to.include({ position: 1 });
    alone.succeed();
    expect((await runner.startedAtLeast(3)).task.id).to.equal(late.id);
    runner.started[2]?.succeed();
  });

  it("queues an accepted task whose gateway died before queueing it", async () => {
    const worker = await join({});
    const { store } = worker.fleet;
    const place = await store.reserve("stray", "", 0);
    const { sequence, turn } = place as NonNullable<typeof place>;
    const route = (await worker.fleet.workers.route(request)).route;
    const task = { id: "stray", sequence, turn, route, state: "queued", request } as Task;
    await store.add({
      ...task,
      createdAtMs: 0,
      finishedAtMs: null,
      interruptions: 0,
      result: null,
      error: null,
    });
    expect(worker.runner.started).to.deep.equal([]);
    await worker.fleet.reconcile(0);
    expect((await worker.runner.startedAtLeast(1)).task.id).to.equal("stray");
  });

  describe("when Redis fails while a task is submitted", () => {
    const lost = () => Promise.reject(new FleetUnreachableError("the connection broke"));

    for (const step of ["enqueue", "publish"] as const) {
      it(`keeps a stored task if ${step} fails, and runs it once`, async () => {
        const worker = await join({});
        const gateway = await join();
        const { enqueue, publish } = gateway.fleet;
        Object.assign(gateway.fleet, { [step]: lost });
        const { task } = await gateway.queue.submit(request, { submission: { key: "key", digest: "d" } });
        Object.assign(gateway.fleet, { enqueue, publish });
        expect(await gateway.queue.submittedAs("key")).to.equal(task.id);
        await gateway.fleet.reconcile(0);
        const job = await worker.runner.startedAtLeast(1);
        expect(job.task.id).to.equal(task.id);
        job.succeed();
        await untilEnded(gateway, task.id);
        await gateway.fleet.reconcile(0);
        expect(worker.runner.started).to.have.length(1);
      });
    }

    it("queues a stored task later if the first command of its queue fails", async () => {
      const worker = await join({});
      const { queue, fleet } = await join();
      const { info } = fleet.redis;
      fleet.redis.info = () => Promise.reject(new Error("Command timed out"));
      const { task } = await queue.submit(request);
      fleet.redis.info = info;
      await fleet.reconcile(0);
      expect((await worker.runner.startedAtLeast(1)).task.id).to.equal(task.id);
    });

    it("accepts a task that Redis stored although its answer was lost, and refuses one that was not stored", async () => {
      const worker = await join({});
      const { queue, fleet } = await join();
      const add = fleet.store.add.bind(fleet.store);
      fleet.store.add = async (task, deadlineMs) => {
        await add(task, deadlineMs);
        return lost();
      };
      const { task } = await queue.submit(request);
      expect((await worker.runner.startedAtLeast(1)).task.id).to.equal(task.id);
      fleet.store.add = lost;
      expect(await failureOf(queue.submit(request))).to.be.instanceOf(FleetUnreachableError);
      expect((await queue.statistics()).counts).to.include({ total: 1, queued: 0, running: 1 });
    });

    it("stores no task whose submission Redis reads too late", async () => {
      const { fleet } = await join();
      await fleet.store.reserve("late", "", 0);
      const late = { ...makeTask({ id: "late" }), route: "song~" };
      expect(await failureOf(fleet.store.add(late, 1))).to.be.instanceOf(FleetUnreachableError);
      expect(await fleet.store.get("late")).to.equal(undefined);
      expect((await fleet.store.counts()).total).to.equal(0);
    });
  });

  describe("cancelling a task", () => {
    it("whose record was removed meanwhile answers that there is none", async () => {
      const worker = await join({});
      const { queue, fleet } = await join();
      const { task } = await queue.submit(request);
      await worker.runner.startedAtLeast(1);
      worker.runner.ignoresAbort = true;
      const cancelled = queue.cancel(task.id);
      while ((await queue.get(task.id))?.isCancelled !== true) await sleep(5);
      await server.forget(`carillon:task:${task.id}`);
      await fleet.store.release(task.id);
      expect(await cancelled).to.equal(false);
      expect(await queue.cancel(task.id)).to.equal(false);
      expect(await queue.remove(task.id)).to.equal(undefined);
      expect(await queue.update(task.id, (current) => ({ ...current, title: "x" }))).to.equal(undefined);
    });

    it("ends it although its only worker died, or its job cannot be removed", async () => {
      const worker = await join({});
      const { queue, fleet, runner } = await join();
      const running = (await queue.submit(request)).task;
      await worker.runner.startedAtLeast(1);
      const waiting = (await queue.submit(request)).task;
      await die(worker);
      const jobs = fleet.queueOf(waiting.route as string);
      const remove = jobs.remove;
      jobs.remove = () => Promise.reject(new FleetUnreachableError("the connection broke"));
      expect(await queue.cancel(waiting.id)).to.equal(true);
      jobs.remove = remove;
      expect(await queue.cancel(running.id)).to.equal(true);
      expect(runner.ends.map(({ id }) => id)).to.deep.equal([waiting.id, running.id]);
      const other = await join({});
      const last = (await queue.submit(request)).task;
      expect((await other.runner.startedAtLeast(1)).task.id).to.equal(last.id);
    });

    it("that its stopping worker would requeue, ends it", async () => {
      const worker = await join({});
      const { queue } = await join();
      const { task } = await queue.submit(request);
      await worker.runner.startedAtLeast(1);
      await queue.update(task.id, (current) => ({ ...current, isCancelled: true }));
      await worker.queue.stop(0);
      expect(await queue.get(task.id)).to.include({ state: "failed", error: "Cancelled by user" });
    });
  });

  it("takes a task for a cold model although it is announced while the worker takes another one", async () => {
    const { setInterval } = globalThis;
    // Without its timers the worker takes only tasks that are announced.
    globalThis.setInterval = ((...args: Parameters<typeof setInterval>) => {
      const timer = setInterval(...args);
      clearInterval(timer);
      return timer;
    }) as typeof setInterval;
    const models = [stubModel("warm"), { ...stubModel("cold", false), slot: 2 }];
    const worker = await join({ models }, 2).finally(() => {
      globalThis.setInterval = setInterval;
    });
    const { queue } = await join();
    const { store } = worker.fleet;
    const update = store.update.bind(store);
    let proceed = () => {};
    const held = new Promise<void>((resolve) => {
      proceed = resolve;
    });
    store.update = async (id, change) => {
      await held;
      return update(id, change);
    };
    await queue.submit({ ...request, model: "warm" });
    await queue.submit({ ...request, model: "cold" });
    // Longer than the head start of workers with the model in memory.
    await sleep(600);
    proceed();
    await worker.runner.startedAtLeast(2);
  });

  it("records the end of a task after a failed write, although Redis did not reconnect and garbage is collected", async () => {
    setFlagsFromString("--expose-gc");
    const collecting = setInterval(runInNewContext("gc"), 20);
    try {
      const worker = await join({});
      const { task } = await worker.queue.submit(request);
      const running = await worker.runner.startedAtLeast(1);
      const { store } = worker.fleet;
      const update = store.update.bind(store);
      let failures = 0;
      store.update = async (id, change) => {
        if (++failures <= 2) throw new FleetUnreachableError("the write was lost");
        return update(id, change);
      };
      running.succeed();
      expect(await untilEnded(worker, task.id)).to.include({ state: "succeeded", interruptions: 0 });
      expect(failures).to.be.above(2);
    } finally {
      clearInterval(collecting);
    }
  });

  it("requeues a task whose job is missing from all lists of BullMQ", async () => {
    const worker = await join({});
    await worker.queue.submit(request);
    const running = await worker.runner.startedAtLeast(1);
    const { task } = await worker.queue.submit(request);
    const { redis } = worker.fleet;
    await redis.zrem(worker.fleet.queueOf(task.route as string).toKey("prioritized"), task.id);
    // Also removes the running task's job from its list. The task must still not be requeued, because its
    // worker holds the lock.
    await redis.del(worker.fleet.queueOf(task.route as string).toKey("active"));
    const other = await join();
    await other.fleet.reconcile(0);
    expect(await other.queue.live(task.id)).to.include({ position: 1 });
    running.succeed();
    expect((await worker.runner.startedAtLeast(2)).task.id).to.equal(task.id);
    worker.runner.started[1]?.succeed();
    await untilEnded(other, task.id);
    expect(await other.queue.get(running.task.id)).to.include({ state: "succeeded", interruptions: 0 });
    expect(worker.runner.started).to.have.length(2);
  });

  it("without Redis, new tasks are rejected, ended tasks can be read, and ends are recorded later", async () => {
    const gateway = await join();
    const worker = await join({});
    const done = (await gateway.queue.submit(request)).task.id;
    (await worker.runner.startedAtLeast(1)).succeed();
    await untilEnded(gateway, done);
    const { task } = await gateway.queue.submit(request);
    const job = await worker.runner.startedAtLeast(2);
    const ends: string[] = [];
    gateway.queue.events.on("ended", ({ id }) => ends.push(id));
    // Delays the gateway's command connection: the gateway then cannot read the record when the end is
    // announced.
    gateway.fleet.redis.options.retryStrategy = () => 60_000;
    await server.kill();
    const refused = await failureOf(gateway.queue.submit(request));
    expect(refused).to.be.instanceOf(FleetUnreachableError);
    expect((await gateway.queue.get(done))?.state).to.equal("succeeded");
    job.succeed();
    await sleep(50);
    const isBack = new Promise((resolve) => worker.fleet.redis.once("ready", resolve));
    await server.start();
    await isBack;
    await untilEnded(worker, task.id);
    await gateway.fleet.redis.connect();
    while (!ends.includes(task.id)) await sleep(10);
    expect(await gateway.queue.get(task.id)).to.include({ state: "succeeded", interruptions: 0 });
    expect(worker.runner.started).to.have.length(2);
    expect(ends).to.deep.equal([task.id]);
  });

  it("replaces connections to Redis that fell silent, for commands and for messages @slow", async () => {
    const way = await startSilentWay(server);
    try {
      const gateway = await join(null, 1, way.url);
      const worker = await join({});
      way.silence();
      expect(await failureOf(gateway.queue.submit(request))).to.be.instanceOf(FleetUnreachableError);
      const retried = async () => (await gateway.queue.submit(request).catch(() => null))?.task.id;
      let id = await retried();
      for (; id === undefined; id = await retried()) await sleep(500);
      const ended = once(gateway.queue.events, "ended");
      (await worker.runner.startedAtLeast(1)).succeed();
      expect((await ended)[0]).to.include({ id, state: "succeeded" });
    } finally {
      way.close();
    }
  }).timeout(60_000);

  it("passes a call to another worker if the first one dies, and returns that worker's result or error", async () => {
    const fleets: Fleet[] = [];
    const open = async () => {
      const fleet = await Fleet.open(server.url, "", log, LEASE_MS);
      fleets.push(fleet);
      return new RemoteCalls(fleet);
    };
    const [caller, first, second] = await Promise.all([open(), open(), open()]);
    try {
      let begin = () => {};
      const begun = new Promise<void>((resolve) => {
        begin = resolve;
      });
      first.serve(TEXT_CALL_QUEUE, () => {
        begin();
        return new Promise(() => {});
      });
      const result = caller.call(TEXT_CALL_QUEUE, "double", { value: 21 });
      await begun;
      await first.close();
      second.serve(TEXT_CALL_QUEUE, async (name, data) => {
        const { value } = data as { value: number };
        if (name !== "double") throw new EngineError("PROMPT_TOO_LONG", "too long");
        return 2 * value;
      });
      expect(await result).to.equal(42);
      const refused = await failureOf(caller.call(TEXT_CALL_QUEUE, "read", { value: 1 }));
      expect(refused).to.deep.include({ code: "PROMPT_TOO_LONG", message: "too long" });
      const hungUp = caller.call(
        TEXT_CALL_QUEUE,
        "double",
        { value: 1 },
        AbortSignal.abort(new Error("hung up")),
      );
      expect(await failureOf(hungUp)).to.have.property("message", "hung up");
    } finally {
      for (const calls of [caller, first, second]) await calls.close();
      for (const fleet of fleets) await fleet.close();
    }
  });

  it("dates tasks by Redis's clock, not by the servers' clocks", async () => {
    const worker = await join({});
    const { now } = Date;
    const startedMs = now();
    try {
      Date.now = () => now() - 3 * DAY_MS;
      const { task } = await worker.queue.submit(request);
      const job = await worker.runner.startedAtLeast(1);
      Date.now = () => now() + 3 * DAY_MS;
      job.succeed();
      const { createdAtMs, startedAtMs = 0, endedAtMs = 0 } = await untilEnded(worker, task.id);
      expect(createdAtMs).to.be.within(startedMs - DAY_MS, startedMs + DAY_MS);
      expect(startedAtMs).to.be.within(createdAtMs, createdAtMs + DAY_MS);
      expect(endedAtMs).to.be.within(startedAtMs, startedAtMs + DAY_MS);
    } finally {
      Date.now = now;
    }
  });

  it("uses the Redis key names of the installed BullMQ version", async () => {
    const worker = await join({});
    const running = (await worker.queue.submit(request)).task;
    await worker.runner.startedAtLeast(1);
    const waiting = (await worker.queue.submit(request)).task;
    const { fleet } = worker;
    const route = running.route as string;
    const claim = (await worker.queue.get(running.id))?.claim;
    expect(await fleet.redis.get(fleet.jobKey(route, running.id, ":lock"))).to.equal(claim);
    expect(await fleet.redis.exists(fleet.jobKey(route, running.id))).to.equal(1);
    const reader = await join();
    const { redis } = reader.fleet;
    const prioritized = reader.fleet.queueOf(route).toKey("prioritized");
    expect(await redis.zrange(prioritized, "0", "-1")).to.deep.equal([waiting.id]);
    await leave(worker);
    expect(await redis.zrange(prioritized, "0", "-1")).to.deep.equal([running.id, waiting.id]);
  });

  it("keeps the content of a task out of Redis keys and BullMQ jobs", async () => {
    const worker = await join({});
    const secret = { ...request, prompt: "secret words" };
    const submission = { key: "idempotency", digest: "d" };
    const { task } = await worker.queue.submit(secret, { client: "key 1", submission });
    await worker.runner.startedAtLeast(1);
    const keys = await worker.fleet.redis.keys("*");
    expect(keys.join("\n")).to.include(task.id).and.not.include("secret");
    const job = await worker.fleet.queueOf(task.route as string).getJob(task.id);
    expect(JSON.stringify(job?.asJSON())).to.not.include("secret");
  });
});
