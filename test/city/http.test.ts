import { once } from "node:events";
import { Agent, request } from "node:http";
import { connect, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import { expect } from "chai";
import { pino } from "pino";
import { COMMAND_ROUTES, READ_ROUTES } from "../../src/city/embedded-routes.js";
import { startGameBridge } from "../../src/city/index.js";
import { EmbeddedGame } from "../../src/city/simulation/embedded-game.js";
import { tick } from "../../src/city/simulation/tick.js";
import { bridgeForEach, SILENT } from "./bridge.js";
import { fingerprint } from "./simulation/towns.js";

const STANDARD_HEADERS = {
  "content-type": "application/json; charset=utf-8",
  "access-control-allow-origin": "*",
  "access-control-allow-methods": "GET, POST, OPTIONS",
  "access-control-allow-headers": "Content-Type",
  connection: "close",
};

/** Sends a request exactly as given; fetch would not send every header. */
function ask(
  url: string,
  headers: Record<string, string>,
  method = "GET",
  body = "",
  agent: Agent | false = false,
) {
  return new Promise<{ status: number; headers: object; body: string }>((resolve, reject) => {
    const outgoing = request(url, { method, headers, agent }, async (response) => {
      resolve({ status: response.statusCode ?? 0, headers: response.headers, body: await text(response) });
    });
    outgoing.on("error", reject);
    outgoing.end(body);
  });
}

/** Sends raw bytes; resolves with all received bytes. */
async function sendRaw(url: string, bytes: string): Promise<string> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  socket.write(bytes);
  return text(socket);
}

describe("the city bridge over HTTP", () => {
  const bridge = bridgeForEach();

  it("reports health with and without a city", async () => {
    const port = Number(new URL(bridge.client.url).port);
    const offers = {
      capabilities: ["composite-commands", "node-snapping", "idempotent-ops", "capture"],
      defaultSpacing: 80,
      snapDistance: 8,
    };
    const health = {
      ok: true,
      mod: "Skylines Agent Bridge",
      levelLoaded: true,
      port,
      mode: "embedded",
      ...offers,
    };
    expect((await bridge.client.get("/health")).body).to.deep.equal(health);
    bridge.game.unloadCity();
    expect((await bridge.client.get("/health")).body).to.deep.equal({ ...health, levelLoaded: false });
  });

  it("exports clock, size and process metrics, and no city metrics without a city", async () => {
    const { url } = bridge.client;
    await bridge.client.road(0, 0, 96, 0);
    const time = /^carillon_city_time_seconds (\d+(?:\.\d+)?)$/m;
    const before = await ask(`${url}/metrics`, {});
    expect(before.headers).to.include({ "access-control-allow-origin": "*" });
    expect(before.body).to.match(
      new RegExp(`^carillon_city_segments ${bridge.city.segments.all().length}$`, "m"),
    );
    expect(before.body).to.match(/^process_resident_memory_bytes \d{7,}/m);
    tick(bridge.city);
    const after = await ask(`${url}/metrics`, {});
    expect(Number(time.exec(after.body)?.[1])).to.be.above(Number(time.exec(before.body)?.[1]));
    bridge.game.unloadCity();
    const without = await ask(`${url}/metrics`, {});
    expect([without.status, without.body.match(/^carillon_city_\w+ /m)]).to.deep.equal([200, null]);
  });

  it("sends the same headers with every response", async () => {
    const { url } = bridge.client;
    const ok = await ask(`${url}/state/summary`, {});
    const refused = await ask(`${url}/commands/bulldoze`, {}, "POST", "{}");
    const missing = await ask(`${url}/nope`, {});
    bridge.game.unloadCity();
    const unloaded = await ask(`${url}/state/summary`, {});
    const options = await ask(`${url}/commands/save`, {}, "OPTIONS");
    const statuses = [ok, refused, missing, unloaded, options].map(({ status }) => status);
    expect(statuses).to.deep.equal([200, 500, 404, 409, 200]);
    for (const { headers, body } of [ok, refused, missing, unloaded, options]) {
      expect(headers).to.include({ ...STANDARD_HEADERS, "content-length": String(Buffer.byteLength(body)) });
    }
    expect(options.body).to.equal('{"ok":true}');
  });

  it("answers 404 to other paths and methods, with or without a city", async () => {
    const { url } = bridge.client;
    for (const loaded of [true, false]) {
      if (!loaded) bridge.game.unloadCity();
      for (const [method, path] of [
        ["GET", "/nope"],
        ["GET", "/health/"],
        ["GET", "/State/summary"],
        ["GET", "/state/%73ummary"],
        ["GET", "/commands/save"],
        ["POST", "/state/summary"],
        ["PUT", "/commands/save"],
        ["DELETE", "/state/summary"],
      ] as const) {
        const { status, body } = await ask(url + path, {}, method);
        expect([path, status, body]).to.deep.equal([path, 404, '{"ok":false,"error":"Not found"}']);
      }
      expect((await ask(`${url}/health`, {}, "HEAD")).status).to.equal(404);
    }
  });

  it("answers 409 on every city route while no city is loaded", async () => {
    bridge.game.unloadCity();
    const answers = await Promise.all([
      ...READ_ROUTES.map(({ path }) => bridge.client.get(path)),
      ...COMMAND_ROUTES.filter(({ replacesCity }) => !replacesCity).map(({ path }) =>
        bridge.client.postText(path.replace("/commands/", ""), "{broken"),
      ),
    ]);
    for (const answer of answers) {
      expect(answer).to.deep.equal({ status: 409, body: { ok: false, error: "No city is loaded." } });
    }
  });

  it("rejects a body that is not a JSON object and changes nothing", async () => {
    const before = fingerprint(bridge.city);
    for (const broken of ["{", "[]", "null", "7", '{"start":{"x":0},}', "{'dryRun':true}", '{"a":NaN}']) {
      const { status, body } = await bridge.client.postText("build-road", broken);
      expect([broken, status, body.ok]).to.deep.equal([broken, 400, false]);
      expect(body.error).to.match(/JSON/);
    }
    expect(fingerprint(bridge.city)).to.equal(before);
  });

  it("treats an empty body as an empty object and tolerates invalid UTF-8", async () => {
    expect((await bridge.client.postText("set-simulation-speed", "")).body).to.include({ paused: false });
    const latin1 = Buffer.from('{"zone":"Büro"}', "latin1");
    const response = await fetch(`${bridge.client.url}/commands/set-zone`, { method: "POST", body: latin1 });
    expect(response.status).to.equal(500);
    expect(((await response.json()) as { error: string }).error).to.include("B\ufffdro");
  });

  it("accepts a body with any framing and content type", async () => {
    const dryRun = '{"dryRun":true,"end":{"x":80}}';
    const chunked = { "Transfer-Encoding": "chunked", "Content-Type": "application/x-www-form-urlencoded" };
    const expecting = { Expect: "100-continue", "Content-Length": String(dryRun.length) };
    for (const headers of [chunked, expecting]) {
      const { status, body } = await ask(
        `${bridge.client.url}/commands/build-road`,
        headers as Record<string, string>,
        "POST",
        dryRun,
      );
      expect([status, JSON.parse(body).dryRun]).to.deep.equal([200, true]);
    }
  });

  it("rejects bodies over 4 MiB and headers over 64 KiB with status 500", async () => {
    const { status, body } = await bridge.client.post("save", { name: "x".repeat(5 * 2 ** 20) });
    expect([status, body.ok]).to.deep.equal([500, false]);
    const answer = await sendRaw(
      bridge.client.url,
      `GET /health HTTP/1.1\r\nHost: localhost\r\nX: ${"y".repeat(70_000)}\r\n\r\n`,
    );
    expect(answer).to.match(/^HTTP\/1.1 500 /);
    expect(JSON.parse(answer.slice(answer.indexOf("{"))).ok).to.equal(false);
  });

  it("answers unreadable requests with an error and logs no stack trace", async () => {
    const lines: string[] = [];
    const log = pino({ level: "info" }, { write: (line: string) => lines.push(line) });
    const server = await startGameBridge(bridge.game, { port: 0, allowedOrigins: [], log });
    const build = `${server.url}/commands/build-road`;
    const before = fingerprint(bridge.city);
    const length = (text: string) => ({ "Content-Length": String(Buffer.byteLength(text)) });
    const huge = `{"name":"${"x".repeat(5 * 2 ** 20)}"}`;
    const answers = [
      await ask(build, { Expect: "a miracle", "Content-Length": "0" }, "POST"),
      await ask(build, length(huge), "POST", huge),
      await ask(build, { "Content-Encoding": "gzip" }, "POST", "no gzip"),
      await ask(build, { "Content-Encoding": "nonsense" }, "POST", "{}"),
      await ask(build, {}, "POST", '{"end":{"x":1e999}}'),
      await ask(build, {}, "POST", '{"end":{"x":"1e999"}}'),
      await ask(build, {}, "POST", '{"end":{"x":8641}}'),
      await ask(`${server.url}/commands/set-zone`, {}, "POST", '{"center":{"x":0,"z":-9000}}'),
    ];
    expect(answers.map(({ status }) => status)).to.deep.equal([417, 500, 500, 500, 500, 500, 500, 500]);
    const errors = [
      /a miracle/,
      /could not be read/,
      /could not/,
      /could not/,
      /Infinity/,
      /1e999/,
      /8641/,
      /-9000/,
    ];
    for (const [i, { headers, body }] of answers.entries()) {
      expect(headers).to.include({ ...STANDARD_HEADERS, "content-length": String(Buffer.byteLength(body)) });
      const { ok, error, ...rest } = JSON.parse(body);
      expect([ok, rest]).to.deep.equal([false, {}]);
      expect(error).to.match(errors[i] as RegExp);
    }
    const unread = await sendRaw(server.url, "GET / HTTP/9\r\n\r\n");
    expect(unread)
      .to.match(/^HTTP\/1.1 400 /)
      .and.match(/^Access-Control-Allow-Origin: \*\r$/m);
    await server.close();
    expect(lines.join("")).to.not.match(/\bat .*:\d+/);
    expect(fingerprint(bridge.city)).to.equal(before);
  });

  it("rejects deeply nested bodies and changes nothing", async () => {
    const nested = (levels: number, filling = "1") =>
      `{"zone":"[[{{","extra":${"[".repeat(levels - 1)}${filling}${"]".repeat(levels - 1)}}`;
    const before = fingerprint(bridge.city);
    for (const body of [
      nested(33),
      nested(2_000_000),
      `{"commands":${"[".repeat(4_000_000)}`,
      '{"a":'.repeat(700_000),
    ]) {
      const { status, body: answer } = await bridge.client.postText("batch", body);
      expect([status, answer]).to.deep.equal([
        400,
        { ok: false, error: "The body is nested deeper than 32 levels" },
      ]);
    }
    expect(fingerprint(bridge.city)).to.equal(before);
    for (const body of [nested(32), nested(2, `"${'[{\\"'.repeat(100)}"`)]) {
      const { error } = (await bridge.client.postText("set-zone", body)).body;
      expect(error).to.include("[[{{");
    }
  });

  it("parses numbers with a million digits quickly", async () => {
    const digits = "1".repeat(2 ** 20);
    for (const rate of [`${digits}x`, `${digits}.${digits}x`, `.${digits}e${digits}x`]) {
      expect(await bridge.client.refusal("set-tax-rate", { rate })).to.match(/^rate must be a number/);
    }
    const path = `/state/road-anomalies?nearMissDistance=${"1".repeat(60_000)}x`;
    expect((await bridge.client.get(path)).status).to.equal(200);
  });

  it("rejects text over a thousand characters with the field's name", async () => {
    for (const [command, field] of [
      ["build-road", "name"],
      ["place-building", "buildingPrefab"],
      ["set-zone", "zone"],
      ["save", "name"],
    ] as const) {
      const error = await bridge.client.refusal(command, { [field]: "x".repeat(1001) });
      expect(error).to.match(new RegExp(`^${field} must have at most 1000 characters, not "x+`));
      expect(error).to.have.length.below(200);
    }
  });

  it("answers invalid HTTP with an error and keeps running", async () => {
    expect(await sendRaw(bridge.client.url, "\x00\x01 nonsense\r\n\r\n")).to.match(/^HTTP\/1.1 400 /);
    expect((await bridge.client.get("/health")).status).to.equal(200);
  });

  it("answers ten thousand concurrent requests and runs each command once @slow", async function () {
    this.timeout(120_000);
    const before = bridge.city.buildIndex;
    // As many simultaneous connections as the system's listen backlog allows.
    const agent = new Agent({ maxSockets: 2000 });
    const requests = Array.from({ length: 10_000 }, (_, i) => {
      const z = i - 5000;
      const road = JSON.stringify({ start: { x: 0, z }, end: { x: 80, z } });
      return i % 10 === 0
        ? ask(`${bridge.client.url}/commands/build-road`, {}, "POST", road, agent)
        : ask(`${bridge.client.url}/state/demand`, {}, "GET", "", agent);
    });
    const answers = await Promise.all(requests);
    expect(answers.filter(({ status }) => status !== 200)).to.deep.equal([]);
    expect(bridge.city.buildIndex).to.equal(before + 1000 * 4);
  });
});

describe("closing of the city bridge", () => {
  it("closing a bridge ends incomplete requests, event streams and idle connections", async () => {
    const game = new EmbeddedGame({ savesDirectory: "unused", onSaveFailed: () => {} });
    game.startCity({ seed: 7, map: "empty", paused: true });
    const server = await startGameBridge(game, { port: 0, allowedOrigins: [], log: SILENT });
    const { hostname, port } = new URL(server.url);
    const ends: Promise<unknown>[] = [];
    const begun = (bytes: string, answer: string) =>
      new Promise<Socket>((resolve) => {
        const socket = connect({ port: Number(port), host: hostname, allowHalfOpen: true });
        ends.push(new Promise((end) => socket.resume().once("end", end).on("error", end)));
        if (answer === "") socket.on("connect", () => socket.write(bytes, () => resolve(socket)));
        else socket.on("connect", () => socket.write(bytes)).on("data", () => resolve(socket));
      });
    const sockets = await Promise.all([
      begun("", ""),
      begun("POST /commands/save HTTP/1.1\r\nHost: local", ""),
      begun("POST /commands/save HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{", ""),
      begun("no HTTP\r\n\r\n", "HTTP/1.1 500"),
      begun("GET /overlay/events HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP/1.1 200"),
      begun("GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP/1.1 200"),
    ]);
    await server.close();
    await Promise.all(ends);
    const [refusal] = await once(connect(Number(port), hostname), "error");
    expect(refusal.code).to.equal("ECONNREFUSED");
    await game.close();
    for (const socket of sockets) socket.destroy();
  });
});

describe("access control of the bridge", () => {
  const bridge = bridgeForEach();
  const strict = bridgeForEach({ allowedOrigins: ["https://friend.example"] });
  const open = bridgeForEach({ allowedOrigins: ["*"] });

  it("rejects every request for a foreign host name", async () => {
    const { port } = new URL(bridge.client.url);
    const statusFor = async (host: string) =>
      (await ask(`${bridge.client.url}/health`, { Host: host }, host.includes("options") ? "OPTIONS" : "GET"))
        .status;
    for (const host of ["localhost", `localhost:${port}`, `127.0.0.1:${port}`, "[::1]", "LOCALHOST:80"]) {
      expect([host, await statusFor(host)]).to.deep.equal([host, 200]);
    }
    for (const host of [
      "evil.example",
      `evil.example:${port}`,
      "options.example",
      "localhost.evil.example",
      "127.0.0.1.evil.example",
      "evil.example#localhost",
      "localhost.",
      "192.168.0.1",
      "0.0.0.0",
    ]) {
      expect([host, await statusFor(host)]).to.deep.equal([host, 403]);
    }
    expect(await sendRaw(bridge.client.url, "GET /health HTTP/1.0\r\n\r\n")).to.match(/^HTTP\/1.1 403 /);
    const twice = "GET /health HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n";
    expect(await sendRaw(bridge.client.url, twice)).to.match(/^HTTP\/1.1 400 /);
  });

  it("listens on loopback only, IPv4 and IPv6", async () => {
    const { port } = new URL(bridge.client.url);
    expect((await ask(`http://127.0.0.1:${port}/health`, {})).status).to.equal(200);
    const others = await ask(`http://127.0.0.2:${port}/health`, {}).catch(({ code }) => code);
    expect(others).to.equal("ECONNREFUSED");
  });

  it("lets any page read by default, but only its own page send commands", async () => {
    const { url } = bridge.client;
    const { port } = new URL(url);
    const before = fingerprint(bridge.city);
    const road = '{"end":{"x":80}}';
    for (const origin of [
      "https://any.example",
      "null",
      "http://localhost:5173",
      "http://127.0.0.1",
      `https://127.0.0.1:${port}`,
      `http://localhost:${port}`,
      "null",
      `http://127.0.0.1.evil.example:${port}`,
    ]) {
      for (const method of ["GET", "OPTIONS"]) {
        const answer = await ask(`${url}/state/demand`, { Origin: origin }, method);
        expect([origin, method, answer.status]).to.deep.equal([origin, method, 200]);
        expect(answer.headers).to.include({ "access-control-allow-origin": "*" });
      }
      // Content types that browsers send across sites without a preflight request.
      for (const type of [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
      ]) {
        const headers = { Origin: origin, "Content-Type": type };
        const { status, body } = await ask(`${url}/commands/build-road`, headers, "POST", road);
        expect([origin, type, status]).to.deep.equal([origin, type, 403]);
        expect(JSON.parse(body).error).to.include(origin).and.include("CITY_ALLOWED_ORIGINS");
      }
    }
    expect(fingerprint(bridge.city)).to.equal(before);
    for (const [headers, segments] of [
      [{ Origin: url }, 1],
      [{ Host: `localhost:${port}`, Origin: `http://localhost:${port}` }, 2],
      [{}, 3],
    ] as const) {
      const body = `{"start":{"z":${segments * 50}},"end":{"x":80,"z":${segments * 50}}}`;
      expect((await ask(`${url}/commands/build-road`, headers, "POST", body)).status).to.equal(200);
      expect(bridge.city.segments.all()).to.have.length(segments);
    }
    const rebound = { Host: `evil.example:${port}`, Origin: `http://evil.example:${port}` };
    expect((await ask(`${url}/commands/build-road`, rebound, "POST", road)).status).to.equal(403);
  });

  it("accepts commands only from its own page and configured origins", async () => {
    const { url } = strict.client;
    for (const origin of ["https://friend.example", url, "http://localhost:5173"]) {
      const answer = await ask(`${url}/state/demand`, { Origin: origin });
      expect(answer.status).to.equal(200);
      expect(answer.headers).to.include({ "access-control-allow-origin": origin, vary: "Origin" });
    }
    for (const [origin, status] of [
      ["https://friend.example", 200],
      [url, 200],
      ["http://localhost:5173", 403],
    ] as const) {
      const answer = await ask(`${url}/commands/set-simulation-speed`, { Origin: origin }, "POST", "{}");
      expect([origin, answer.status]).to.deep.equal([origin, status]);
    }
    for (const origin of ["https://foe.example", "null", "https://localhost.foe.example"]) {
      for (const method of ["GET", "POST", "OPTIONS"]) {
        const answer = await ask(`${url}/state/demand`, { Origin: origin }, method);
        expect([origin, method, answer.status]).to.deep.equal([origin, method, 403]);
        expect(answer.headers).to.not.have.property("access-control-allow-origin");
      }
    }
    const anonymous = await ask(`${url}/state/demand`, {});
    expect(anonymous.status).to.equal(200);
    expect(anonymous.headers).to.not.have.property("access-control-allow-origin");
  });

  it("accepts commands from any page if configured", async () => {
    for (const origin of ["https://any.example", "null"]) {
      const { url } = open.client;
      const answer = await ask(`${url}/commands/set-simulation-speed`, { Origin: origin }, "POST", "{}");
      expect(answer.status).to.equal(200);
      expect(answer.headers).to.include({ "access-control-allow-origin": "*" });
    }
  });

  it("reports a taken port and the setting that changes it", async () => {
    const port = Number(new URL(bridge.client.url).port);
    const game = new EmbeddedGame({ savesDirectory: bridge.savesDirectory, onSaveFailed: () => {} });
    const failure = await startGameBridge(game, { port, allowedOrigins: [], log: SILENT }).catch(
      (error) => error,
    );
    expect(failure).to.have.property("variable", "CITY_BRIDGE_PORT");
    expect(failure.message).to.include(String(port));
  });
});
