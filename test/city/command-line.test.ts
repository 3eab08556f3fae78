import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { READ_ROUTES } from "../../src/city/routes.js";
import { loadWorld } from "../../src/city/simulation/saves/save-files.js";
import { type Answer, BridgeClient, eventually } from "./bridge.js";

const cli = fileURLToPath(new URL("../../src/cli.ts", import.meta.url));

describe("carillon city", () => {
  let directory: string;
  let settings: Record<string, string>;
  let children: ChildProcess[];

  beforeEach(() => {
    settings = {};
    directory = mkdtempSync(join(tmpdir(), "carillon-city-"));
    children = [];
  });
  afterEach(async () => {
    for (const child of children)
      if (child.exitCode === null && child.signalCode === null) await end(child, "SIGKILL");
    rmSync(directory, { recursive: true });
  });

  function carillonCity(...args: string[]): ChildProcess {
    const child = spawn(process.execPath, ["--import", "tsx", cli, "city", "--port", "0", ...args], {
      env: { ...process.env, CITY_SAVES_DIR: directory, ...settings },
      stdio: ["ignore", "pipe", "pipe"],
    });
    children.push(child);
    return child;
  }

  async function served(...args: string[]): Promise<{ child: ChildProcess; client: BridgeClient }> {
    const child = carillonCity(...args);
    for await (const line of createInterface({ input: child.stdout as NodeJS.ReadableStream })) {
      const url = /^city on (http:\S+)$/.exec(line)?.[1];
      if (url !== undefined) return { child, client: new BridgeClient(url) };
    }
    throw new Error(`it ended before it served: ${await text(child.stderr as NodeJS.ReadableStream)}`);
  }

  async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<number | null> {
    const ended = once(child, "exit");
    child.kill(signal);
    return ((await ended) as [number | null])[0];
  }

  /** Builds a street, stops the clock and saves; resolves with the file. */
  async function saveStreet(client: BridgeClient, name: string): Promise<string> {
    await client.run("set-simulation-speed", { paused: true });
    await client.road(0, 0, 80, 0, { name: "Agent Street" });
    await client.run("set-zone", { center: { x: 40, z: 0 } });
    const { path } = await client.run("save", { name });
    await eventually(
      () => client.state("/state/saves"),
      ({ saves }) => saves.some((save: Answer) => save.path === path),
    );
    return path;
  }

  async function everything(client: BridgeClient): Promise<Answer> {
    const states: Answer = {};
    for (const { path } of READ_ROUTES) states[path] = await client.state(path);
    return states;
  }

  it("goes on with exactly the saved city in a new process", async () => {
    const { child, client } = await served();
    const path = await saveStreet(client, "Street");
    const before = await everything(client);
    expect(await end(child, "SIGTERM")).to.equal(0);
    const again = await served("--load", path);
    expect(await everything(again.client)).to.deep.equal(before);
    expect(await end(again.child, "SIGINT")).to.equal(0);
  });

  it("loses nothing of the last good save when killed while it saves", async () => {
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
    expect(saves.map(({ name }: Answer) => name)).to.deep.equal(["Street"]);
  });

  it("refuses a file that is cut short, foreign or missing, and says why", async () => {
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
      [join(directory, "none.crp"), "ENOENT"],
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

  it("saves by itself, and leaves the automatic save of an earlier run alone", async () => {
    settings = { CITY_AUTOSAVE_SECONDS: "0.2" };
    const names = async (client: BridgeClient) =>
      (await client.state("/state/saves")).saves.map(({ name }: Answer) => name).sort();
    const first = await served();
    await first.client.road(0, 0, 80, 0, { name: "Agent First" });
    await eventually(
      () => names(first.client),
      (found) => found.includes("AutoSave"),
    );
    await end(first.child, "SIGTERM");
    const second = await served();
    const found = await eventually(
      () => names(second.client),
      ({ length }) => length === 2,
    );
    expect(found).to.deep.equal(["AutoSave", "AutoSave of the earlier run"]);
  });
});
