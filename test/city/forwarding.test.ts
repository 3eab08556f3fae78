import { once } from "node:events";
import { createServer, type IncomingMessage, type Server } from "node:http";
import { createServer as createTcpServer } from "node:net";
import { buffer } from "node:stream/consumers";
import { expect } from "chai";
import { startCity } from "../../src/city/index.js";
import type { BridgeServer } from "../../src/city/server.js";
import { loadConfig } from "../../src/config.js";
import { failureOf } from "../failures.js";
import { listenLocally } from "../local-server.js";
import { BridgeClient, bridgeForEach, eventually, SILENT } from "./bridge.js";
import { advance, smallTown } from "./simulation/towns.js";

async function startForwarding(gameUrl: string, settings: object = {}): Promise<BridgeServer> {
  return startCity(loadConfig({ CITY_BRIDGE_PORT: "0", CITY_GAME_URL: gameUrl, ...settings }), SILENT);
}

async function textOf(url: string, path: string): Promise<[number, string | null, string]> {
  const response = await fetch(url + path);
  return [response.status, response.headers.get("content-type"), await response.text()];
}

describe("a bridge in front of a running game", () => {
  const game = bridgeForEach({ map: "highway" });
  let front: BridgeServer;
  let client: BridgeClient;

  beforeEach(async () => {
    front = await startForwarding(game.client.url);
    client = new BridgeClient(front.url);
  });
  afterEach(() => front.close());

  it("forwards responses byte for byte, including errors", async () => {
    smallTown(game.city);
    advance(game.city, 6000);
    for (const { id, prefab } of game.city.buildings.all()) {
      if (prefab.service === "Electricity") await client.run("bulldoze", { entityType: "building", id });
    }
    advance(game.city, 40_000);
    for (const path of [
      "/health",
      "/state/summary",
      "/state/problems?limit=1000",
      "/state/growables?service=Residential&limit=3",
      "/prefabs/buildings",
      "/nope",
      "/state/summary/",
    ]) {
      expect(await textOf(front.url, path)).to.deep.equal(await textOf(game.client.url, path));
    }
    const [, , problems] = await textOf(front.url, "/state/problems?limit=1000");
    expect(problems).to.match(/"problem1Raw":[1-9]\d{15,}/);
    game.game.unloadCity();
    expect(await client.get("/state/demand")).to.deep.equal({
      status: 409,
      body: { ok: false, error: "No city is loaded." },
    });
  });

  it("forwards each command once", async () => {
    expect(await client.road(0, 0, 80, 0, { name: "Agent Ä" })).to.include({ ok: true });
    expect(game.city.segments.all().at(-1)?.name).to.equal("Agent Ä");
    expect(await client.refusal("build-road", { roadPrefab: "Nope" })).to.include("Nope");
    expect((await client.postText("build-road", "{broken")).status).to.equal(400);
  });

  it("answers OPTIONS itself and rejects foreign hosts", async () => {
    const options = await fetch(`${front.url}/commands/save`, { method: "OPTIONS" });
    expect([options.status, await options.text()]).to.deep.equal([200, '{"ok":true}']);
  });
});

describe("a bridge that forwards to a strict or unresponsive game", () => {
  let upstream: Server;
  let url: string;
  let seen: IncomingMessage[];
  let bodies: string[];
  let isHanging: boolean;

  beforeEach(async () => {
    seen = [];
    isHanging = false;
    bodies = [];
    upstream = createServer(async (request, response) => {
      seen.push(request);
      bodies.push((await buffer(request)).toString());
      if (request.headers.origin !== undefined) response.writeHead(403).end();
      else if (request.url === "/broken") response.destroy();
      else if (request.url === "/silent" || (isHanging && request.url === "/health")) return;
      else if (request.url === "/page")
        response.writeHead(200, { "Content-Type": "text/html" }).end("<html>");
      else {
        response.writeHead(200, {
          "Content-Type": "image/png",
          "X-Bridge-Info-Mode": "None",
          "X-Other": "1",
        });
        response.end(Buffer.from([0xff, 0xfe, 0]));
      }
    });
    ({ url } = await listenLocally(upstream));
  });
  afterEach(() => upstream.close());

  it("forwards plain requests and returns the game's responses", async () => {
    const front = await startForwarding(url, { CITY_ALLOWED_ORIGINS: "https://page.example" });
    try {
      const response = await fetch(`${front.url}/capture?x=%20a&y`, {
        method: "POST",
        headers: { Origin: "https://page.example", Cookie: "a=b", "Content-Type": "text/plain" },
        body: '{ "spaced" :1}',
      });
      expect(response.status).to.equal(200);
      expect([...new Uint8Array(await response.arrayBuffer())]).to.deep.equal([0xff, 0xfe, 0]);
      expect(response.headers.get("content-type")).to.equal("image/png");
      expect(response.headers.get("x-bridge-info-mode")).to.equal("None");
      expect(response.headers.get("x-other")).to.equal(null);
      expect(response.headers.get("access-control-allow-origin")).to.equal("https://page.example");
      expect(seen[0]?.url).to.equal("/capture?x=%20a&y");
      expect(bodies[0]).to.equal('{ "spaced" :1}');
      expect(seen[0]?.headers).to.include({ "content-type": "application/json", "content-length": "14" });
      expect(seen[0]?.headers).to.not.have.any.keys(
        "origin",
        "cookie",
        "referer",
        "transfer-encoding",
        "expect",
      );
    } finally {
      await front.close();
    }
  });

  it("forwards reads from any page, but commands only from its own page", async () => {
    const front = await startForwarding(url);
    const ask = (path: string, method: string, origin: string) =>
      fetch(front.url + path, { method, headers: { Origin: origin, "Content-Type": "text/plain" } });
    try {
      expect((await ask("/state/summary", "GET", "https://page.example")).status).to.equal(200);
      expect(seen.map((request) => request.method)).to.deep.equal(["GET"]);
      for (const origin of ["https://page.example", "null", "http://localhost:5173"]) {
        expect((await ask("/commands/bulldoze", "POST", origin)).status).to.equal(403);
      }
      expect(seen).to.have.length(1);
      expect((await ask("/commands/bulldoze", "POST", front.url)).status).to.equal(200);
      expect(seen[1]?.headers).to.not.have.property("origin");
    } finally {
      await front.close();
    }
  });

  it("answers 502 and does not retry if the game disconnects or is down", async () => {
    const front = await startForwarding(url);
    const client = new BridgeClient(front.url);
    try {
      expect((await client.get("/broken")).status).to.equal(502);
      expect(seen).to.have.length(1);
      await new Promise((resolve) => upstream.close(resolve));
      const { status, body } = await client.post("build-road", {});
      expect([status, body.ok]).to.deep.equal([502, false]);
      expect(body.error).to.include(url).and.include("ECONNREFUSED");
      const health = (await client.get("/health")).body;
      expect(health).to.include({ ok: true, levelLoaded: false, mode: "proxy" });
      expect(health.reason).to.include("ECONNREFUSED");
    } finally {
      await front.close();
    }
  });

  it("reports no city in /health while the game hangs", async () => {
    isHanging = true;
    const front = await startForwarding(url);
    try {
      const health = (await new BridgeClient(front.url).get("/health")).body;
      expect(health).to.include({ ok: true, levelLoaded: false, mode: "proxy" });
      expect(health.reason).to.include(url);
    } finally {
      await front.close();
    }
  });

  it("answers 502 when the game switches protocols or closes without an answer, and stays available", async () => {
    const raw = createTcpServer((socket) => {
      socket.on("error", () => {});
      socket.once("data", (bytes) =>
        bytes.toString().includes("/upgrade")
          ? socket.write("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n")
          : socket.end(),
      );
    });
    const front = await startForwarding((await listenLocally(raw)).url);
    try {
      const client = new BridgeClient(front.url);
      for (const [path, reason] of [
        ["/upgrade", "101 Switching Protocols"],
        ["/closed", "does not answer"],
      ] as const) {
        const { status, body } = await client.get(path);
        expect(status).to.equal(502);
        expect(body.error).to.include(reason);
      }
    } finally {
      await front.close();
      raw.close();
    }
  });

  for (const part of ["headers", "body"]) {
    it(`reports no city in /health while the game sends its ${part} a byte at a time`, async () => {
      const raw = createTcpServer((socket) => {
        socket.on("error", () => {});
        socket.write("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n");
        if (part === "body") socket.write("\r\n");
        const dripping = setInterval(() => socket.write("x"), 100);
        socket.on("close", () => clearInterval(dripping));
      });
      const front = await startForwarding((await listenLocally(raw)).url);
      try {
        const health = (await new BridgeClient(front.url).get("/health")).body;
        expect(health).to.include({ ok: true, levelLoaded: false, mode: "proxy" });
        expect(health.reason).to.include("no complete answer within");
      } finally {
        await front.close();
        raw.close();
      }
    });
  }

  it("answers 502 when the game returns a web page", async () => {
    const front = await startForwarding(url);
    try {
      const { status, body } = await new BridgeClient(front.url).get("/page");
      expect([status, body.ok]).to.deep.equal([502, false]);
      expect(body.error).to.include("web page").and.include("CITY_GAME_URL");
    } finally {
      await front.close();
    }
  });

  it("the bridge closes without waiting for a pending response of the game", async () => {
    const front = await startForwarding(url);
    const answer = fetch(`${front.url}/silent`).catch((error: Error) => error);
    const question = await eventually(
      async () => seen[0],
      (request) => request !== undefined,
    );
    const left = once((question as IncomingMessage).socket, "close");
    await front.close();
    await left;
    expect(await answer).to.be.instanceOf(Error);
  });

  it("rejects invalid settings", async () => {
    const start = (settings: Record<string, string>, load?: string) =>
      failureOf(startCity(loadConfig(settings), SILENT, { load }));
    const loop = await start({ CITY_GAME_URL: "http://localhost:32123" });
    expect(loop.message).to.include("CITY_GAME_URL").and.include("32123");
    const scheme = await start({ CITY_GAME_URL: "ftp://127.0.0.1:9" });
    expect(scheme.message).to.include("CITY_GAME_URL").and.include("ftp");
    const load = await start({ CITY_GAME_URL: url, CITY_BRIDGE_PORT: "0" }, "city.crp");
    expect(load.message).to.include("CITY_GAME_URL");
  });
});
