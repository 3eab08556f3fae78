import { readdirSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { pino } from "pino";
import { RemoteCalls } from "../../../src/music/fleet/calls.js";
import { Fleet } from "../../../src/music/fleet/fleet.js";
import { FleetAdapters } from "../../../src/music/fleet/fleet-adapters.js";
import { AdapterStorage, type StoredAdapter } from "../../../src/music/storage/adapter-storage.js";
import { FileStorage } from "../../../src/music/storage/file-storage.js";
import { makeTask, temporaryDirectory } from "../tasks.js";
import { RedisServer } from "./redis-server.js";

const never = new AbortController().signal;
const log = pino({ level: "silent" });

describe("stored adapters of a fleet", () => {
  let server: RedisServer;
  let fleet: Fleet;
  let calls: RemoteCalls;
  const shared = temporaryDirectory();
  const storage = new AdapterStorage(new FileStorage(shared, null, "adapters/"));

  before(async () => {
    server = await RedisServer.start();
    fleet = await Fleet.open(server.url, "", log);
    calls = new RemoteCalls(fleet);
  });
  after(async () => {
    await calls.close();
    await fleet.close();
    await server.kill();
  });

  async function publish(weights: string): Promise<{ name: string; stored: StoredAdapter }> {
    const path = join(temporaryDirectory(), "style.safetensors");
    writeFileSync(path, weights);
    const stored = await storage.publish(path);
    return { name: Object.values(stored.files)[0] as string, stored };
  }

  it("a stored adapter stays while it is loaded or an unfinished task uses it, and is deleted a day later", async () => {
    const adapters = new FleetAdapters(fleet, calls, storage);
    const [loaded, waiting, ended, unused] = [
      await publish("loaded"),
      await publish("waiting"),
      await publish("ended"),
      await publish("unused"),
    ];
    const adapter = { path: "/styles/a", scale: 1, doraEpsilon: "float32" as const };
    await adapters.change("model", () => [
      { ...adapter, name: "a", enabled: true, stored: loaded.stored } as never,
    ]);
    const using = ({ stored }: { stored: StoredAdapter }, change: object) => {
      const task = makeTask(change);
      return { ...task, request: { ...task.request, loras: [{ ...adapter, name: "b", stored }] } };
    };
    await fleet.store.add(using(waiting, { sequence: 1 }));
    await fleet.store.add(using(ended, { sequence: 2, state: "succeeded", finishedAtMs: 1 }));
    await adapters.removeUnused(never);
    expect(readdirSync(shared)).to.have.length(4);
    for (const name of readdirSync(shared)) utimesSync(join(shared, name), 1e9, 1e9);
    await adapters.removeUnused(never);
    expect(readdirSync(shared)).to.have.members([loaded.name, waiting.name]);
    expect([ended.name, unused.name]).to.not.include(loaded.name);
    await adapters.change("model", () => []);
    await adapters.removeUnused(never);
    expect(readdirSync(shared)).to.deep.equal([waiting.name]);
  });
});
