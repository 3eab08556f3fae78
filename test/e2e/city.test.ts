import { readdirSync, readFileSync } from "node:fs";
import { connect } from "node:net";
import { expect } from "chai";
import { type Answer, BridgeClient, eventually } from "../city/bridge.js";
import { shortSong } from "../music/live-server.js";
import { temporaryDirectory } from "../music/tasks.js";
import { endServed, ServedProcess } from "./served-process.js";

describe("a city that runs next to the music service", () => {
  const segmentNames = async (city: BridgeClient) =>
    (await city.state("/state/networks")).segments.map(({ name }: Answer) => name as string);

  afterEach(endServed);

  it("a crash of the city does not affect the music service; the city restarts at its address @slow", async () => {
    const server = await ServedProcess.startWithCity(temporaryDirectory());
    const city = new BridgeClient(server.cityUrl);
    await city.run("set-simulation-speed", { paused: true });
    const song = await server.client.submit(shortSong);
    await server.client.untilStarted(song);
    process.kill(server.cityProcessId(), "SIGKILL");
    await city.untilAnswers(false);
    expect((await server.client.get("/health")).status).to.equal(200);
    expect((await server.client.finished(song)).item.status).to.equal(1);
    await city.untilAnswers();
    await city.road(0, 0, 80, 0, { name: "Agent Again" });
    expect(await server.end("SIGTERM")).to.equal(0);
    expect(await city.answers()).to.equal(false);
  });

  it("the music service starts without a city that dies while it starts, and the city follows", async () => {
    const directory = temporaryDirectory();
    const starting = ServedProcess.startWithCity(directory);
    process.kill(await startingCity(directory), "SIGKILL");
    const server = await starting;
    expect(server.cityUrl).to.equal("");
    expect((await server.client.get("/health")).status).to.equal(200);
    expect(server.log).to.include("the city cannot start, so the server runs without it");
    const log = await eventually(
      async () => server.log,
      (text) => text.includes("city restarted at"),
    );
    const [, url] = /city restarted at (http:[^\s"]+)/.exec(log) as RegExpExecArray;
    expect(await new BridgeClient(url as string).answers()).to.equal(true);
    expect(await server.end("SIGTERM")).to.equal(0);
  });

  /** Process id of the city of the server that uses this directory, as soon as it exists. */
  function startingCity(directory: string): Promise<number> {
    const find = async () => {
      const ids = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
      return Number(ids.find((id) => isCity(id, directory)));
    };
    return eventually(find, (id) => id > 0, 5);
  }

  function isCity(id: string, directory: string): boolean {
    try {
      const isChild = readFileSync(`/proc/${id}/cmdline`, "utf8").includes("--for-parent");
      return isChild && readFileSync(`/proc/${id}/environ`, "utf8").includes(directory);
    } catch {
      return false;
    }
  }

  it("city and music recover after either process was killed or stopped during a request @slow", async () => {
    const directory = temporaryDirectory();
    const first = await ServedProcess.startWithCity(directory);
    await new BridgeClient(first.cityUrl).road(0, 0, 80, 0, { name: "Agent Killed" });
    await first.end("SIGKILL");
    const second = await ServedProcess.startWithCity(directory);
    const city = new BridgeClient(second.cityUrl);
    expect(await segmentNames(city)).to.include("Agent Killed");
    await city.road(0, 200, 80, 200, { name: "Agent Stopped" });
    const half = connect(Number(new URL(second.cityUrl).port), "127.0.0.1");
    half.on("error", () => {});
    await new Promise((resolve) => half.on("connect", resolve));
    half.write("POST /commands/save HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{");
    expect(await second.end("SIGTERM")).to.equal(0);
    const third = await ServedProcess.startWithCity(directory);
    expect(await segmentNames(new BridgeClient(third.cityUrl))).to.include.members([
      "Agent Killed",
      "Agent Stopped",
    ]);
    expect(await third.end("SIGINT")).to.equal(0);
  });
});
