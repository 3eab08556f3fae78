import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { READ_ROUTES } from "../../src/city/embedded-routes.js";
import { temporaryDirectory } from "../music/tasks.js";
import { type Answer, BridgeClient } from "./bridge.js";
import { loadWorld } from "./simulation/towns.js";

const cli = fileURLToPath(new URL("../../dist/cli/main.js", import.meta.url));

describe("carillon city", () => {
  let directory: string;
  let settings: Record<string, string>;
  let children: ChildProcess[];

  beforeEach(() => {
    settings = {};
    directory = temporaryDirectory();
    children = [];
  });
  afterEach(async () => {
    for (const child of children)
      if (child.exitCode === null && child.signalCode === null) await end(child, "SIGKILL");
  });

  function carillonCity(...args: string[]): ChildProcess {
    return started(process.execPath, [cli, "city", "--port", "0", ...args]);
  }

  function started(program: string, args: readonly string[]): ChildProcess {
    const child = spawn(program, args, {
      env: { ...process.env, CITY_SAVES_DIR: directory, ...settings },
      stdio: ["ignore", "pipe", "pipe"],
    });
    children.push(child);
    return child;
  }

  async function served(...args: string[]): Promise<{ child: ChildProcess; client: BridgeClient }> {
    const child = carillonCity(...args);
    return { child, client: await clientOf(child) };
  }

  async function clientOf(child: ChildProcess): Promise<BridgeClient> {
    for await (const line of createInterface({ input: child.stdout as NodeJS.ReadableStream })) {
      const url = /^city on (http:\S+)$/.exec(line)?.[1];
      if (url !== undefined) return new BridgeClient(url);
    }
    throw new Error(
      `the process exited before it was ready: ${await text(child.stderr as NodeJS.ReadableStream)}`,
    );
  }

  async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<number | null> {
    const ended = once(child, "exit");
    child.kill(signal);
    return ((await ended) as [number | null])[0];
  }

  /** Builds a street, stops the clock and saves; resolves with the path of the save. */
  async function saveStreet(client: BridgeClient, name: string): Promise<string> {
    await client.run("set-simulation-speed", { paused: true });
    await client.road(0, 0, 80, 0, { name: "Agent Street" });
    await client.run("set-zone", { center: { x: 40, z: 0 } });
    return client.save(name);
  }

  async function everything(client: BridgeClient): Promise<Answer> {
    const states: Answer = {};
    for (const { path } of READ_ROUTES) states[path] = await client.state(path);
    // The key of the map tiles differs for each server process.
    delete states["/state/map-tiles"].key;
    return states;
  }

  it("resumes exactly the saved city in a new process @slow", async () => {
    const { child, client } = await served();
    const path = await saveStreet(client, "Street");
    const before = await everything(client);
    expect(await end(child, "SIGTERM")).to.equal(0);
    const again = await served("--load", path);
    expect(await everything(again.client)).to.deep.equal(before);
    expect(await end(again.child, "SIGINT")).to.equal(0);
  });

  it("rejects an unaffordable command, naming cost and balance; unlimited money allows it @slow", async () => {
    const plant = { buildingPrefab: "Fusion Power Plant", position: { x: 0, z: 0 } };
    const { client } = await served();
    expect(await client.refusal("place-building", plant)).to.match(
      /costs 1000000\.00.* balance is 200000\.00/,
    );
    settings = { CITY_SAVES_DIR: join(directory, "rich"), CITY_UNLIMITED_MONEY: "true" };
    const rich = await served();
    expect((await rich.client.run("place-building", plant)).ok).to.equal(true);
  });

  it("a kill during a save leaves the last good save intact @slow", async () => {
    const { child, client } = await served();
    const path = await saveStreet(client, "Street");
    for (let i = 0; i < 20; i++) {
      await client.post("save", { name: "Street" });
      await client.road(0, 200 + i * 90, 80, 200 + i * 90);
    }
    await client.post("save", { name: "Street" });
    await end(child, "SIGKILL");
    const world = await loadWorld(path);
    expect(world.segments.size).to.be.within(219, 239);
    const { client: next } = await served("--load", path);
    const { saves } = await next.state("/state/saves");
    expect(saves.map(({ name }: Answer) => name)).to.include("Street");
  });

  it("rejects a save that is truncated, missing or not a city, and gives the reason", async () => {
    const { child: saver, client } = await served();
    const path = await saveStreet(client, "Street");
    await end(saver, "SIGTERM");
    const broken = join(directory, "broken.crp");
    writeFileSync(broken, readFileSync(path));
    truncateSync(broken, 1000);
    const foreign = join(directory, "foreign.crp");
    writeFileSync(foreign, "not a city");
    for (const [file, reason] of [
      [broken, "truncated"],
      [foreign, "not a .crp package"],
      [join(directory, "none.crp"), "does not exist"],
    ] as const) {
      const child = carillonCity("--load", file);
      const [complaint, [code]] = await Promise.all([
        text(child.stderr as NodeJS.ReadableStream),
        once(child, "exit"),
      ]);
      expect([file, code]).to.deep.equal([file, 1]);
      expect(complaint).to.include(file).and.include(reason).and.not.include("    at ");
    }
  });

  it("serves new clients and saves while 400 idle clients exceed its open files", async () => {
    const script = `ulimit -n 256; exec "${process.execPath}" "${cli}" city --port 0`;
    const child = started("sh", ["-c", script]);
    const client = await clientOf(child);
    const { hostname, port } = new URL(client.url);
    const idle = Array.from({ length: 400 }, () => connect(Number(port), hostname).on("error", () => {}));
    await Promise.all(idle.map((socket) => once(socket, "connect")));
    await saveStreet(client, "Street");
    await client.run("new-city", { seed: 3 });
    expect(await savedNames(client)).to.have.length.greaterThan(1);
    for (const socket of idle) socket.destroy();
    expect(await end(child, "SIGTERM")).to.equal(0);
  });

  it("makes its folder again if it is removed, and keeps other cities out of it @slow", async () => {
    const { child, client } = await served();
    rmSync(directory, { recursive: true });
    await saveStreet(client, "Street");
    const second = carillonCity();
    expect(await text(second.stderr as NodeJS.ReadableStream)).to.include("is in use by another Carillon");
    expect(await end(child, "SIGTERM")).to.equal(0);
    expect(await segmentNames((await served()).client)).to.include("Agent Street");
  });

  it("names the limit of open files in one line if it is too low to start", async () => {
    // Node 20 opens many of the program's files at once, later versions one after the other.
    const limit = process.versions.node.startsWith("20.") ? 48 : 22;
    const child = started("sh", [
      "-c",
      `ulimit -n ${limit}; exec "${process.execPath}" "${cli}" city --port 0`,
    ]);
    const [complaint, [code]] = await Promise.all([
      text(child.stderr as NodeJS.ReadableStream),
      once(child, "exit"),
    ]);
    expect(code).to.equal(1);
    expect(complaint).to.match(/^carillon: the limit of open files is too low: .*ulimit -n 1024.*\n$/);
  });

  const savedNames = async (client: BridgeClient) =>
    (await client.state("/state/saves")).saves.map(({ name }: Answer) => name as string);
  const segmentNames = async (client: BridgeClient) =>
    (await client.state("/state/networks")).segments.map(({ name }: Answer) => name as string);

  it("resumes the last city by default; CITY_NEW=true starts a new one", async () => {
    const first = await served();
    await first.client.run("set-simulation-speed", { paused: true });
    await first.client.road(0, 0, 80, 0, { name: "Agent First" });
    const before = await everything(first.client);
    expect(await end(first.child, "SIGTERM")).to.equal(0);
    const second = await served();
    const after = await everything(second.client);
    expect({ ...after, "/state/saves": 0 }).to.deep.equal({ ...before, "/state/saves": 0 });
    const kept = await savedNames(second.client);
    expect(await end(second.child, "SIGINT")).to.equal(0);

    settings = { CITY_NEW: "true" };
    const third = await served();
    expect(await segmentNames(third.client)).to.not.include("Agent First");
    expect(await savedNames(third.client)).to.include.members(kept);
    expect(await end(third.child, "SIGTERM")).to.equal(0);
    for (const name of kept) await loadWorld(join(directory, `${name}.crp`));
    const fourth = await served("--load", join(directory, `${kept[0]}.crp`));
    expect(await segmentNames(fourth.client)).to.include("Agent First");
  });

  it("reports a damaged newest save, keeps the damaged file, and resumes the save before it @slow", async () => {
    const { child, client } = await served();
    await client.run("set-simulation-speed", { paused: true });
    await client.road(0, 0, 80, 0, { name: "Agent Kept" });
    const kept = await client.save("Kept");
    await client.road(0, 200, 80, 200, { name: "Agent Lost" });
    await end(child, "SIGTERM");
    const newest = newestSave(directory);
    expect(newest).to.not.equal(kept);
    truncateSync(newest, 700);
    const damaged = readFileSync(newest);
    const again = carillonCity();
    const [complaint, next] = await Promise.all([firstError(again), clientOf(again)]);
    expect(complaint).to.include(newest).and.include("truncated");
    expect(await segmentNames(next))
      .to.include("Agent Kept")
      .and.not.include("Agent Lost");
    await end(again, "SIGTERM");
    expect(readFileSync(newest)).to.deep.equal(damaged);
    const { client: last } = await served();
    expect(await segmentNames(last)).to.include("Agent Kept");
  });

  it("resumes the newest intact save after stops and kills, and keeps saves of other cities @slow", async () => {
    const other = join(directory, "Other.crp");
    const { child, client } = await served();
    await saveStreet(client, "Other");
    await end(child, "SIGKILL");
    const bytes = readFileSync(other);
    settings = { CITY_AUTOSAVE_SECONDS: "0.1" };
    for (const [life, signal] of (["SIGKILL", "SIGTERM", "SIGKILL", "SIGKILL"] as const).entries()) {
      const newest = await loadWorld(newestSave(directory));
      const { child, client } = await served();
      const { buildIndex } = await client.state("/state/summary");
      expect(buildIndex).to.equal(newest.buildIndex);
      expect(await segmentNames(client)).to.deep.equal(newest.segments.all().map(({ name }) => name));
      for (let i = 0; i < 15; i++) await client.road(0, 400 * life + 20 * i, 80, 400 * life + 20 * i);
      await end(child, signal);
      if (signal === "SIGTERM") {
        expect((await loadWorld(newestSave(directory))).buildIndex).to.be.above(buildIndex + 15);
      }
      const automatic = readdirSync(directory).filter((name) => /^AutoSave .*\.crp$/.test(name));
      expect(new Set(automatic.map((name) => name.split(" ")[1])).size).to.equal(1);
      expect(automatic).to.have.length.at.most(5);
      expect(readFileSync(other)).to.deep.equal(bytes);
    }
  });

  it("a bridge with a small heap survives stalled event readers and prefab names of 4 MB @slow", async () => {
    settings = { NODE_OPTIONS: "--max-old-space-size=192" };
    const { client } = await served();
    const { hostname, port } = new URL(client.url);
    const readers = Array.from({ length: 20 }, () => {
      const socket = connect(Number(port), hostname).pause();
      socket.on("error", () => {});
      socket.write("GET /overlay/events HTTP/1.1\r\nHost: localhost\r\n\r\n");
      return socket;
    });
    const body = JSON.stringify({ buildingPrefab: "x".repeat(4_000_000), position: { x: 0, z: 0 } });
    for (let i = 0; i < 100; i++) {
      expect((await client.postText("place-building", body)).status).to.equal(500);
    }
    expect((await client.get("/health")).status).to.equal(200);
    for (const socket of readers) socket.destroy();
  });
});

function newestSave(directory: string): string {
  const paths = readdirSync(directory)
    .filter((name) => name.endsWith(".crp"))
    .map((name) => join(directory, name));
  return paths.sort((a, b) => statSync(b).mtimeMs - statSync(a).mtimeMs)[0] as string;
}

/** Waits for the first error in the log and returns it. */
async function firstError(child: ChildProcess): Promise<string> {
  for await (const line of createInterface({ input: child.stderr as NodeJS.ReadableStream })) {
    if (line.includes('"level":50')) return line;
  }
  return "";
}
