import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { expect } from "chai";
import { embeddedRoutes } from "../../src/city/embedded-routes.js";
import { Overlay } from "../../src/city/overlay.js";
import { type BridgeServer, startServer } from "../../src/city/server.js";
import { EmbeddedGame } from "../../src/city/simulation/embedded-game.js";
import { bridgeForEach, eventually, SILENT } from "./bridge.js";

describe("lines of the overlay", () => {
  it("the overlay shows the last five lines for six seconds, and keeps the last 120 lines in the console", () => {
    let nowMs = new Date(2026, 0, 2, 3, 4, 5).getTime();
    const overlay = new Overlay(() => nowMs);
    for (let i = 1; i <= 130; i++) overlay.notify(`line ${i}`);
    const texts = () => overlay.visible().map(({ text }) => text);
    expect(texts()).to.deep.equal(["line 130", "line 129", "line 128", "line 127", "line 126"]);
    nowMs += 4000;
    overlay.notify("later");
    nowMs += 1999;
    expect(texts()).to.deep.equal(["later", "line 130", "line 129", "line 128", "line 127"]);
    nowMs += 1;
    expect(texts()).to.deep.equal(["later"]);
    nowMs += 4000;
    expect(texts()).to.deep.equal([]);
    expect(overlay.console()).to.have.length(120);
    expect(overlay.console()[0]).to.equal("[03:04:09] later");
    expect(overlay.console()[119]).to.equal("[03:04:05] line 12");
    overlay.notify("x".repeat(200));
    expect(overlay.console()[0])
      .to.have.length(78)
      .and.to.match(/^\[03:04:15\] x+\.\.\.$/);
    overlay.clear();
    expect([overlay.console(), texts()]).to.deep.equal([[], []]);
  });
});

describe("overlay lines that the bridge writes", () => {
  const bridge = bridgeForEach();
  const shown = async () => (await bridge.client.state("/overlay")).messages as string[];

  it("the overlay shows every request to the city with its outcome", async () => {
    const { client } = bridge;
    expect(await shown()).to.deep.equal(["API ready: Skylines Agent Bridge"]);
    await client.get("/health");
    await client.get("/nope");
    await fetch(`${client.url}/commands/save`, { method: "OPTIONS" });
    expect(await shown()).to.have.length(1);
    await client.road(0, 0, 80, 0);
    await client.refusal("build-network", {});
    await client.post("bulldoze", { entityType: "netNode", id: 44 });
    await client.post("batch", { commands: [{ type: "fly" }] });
    await client.postText("set-zone", "{broken");
    expect(await shown()).to.deep.equal([
      "API FAIL: Set zone zone",
      "API OK: Run batch commands",
      "API FAIL: Bulldoze netNode #44",
      "API FAIL: Build network network",
      "API OK: Build network network",
    ]);
  });

  it("the overlay describes each kind of request in words", async () => {
    const { client } = bridge;
    for (const [path, label] of [
      ["/state/summary", "Read city summary"],
      ["/state/problems", "Read city problems"],
      ["/state/demand", "Read zone demand"],
      ["/state/chirps", "Read citizen chirps"],
      ["/state/zones", "Read zoning summary"],
      ["/state/economy", "Read economy state"],
      ["/state/facilities", "Read facilities"],
      ["/state/growables", "Read growable buildings"],
      ["/state/networks", "Read networks"],
      ["/state/road-anomalies", "Inspect road anomalies"],
      ["/state/external-connections", "Inspect external connections"],
      ["/state/building-anomalies", "Inspect building placement"],
      ["/state/zone-anomalies", "Inspect zoning anomalies"],
      ["/state/saves", "List saves"],
      ["/prefabs/roads", "List road prefabs"],
      ["/prefabs/networks", "List network prefabs"],
      ["/prefabs/buildings", "List building prefabs"],
    ] as const) {
      await client.get(path);
      expect((await shown())[0]).to.equal(`API OK: ${label}`);
    }
    for (const [command, body, line] of [
      ["build-road", { roadPrefab: "Basic Road", end: { x: 80 } }, "OK: Build network Basic Road"],
      ["set-zone", { zone: "Office" }, "OK: Set zone Office"],
      ["repair-zones-to-growables", {}, "OK: Repair zones to growables"],
      ["repair-zone-clusters", {}, "OK: Repair zone clusters"],
      ["place-building", { buildingPrefab: "Wind Turbine" }, "OK: Place building Wind Turbine"],
      ["place-building", {}, "FAIL: Place building building"],
      ["move-building", { id: 1, position: { x: 50 } }, "OK: Move building #1"],
      ["set-building-active", { id: 2 }, "OK: Set building active #2"],
      ["disable-blocked-assets", {}, "OK: Disable blocked assets"],
      ["bulldoze", { entityType: "building", id: 2 }, "OK: Bulldoze building #2"],
      ["bulldoze", {}, "FAIL: Bulldoze entity #0"],
      ["save", { name: "a/b" }, "OK: Save city a/b"],
      ["set-simulation-speed", { paused: true, speed: 2 }, "OK: Pause simulation"],
      ["set-simulation-speed", { speed: 9 }, "OK: Set simulation speed 9"],
      ["set-simulation-speed", { paused: true }, "OK: Pause simulation"],
      ["set-tax-rate", { rate: 11.7 }, "OK: Set tax rate 11"],
      ["set-tax-rate", {}, "FAIL: Set tax rate -1"],
    ] as const) {
      await client.post(command, body);
      expect((await shown())[0]).to.equal(`API ${line}`);
    }
  });

  it("the overlay drops lines after some seconds, but keeps them in the console @slow", async () => {
    for (let i = 0; i < 7; i++) await bridge.client.state("/state/demand");
    expect(await shown()).to.have.length(5);
    await eventually(shown, (lines) => lines.length === 0);
    expect((await bridge.client.state("/overlay")).console).to.have.length(8);
  });

  it("the overlay is cleared when the city is unloaded", async () => {
    await bridge.client.state("/state/demand");
    bridge.game.unloadCity();
    expect(await bridge.client.state("/overlay")).to.deep.equal({ ok: true, messages: [], console: [] });
  });

  it("the overlay streams new lines to its readers", async () => {
    const stream = await fetch(`${bridge.client.url}/overlay/events`);
    expect(stream.headers.get("content-type")).to.equal("text/event-stream");
    const reader = (stream.body as ReadableStream<Uint8Array>).getReader();
    let received = "";
    const receive = async (text: string) => {
      while (!received.includes(text)) received += Buffer.from((await reader.read()).value ?? []).toString();
    };
    await receive("API ready");
    await bridge.client.state("/state/demand");
    await receive("API OK: Read zone demand");
    expect(received).to.match(/^data: \{"text":"API ready: Skylines Agent Bridge","shownAtMs":\d+\}\n\n/);
    await reader.cancel();
  });
});

describe("limits on readers of the overlay", () => {
  const MAX_READERS = 64;
  let overlay: Overlay;
  let server: BridgeServer;
  let closing: AbortController;

  beforeEach(async () => {
    overlay = new Overlay();
    closing = new AbortController();
    const game = new EmbeddedGame({ savesDirectory: "unused", onSaveFailed: () => {} });
    server = await startServer(embeddedRoutes(game, overlay, closing.signal), {
      port: 0,
      allowedOrigins: [],
      log: SILENT,
    });
  });
  afterEach(async () => {
    closing.abort();
    await server.close();
  });

  const follow = () => fetch(`${server.url}/overlay/events`);

  it("readers receive lines of bounded length", () => {
    overlay.notify("x".repeat(4_000_000));
    expect(overlay.visible()[0]?.text).to.match(/^x{237}\.\.\.$/);
  });

  it("readers are disconnected if they stall, without affecting others", async () => {
    const idle = connect(Number(new URL(server.url).port), "127.0.0.1");
    idle.pause();
    idle.on("error", () => {});
    idle.write("GET /overlay/events HTTP/1.1\r\nHost: localhost\r\n\r\n");
    const reader = ((await follow()).body as ReadableStream<Uint8Array>).getReader();
    let received = "";
    const receive = async (text: string) => {
      while (!received.includes(text)) {
        received = received.slice(-text.length) + Buffer.from((await reader.read()).value ?? []).toString();
      }
    };
    // The lines exceed what the operating system buffers for a connection.
    for (let i = 0; i < 200; i++) {
      for (let j = 0; j < 300; j++) overlay.notify("x".repeat(200));
      overlay.notify(`round ${i} ends`);
      await receive(`round ${i} ends`);
    }
    await reader.cancel();
    idle.resume();
    expect(await text(idle).catch(() => "reset")).to.not.include("round 199 ends");
  });

  it("the number of readers is limited; when one disconnects, another can connect", async () => {
    const streams = await Promise.all(Array.from({ length: MAX_READERS }, follow));
    expect(new Set(streams.map(({ status }) => status))).to.deep.equal(new Set([200]));
    const refused = await follow();
    expect(refused.status).to.equal(503);
    expect(((await refused.json()) as { error: string }).error).to.include(String(MAX_READERS));
    await streams[0]?.body?.cancel();
    const next = await eventually(follow, ({ status }) => status === 200);
    await Promise.all([next, ...streams.slice(1)].map(({ body }) => body?.cancel()));
  });

  it("readers receive nothing after their stream has ended", async () => {
    const stream = await follow();
    closing.abort();
    overlay.notify("too late");
    expect(await stream.text()).to.not.include("too late");
  });
});
