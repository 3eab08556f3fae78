/** Tests that a process of a fleet reads what other processes have written. */
import { expect } from "chai";
import type { Redis } from "ioredis";
import { pino } from "pino";
import { FleetStore } from "../../../src/music/fleet/fleet-store.js";
import { connectRedis } from "../../../src/music/fleet/redis.js";
import { EVERY_TASK, makeTask } from "../tasks.js";
import { RedisServer } from "./redis-server.js";

/** One more change than Redis keeps. */
const MANY = 10_001;
const BATCH = 500;

describe("task search in a fleet", () => {
  let server: RedisServer;
  const connections: Redis[] = [];

  async function openStore(): Promise<FleetStore> {
    const log = pino({ level: "silent" });
    const redis = connectRedis(server.url, log);
    connections.push(redis);
    await redis.connect();
    return new FleetStore(redis);
  }

  before(async () => {
    server = await RedisServer.start();
  });
  after(() => server.kill());
  beforeEach(() => server.clear());
  afterEach(() => {
    for (const redis of connections.splice(0)) redis.disconnect();
  });

  const search = async (store: FleetStore, words: string, state: "succeeded" | null = null) =>
    (await store.page({ ...EVERY_TASK, state, search: words })).ids;

  it("a search finds tasks as other processes have changed them", async () => {
    const [near, far] = [await openStore(), await openStore()];
    const tasks = [1, 2, 3].map((sequence) => makeTask({ sequence }));
    const [first, second, third] = tasks.map(({ id }) => id) as [string, string, string];
    for (const task of tasks.slice(0, 2)) await near.add(task);
    expect(await search(far, "BOSSA slow")).to.deep.equal([second, first]);
    await near.add(tasks[2] as (typeof tasks)[0]);
    await near.update(first, (task) => ({ ...task, title: "rain" }));
    expect(await search(far, "bossa")).to.deep.equal([third, second, first]);
    expect(await search(far, "rain")).to.deep.equal([first]);
    await near.update(first, (task) => ({ ...task, state: "succeeded", finishedAtMs: 1 }));
    expect(await search(far, "rain", "succeeded")).to.deep.equal([first]);
    await near.remove(first);
    expect(await search(far, "bossa")).to.deep.equal([third, second]);
    await near.update(second, (task) => ({ ...task, favorite: true }));
    const others = await far.page({ ...EVERY_TASK, favorite: false });
    expect(others).to.deep.equal({ total: 1, ids: [third] });
  });

  it("a search finds the current tasks after more changes than Redis keeps", async () => {
    const [near, far] = [await openStore(), await openStore()];
    const removed = makeTask({ state: "succeeded", finishedAtMs: 1 });
    await near.add(removed);
    expect(await search(far, "bossa")).to.deep.equal([removed.id]);
    await near.remove(removed.id);
    const tasks = Array.from({ length: MANY }, (_, index) => makeTask({ sequence: index + 2 }));
    for (let begin = 0; begin < MANY; begin += BATCH) {
      await Promise.all(tasks.slice(begin, begin + BATCH).map((task) => near.add(task)));
    }
    const { total, ids } = await far.page({ ...EVERY_TASK, search: "bossa", offset: MANY - 1 });
    expect(total).to.equal(MANY);
    expect(ids).to.deep.equal([tasks[0]?.id]);
  });

  it("a search finds only the current tasks after Redis has lost its data", async () => {
    const store = await openStore();
    const lost = makeTask({ sequence: 1 });
    await store.add(lost);
    expect(await search(store, "bossa")).to.deep.equal([lost.id]);
    await server.clear();
    const kept = makeTask({ sequence: 1 });
    const back = new Promise((resolve) => connections[0]?.once("ready", resolve));
    await server.kill();
    await server.start();
    await back;
    await store.add(kept);
    expect(await search(store, "bossa")).to.deep.equal([kept.id]);
  });
});
