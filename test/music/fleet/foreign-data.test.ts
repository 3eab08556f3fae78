/** Foreign data in the fleet's Redis: messages on its channels, and values in all of its keys. */
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { Redis } from "ioredis";
import { pino } from "pino";
import { HttpError, StoreError } from "../../../src/music/errors.js";
import { RemoteCalls, TEXT_CALL_QUEUE } from "../../../src/music/fleet/calls.js";
import { Fleet } from "../../../src/music/fleet/fleet.js";
import { FleetAdapters } from "../../../src/music/fleet/fleet-adapters.js";
import { FleetDeletionRecord } from "../../../src/music/fleet/fleet-deletions.js";
import { hasEnded } from "../../../src/music/queue/catalog.js";
import { DamagedRecordError, type Task } from "../../../src/music/queue/store.js";
import type { AdapterStorage } from "../../../src/music/storage/adapter-storage.js";
import { failureOf } from "../../failures.js";
import { EVERY_TASK, makeRequest } from "../tasks.js";
import { memberOf, stubModel } from "./member.js";
import { RedisServer } from "./redis-server.js";

const request = { ...makeRequest({ prompt: "a song" }), model: "stub" };
const LEASE_MS = 600;
const GARBAGE = "garbage \u0000:~ {";

type Member = ReturnType<typeof memberOf> & { calls: RemoteCalls };

describe("a fleet with foreign data in Redis", () => {
  let server: RedisServer;
  let other: Redis;
  const lines: string[] = [];
  const log = pino({ level: "warn" }, { write: (line: string) => void lines.push(line) });
  const members: Member[] = [];

  async function join(...models: [null] | string[]): Promise<Member> {
    const described = models.map((model, index) => model && { ...stubModel(model), slot: index + 1 });
    const fleet = await Fleet.open(server.url, "", log, LEASE_MS);
    const name = `worker ${members.length}`;
    const worker = models[0] === null ? null : { name, places: 2, describes: { models: described } };
    const member = { ...memberOf(fleet, { log, worker }), calls: new RemoteCalls(fleet) };
    members.push(member);
    member.queue.start();
    while (worker !== null && !(await fleet.workers.refresh()).some((known) => known.name === name))
      await sleep(5);
    return member;
  }

  before(async () => {
    server = await RedisServer.start();
    other = new Redis(server.url);
  });
  after(async () => {
    other.disconnect();
    await server.kill();
  });
  beforeEach(async () => {
    await server.clear();
    lines.length = 0;
  });
  afterEach(async () => {
    for (const { fleet, queue, calls } of members.splice(0)) {
      await queue.stop(0).catch(() => {});
      await calls.close();
      await fleet.close();
    }
  });

  const untilEnded = async ({ queue }: Member, id: string): Promise<Task | undefined> => {
    for (;;) {
      const task = await queue.get(id);
      if (task === undefined || hasEnded(task.state)) return task;
      await sleep(5);
    }
  };

  it("each server skips foreign messages with one log line, and still receives messages of its fleet", async () => {
    const gateway = await join(null);
    const worker = await join("stub");
    const foreign = [
      "hello",
      "null",
      "[]",
      "{}",
      '{"type":"ended"}',
      '{"type":"progress","id":"x"}',
      "\u0000\ufffd",
    ];
    for (const channel of ["carillon:events", "carillon:0:events"]) {
      for (const text of foreign) await other.publish(channel, text);
    }
    const { task } = await gateway.queue.submit(request);
    const ended = new Promise((resolve) => gateway.queue.events.once("ended", resolve));
    (await worker.runner.startedAtLeast(1)).succeed();
    await ended;
    expect(await gateway.queue.get(task.id)).to.include({ state: "succeeded" });
    const skipped = lines.filter((line) => line.includes("skipped unreadable data"));
    expect(skipped).to.have.length(2);
    expect(skipped[0]).to.include("carillon:0:events").and.include("a message that the fleet did not write");
  });

  it("a fleet receives no messages of another fleet in another database of the same Redis", async () => {
    const gateway = await join(null);
    const neighbour = await Fleet.open(`${server.url}/5`, "", log);
    const received: unknown[] = [];
    gateway.fleet.events.on("event", (event) => received.push(event));
    await neighbour.publish({ type: "ended", id: "foreign" });
    await gateway.fleet.publish({ type: "ended", id: "own" });
    while (received.length === 0) await sleep(5);
    expect(received).to.deep.equal([{ type: "ended", id: "own" }]);
    await neighbour.close();
  });

  it("a task whose job BullMQ cannot read is skipped, logged, and queued again", async () => {
    const gateway = await join(null);
    const worker = await join("stub");
    const [first, second] = [await gateway.queue.submit(request), await gateway.queue.submit(request)];
    await worker.runner.startedAtLeast(2);
    const unreadable = (await gateway.queue.submit(request)).task;
    await other.hset(gateway.fleet.jobKey(unreadable.route as string, unreadable.id), "data", GARBAGE);
    for (const job of worker.runner.started) job.succeed();
    for (const { task } of [first, second]) await untilEnded(gateway, task.id);
    while (!lines.join().includes("skipped unreadable data")) await sleep(5);
    let started = 0;
    while (started < 3) {
      await gateway.fleet.reconcile(0);
      started = worker.runner.started.length;
    }
    expect(worker.runner.started[2]?.task.id).to.equal(unreadable.id);
    worker.runner.started[2]?.succeed();
    await untilEnded(gateway, unreadable.id);
  });

  it("a queue that cannot be read keeps no worker from its other queues", async () => {
    const gateway = await join(null);
    const worker = await join("stub", "intact");
    const { task } = await gateway.queue.submit(request);
    (await worker.runner.startedAtLeast(1)).succeed();
    await untilEnded(gateway, task.id);
    for (const list of ["wait", "active", "prioritized", "stalled"]) {
      await other
        .multi()
        .del(`carillon:queue:${task.route}:${list}`)
        .set(`carillon:queue:${task.route}:${list}`, GARBAGE)
        .exec();
    }
    const intact = (await gateway.queue.submit({ ...request, model: "intact" })).task;
    expect((await worker.runner.startedAtLeast(2)).task.id).to.equal(intact.id);
    worker.runner.started[1]?.succeed();
    expect(await untilEnded(gateway, intact.id)).to.include({ state: "succeeded" });
  });

  it("a task with a damaged record leaves all lists and is reported as damaged, and other tasks go on", async () => {
    const gateway = await join(null);
    const worker = await join("stub");
    await gateway.queue.submit(request);
    await gateway.queue.submit(request);
    await worker.runner.startedAtLeast(2);
    const damaged = [await gateway.queue.submit(request), await gateway.queue.submit(request)];
    const intact = await gateway.queue.submit(request);
    const [text, list] = damaged.map(({ task }) => `carillon:task:${task.id}`) as [string, string];
    await other.setrange(text, 100, GARBAGE);
    await other.multi().del(list).rpush(list, GARBAGE).exec();
    for (const job of worker.runner.started) job.succeed();
    expect((await worker.runner.startedAtLeast(3)).task.id).to.equal(intact.task.id);
    const { ids } = await gateway.queue.page(EVERY_TASK);
    for (const { task } of damaged) {
      expect(await failureOf(gateway.queue.get(task.id))).to.be.instanceOf(DamagedRecordError);
      expect(ids).to.not.include(task.id);
    }
    expect((await gateway.queue.statistics()).counts).to.include({ queued: 0 });
    expect(lines.join()).to.include('"carillon:task"');
  });

  /** Writers of foreign values, by kind. A writer returns null if its value does not fit the type of the key. */
  const KINDS: Record<string, (key: string, type: string) => Promise<unknown>> = {
    // A single transaction deletes and replaces the key, so that no heartbeat writes the key in between.
    "another type": (key, type) => {
      const replacing = other.multi().del(key);
      return (type === "list" ? replacing.set(key, GARBAGE) : replacing.rpush(key, GARBAGE, "{}")).exec();
    },
    "bad text": async (key, type) => {
      if (type === "string") return other.set(key, GARBAGE);
      if (type !== "hash") return null;
      for (const field of await other.hkeys(key)) await other.hset(key, field, GARBAGE);
      return other.hset(key, GARBAGE, GARBAGE);
    },
    "foreign JSON": async (key, type) => {
      if (type === "string") return other.set(key, '{"id":7}');
      if (type !== "hash") return null;
      for (const field of await other.hkeys(key)) await other.hset(key, field, "null");
      return other.hset(key, "{}", "[]");
    },
    "a cut text": async (key, type) => {
      if (type === "string") return other.set(key, (await other.getBuffer(key))?.subarray(0, -1) ?? "");
      if (type !== "hash") return null;
      for (const [field, text] of Object.entries(await other.hgetall(key))) {
        await other.hset(key, field, text.slice(0, -1));
      }
      return other.hset(key, "", "");
    },
    "foreign members": async (key, type) => {
      if (type === "zset") return other.zadd(key, 0, GARBAGE, 1e300, "{}");
      if (type === "set") return other.sadd(key, GARBAGE, "");
      if (type === "list") return other.rpush(key, GARBAGE, "", "meta");
      if (type === "stream") return other.xadd(key, "*", "event", "completed", "returnvalue", GARBAGE);
      return null;
    },
    "nothing at all": (key) => other.del(key),
  };

  for (const [kind, overwrite] of Object.entries(KINDS)) {
    it(`with ${kind} in any Redis key, no server ends, intact tasks go on, and unreadable data is logged`, async () => {
      const gateway = await join(null);
      const worker = await join("stub");
      const busy = await join("busy");
      worker.calls.serve(TEXT_CALL_QUEUE, async (name) => name);
      const adapters = new FleetAdapters(gateway.fleet, gateway.calls, null as unknown as AdapterStorage);
      const deletions = new FleetDeletionRecord(gateway.fleet.redis);
      const make = async (origin = {}): Promise<void> => {
        const { task } = await gateway.queue.submit(request, origin);
        while ((await gateway.queue.get(task.id))?.state !== "succeeded") {
          for (const job of worker.runner.started) job.succeed();
          await sleep(2);
        }
      };
      /** Triggers a heartbeat, and waits until the gateway knows both workers. */
      const announced = async () => {
        for (const { fleet } of [worker, busy]) fleet.events.emit("reconnected");
        while ((await gateway.fleet.workers.refresh()).length < 2) await sleep(2);
      };
      const submission = { key: "submission", digest: "digest" };
      await make({ submission, client: "key 1" });
      const done = (await gateway.queue.submittedAs("submission")) as string;
      await gateway.queue.update(done, (task) => ({ ...task, favorite: true }));
      const failing = await gateway.queue.submit(request);
      (await worker.runner.startedAtLeast(2)).fail(new Error("no song"));
      await untilEnded(gateway, failing.task.id);
      const busyTasks: string[] = [];
      for (let index = 0; index < 4; index++) {
        busyTasks.push((await gateway.queue.submit({ ...request, model: "busy" })).task.id);
      }
      const progress = { value: 0.5, stage: "s", text: "t", previewSeconds: 0 };
      (await busy.runner.startedAtLeast(2)).context.report(progress);
      await gateway.calls.call(TEXT_CALL_QUEUE, "hello", {});
      await other.hset("carillon:adapters", "stub", JSON.stringify(await adapters.read("stub")));
      await deletions.add(done, ["audio/gone.mp3"]);
      await other.zadd("carillon:callbacks", 0, done);
      await gateway.queue.runCleanUp(async () => {});
      await gateway.fleet.tryAcquireLease("reconcile", 60_000);
      // Moves one job to the list of requeued jobs, and one to the list of delayed jobs.
      const busyKey = (name: string) => `carillon:queue:v2~busy~:${name}`;
      for (const list of ["wait", "delayed"]) {
        const [id = ""] = await other.zpopmax(busyKey("prioritized"));
        await (list === "wait" ? other.rpush(busyKey(list), id) : other.zadd(busyKey(list), 1e15, id));
      }
      const keys = (await other.keys("carillon:*")).sort();
      expect(keys.length).to.be.greaterThan(30);

      const readings = [
        async () => {
          for (const search of ["", "song"]) {
            for (const id of (await gateway.queue.page({ ...EVERY_TASK, search })).ids)
              await gateway.queue.get(id).catch(ifDamaged);
          }
        },
        async () => {
          for (const id of busyTasks) await gateway.queue.live(id);
        },
        async () => {
          expect((await gateway.queue.statistics()).averageJobSeconds).to.be.within(0, 5);
        },
        () => gateway.queue.finished(),
        () => gateway.queue.submittedAs("submission"),
        () => adapters.read("stub"),
        async () => {
          for (const [name] of await deletions.all()) expect(name).to.equal("audio/gone.mp3");
        },
        () => deletions.add(done, ["audio/gone.mp3"]),
        () => gateway.fleet.reconcile(0),
        async () => {
          expect(await gateway.calls.call(TEXT_CALL_QUEUE, "hello", {})).to.equal("hello");
        },
      ];
      for (const key of keys) {
        const type = await other.type(key);
        if (type === "none" || (await overwrite(key, type)) === null) continue;
        try {
          if (kind === "another type" || (type !== "zset" && REFUSING.test(key))) {
            for (const work of [() => gateway.queue.submit(request), ...readings])
              await work().catch(ifRefused);
            await other.del(key);
          }
          if (/^carillon:(worker|checkpoint)/.test(key)) await announced();
          await make({ submission: { key, digest: "" } });
          for (const reading of readings) await reading();
        } catch (error) {
          throw new Error(`${key} with ${kind}: ${(error as Error).stack}`);
        }
      }
      for (const line of lines) expect(line.length).to.be.lessThan(2000);
      if (kind !== "nothing at all") expect(lines.join()).to.include("skipped unreadable data");
    });
  }
});

/** Counters, checkpoints and keys of BullMQ: while they are foreign, submissions and calls may be refused. */
const REFUSING = /^carillon:(queue:.*|checkpoint:.*|sequence|turns?)$/;

function ifDamaged(error: unknown): void {
  if (!(error instanceof DamagedRecordError)) throw error;
}

function ifRefused(error: unknown): void {
  if (error instanceof StoreError || (error instanceof HttpError && error.status === 503)) return;
  ifDamaged(error);
}
