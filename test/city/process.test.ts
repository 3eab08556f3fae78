/** Tests the real city in a child process, started as `carillon serve` starts it. */
import { fork } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { connect } from "node:net";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { CityProcess } from "../../src/city/process.js";
import { createLogger } from "../../src/system/log.js";
import { freePort, listenLocally } from "../local-server.js";
import { temporaryDirectory } from "../music/tasks.js";
import { type Answer, BridgeClient } from "./bridge.js";

const cli = fileURLToPath(new URL("../../dist/cli/main.js", import.meta.url));
const command = [cli, "city", "--for-parent"] as const;

describe("start, crash and exit of the city process", function () {
  this.timeout(120_000);
  const { execArgv } = process;
  let directory: string;
  let city: CityProcess | undefined;

  // Otherwise the child would inherit the tsx loader, which the compiled city does not need.
  before(() => {
    process.execArgv = [];
  });
  after(() => {
    process.execArgv = execArgv;
  });

  beforeEach(() => {
    directory = temporaryDirectory();
    city = undefined;
  });
  afterEach(() => city?.close());

  async function start(settings: Record<string, string> = {}): Promise<BridgeClient> {
    const environment = {
      ...process.env,
      CITY_SAVES_DIR: directory,
      CITY_BRIDGE_PORT: String(await freePort()),
      SVC_LOG_LEVEL: "silent",
      ...settings,
    };
    const started = new CityProcess({ command, environment, log: createLogger("silent") });
    const url = await started.start();
    city = started;
    return new BridgeClient(url);
  }

  const roads = async (client: BridgeClient) =>
    (await client.state("/state/networks?service=Road")).segments.map(({ name }: Answer) => name as string);

  /** Process id of the child that serves the city. */
  function processId(): number {
    const children = readFileSync(`/proc/${process.pid}/task/${process.pid}/children`, "utf8");
    const found = children
      .trim()
      .split(" ")
      .map(Number)
      .find((id) => readFileSync(`/proc/${id}/cmdline`, "utf8").includes("--for-parent"));
    if (found === undefined) throw new Error("the city has no process");
    return found;
  }

  it("the city restarts after every crash, at the same address and from the last save @slow", async () => {
    const client = await start({ CITY_NEW: "true" });
    await client.run("set-simulation-speed", { paused: true });
    for (const life of [1, 2]) {
      await client.road(0, life * 100, 80, life * 100, { name: `Agent Kept ${life}` });
      await client.save(`Life ${life}`);
      await client.road(0, 1000, 80, 1000, { name: "Agent Lost" });
      const killed = processId();
      process.kill(killed, "SIGKILL");
      await client.untilAnswers(false);
      await client.untilAnswers();
      expect(processId()).to.not.equal(killed);
      expect(await roads(client))
        .to.include(`Agent Kept ${life}`)
        .and.not.include("Agent Lost");
    }
  });

  it("reports a failed start in one line", async () => {
    const taken = createServer();
    const { port } = await listenLocally(taken);
    for (const [settings, complaint] of [
      [{ CITY_BRIDGE_PORT: String(port) }, /^CITY_BRIDGE_PORT: port \d+ is taken, .*$/],
      [{ CITY_GAME_URL: "ftp://127.0.0.1" }, /^CITY_GAME_URL must begin with .*$/],
    ] as const) {
      const failure = await start(settings).catch((error: Error) => error);
      expect(failure).to.be.instanceOf(Error);
      expect((failure as Error).message).to.match(complaint);
    }
    taken.close();
    await start();
    const second = await start().catch((error: Error) => error);
    expect((second as Error).message).to.match(
      /^\S+ is in use by another Carillon server\. .*CITY_SAVES_DIR.*$/,
    );
  });

  it("the city saves and exits when asked to, even if a client has sent only half a request", async () => {
    const client = await start();
    await client.road(0, 0, 80, 0, { name: "Agent Last" });
    const { hostname, port } = new URL(client.url);
    const half = connect(Number(port), hostname);
    half.on("error", () => {});
    const cut = new Promise((resolve) => half.on("close", resolve));
    await once(half, "connect");
    half.write("POST /commands/save HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{");
    await city?.close();
    await cut;
    expect(await roads(await start())).to.include("Agent Last");
  });

  it("the city saves and exits when its parent process is killed @slow", async () => {
    const parent = fork(fileURLToPath(new URL("./city-parent.ts", import.meta.url)), [], {
      execArgv,
      env: { ...process.env, CITY_SAVES_DIR: directory, CITY_BRIDGE_PORT: "0", SVC_LOG_LEVEL: "silent" },
    });
    const [url] = (await once(parent, "message")) as [string];
    const client = new BridgeClient(url);
    await client.road(0, 0, 80, 0, { name: "Agent Orphan" });
    parent.kill("SIGKILL");
    // The new city waits until the orphaned one has ended.
    expect(await roads(await start())).to.include("Agent Orphan");
    expect(await client.answers()).to.equal(false);
    expect(readdirSync(directory).filter((name) => name.endsWith(".part"))).to.deep.equal([]);
  });
});
