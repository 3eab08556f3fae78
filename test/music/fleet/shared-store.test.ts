/** Tests how the servers of a fleet check that all of them use the same storage. */
import { mkdirSync, readdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { pino } from "pino";
import { HttpError } from "../../../src/music/errors.js";
import { Fleet } from "../../../src/music/fleet/fleet.js";
import { SharedStore } from "../../../src/music/fleet/shared-store.js";
import { directoryTokens } from "../../../src/music/storage/store-token.js";
import { failureOf } from "../../failures.js";
import { makeRequest, temporaryDirectory } from "../tasks.js";
import { memberOf } from "./member.js";
import { RedisServer } from "./redis-server.js";

const request = makeRequest({ prompt: "a song" });

describe("task store that is shared by a fleet", () => {
  let server: RedisServer;
  const log = pino({ level: "silent" });
  const fleets: Fleet[] = [];

  async function enter(directory: string, name = directory) {
    const fleet = await Fleet.open(server.url, "", log);
    fleets.push(fleet);
    const store = new SharedStore(fleet.redis, directoryTokens(directory), name, log);
    fleet.sharedStore = store;
    await store.join();
    return { fleet, store };
  }
  const refusal = async (joining: Promise<unknown>) => (await failureOf(joining)).message;

  before(async () => {
    server = await RedisServer.start();
  });
  after(() => server.kill());
  beforeEach(() => server.clear());
  afterEach(async () => {
    for (const fleet of fleets.splice(0)) await fleet.close();
  });

  it("servers that mount the same directory share a store, even after all have stopped", async () => {
    const directory = temporaryDirectory();
    await enter(directory);
    await enter(directory);
    await server.clear();
    await enter(directory);
    expect(readdirSync(join(directory, "fleet"))).to.have.length(1);
  });

  it("a server with another store than the fleet's is rejected with an error that names both", async () => {
    const [first, second] = [temporaryDirectory(), temporaryDirectory()];
    await enter(first, "s3://songs");
    const other = await refusal(enter(second, "s3://other"));
    expect(other).to.match(
      /^SVC_STORAGE: s3:\/\/other is not the storage of the fleet at SVC_REDIS_URL \(127/,
    );
    expect(other).to.include("which uses s3://songs");
    expect(await refusal(enter(second, "s3://songs"))).to.include("this server sees other files there");
    // The servers have stopped, so the key would expire soon. Deleting it saves the wait.
    await server.forget("carillon:store");
    await enter(second, "s3://other");
  });

  it("an announcement that cannot be read is replaced, and a server with another store is still rejected", async () => {
    const { fleet, store } = await enter(temporaryDirectory());
    await fleet.redis.set("carillon:store", "garbage");
    await store.check();
    expect(store.fault).to.equal(null);
    expect(await refusal(enter(temporaryDirectory()))).to.include("is not the storage of the fleet");
  });

  it("a server that lost the store neither accepts nor starts tasks until it finds the store again", async () => {
    const directory = join(temporaryDirectory(), "mount");
    mkdirSync(directory);
    const { fleet } = await enter(directory, "file:///mount");
    const gateway = await enter(directory, "file:///mount");
    const { runner, queue: working } = memberOf(fleet, { log, worker: { name: "worker" } });
    const { queue } = memberOf(gateway.fleet, { log, worker: null });
    working.start();
    while ((await gateway.fleet.workers.refresh()).length === 0) await sleep(5);
    await queue.submit(request);
    (await runner.startedAtLeast(1)).succeed();

    // Simulates a lost mount: the empty mount point remains.
    renameSync(directory, `${directory}.away`);
    mkdirSync(directory);
    const isReady = new Promise((resolve) => fleet.redis.once("ready", resolve));
    fleet.redis.disconnect(true);
    await isReady;
    await fleet.sharedStore?.check();
    expect(fleet.sharedStore?.fault).to.include("other files");
    const refused = await working.submit(request).catch((error: unknown) => error);
    expect(refused).to.be.instanceOf(HttpError).and.include({ status: 503 });
    const { task } = await queue.submit(request);
    fleet.events.emit("reconnected");
    while ((await gateway.fleet.workers.refresh())[0]?.models.length !== 0) await sleep(5);
    expect(runner.started).to.have.length(1);

    rmSync(directory, { recursive: true });
    renameSync(`${directory}.away`, directory);
    await fleet.sharedStore?.check();
    fleet.events.emit("reconnected");
    expect((await runner.startedAtLeast(2)).task.id).to.equal(task.id);
    runner.started[1]?.succeed();
    await working.stop(1);
  });
});
