/** Tests that a process of a fleet reads what other processes have written. */
import { expect } from "chai";
import type { Redis } from "ioredis";
import { pino } from "pino";
import { FleetStore } from "../../../src/music/fleet/fleet-store.js";
import { connectRedis } from "../../../src/music/fleet/redis.js";
import { EVERY_TASK, makeTask } from "../tasks.js";
import { RedisServer } from "./redis-server.js";

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
});
