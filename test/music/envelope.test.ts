import { expect } from "chai";
import express, { type RequestHandler } from "express";
import request from "supertest";
import { envelope, sendEnvelope } from "../../src/music/envelope.js";
import { errorHandler, HttpError, methodNotAllowed, notFound, RequestError } from "../../src/music/errors.js";
import { checkHost, checkOrigin } from "../../src/music/origin.js";

const coded = (code: string, message: string) => Object.assign(new Error(message), { code });

describe("envelope", () => {
  it("has the five keys in their order and a time in milliseconds", () => {
    const before = Date.now();
    const wrapped = envelope({ a: 1 });
    expect(Object.keys(wrapped)).to.deep.equal(["data", "code", "error", "timestamp", "extra"]);
    expect(wrapped).to.include({ code: 200, error: null, extra: null });
    expect(wrapped.timestamp).to.be.within(before, Date.now());
  });

  it("is sent as JSON in UTF-8 with status 200", async () => {
    const app = express().get("/", (_, response) => sendEnvelope(response, ["né"]));
    const reply = await request(app).get("/");
    expect(reply.status).to.equal(200);
    expect(reply.type).to.equal("application/json");
    expect(reply.body.data).to.deep.equal(["né"]);
    expect(reply.text).to.include("né");
  });
});

describe("errors", () => {
  const faults: unknown[] = [];
  const answer = async (thrown: unknown, path = "/") => {
    faults.length = 0;
    const app = express();
    app.get("/files/:name", (_, response) => void response.end());
    app.get("/", () => {
      throw thrown;
    });
    app.all("/", methodNotAllowed("GET", "HEAD"));
    app.use(notFound);
    app.use(errorHandler((_, error) => faults.push(error)));
    return thrown === undefined ? request(app).post(path) : request(app).get(path);
  };

  const cases: [string, unknown, number, string][] = [
    ["an HttpError", new HttpError(429, "Server busy: queue is full"), 429, "Server busy: queue is full"],
    ["a RequestError", new RequestError("bpm must be a number"), 400, "bpm must be a number"],
    ["an absent model", coded("MODEL_NOT_FOUND", "There is no model x"), 500, "There is no model x"],
    ["an absent slot", coded("SLOT_UNAVAILABLE", "Slot 2 is not available"), 400, "Slot 2 is not available"],
    ["a bad checkpoint", coded("BAD_CHECKPOINT", "Tensor w is missing\nat x"), 500, "Tensor w is missing"],
    ["too little memory", coded("OUT_OF_MEMORY", "Out of memory"), 500, "Out of memory"],
    [
      "a full disk",
      coded("ENOSPC", "ENOSPC: no space left, write '/srv/x'"),
      507,
      "The server's disk is full",
    ],
    ["an error of Node's own", coded("ERR_INVALID_ARG_TYPE", "secret"), 500, "Internal server error"],
    [
      "a system error, whose message holds paths",
      Object.assign(coded("EACCES", "EACCES: /secret/path"), { syscall: "open" }),
      500,
      "Internal server error",
    ],
    ["a plain error", new Error("secret"), 500, "Internal server error"],
    ["a thrown string", "secret", 500, "Internal server error"],
  ];
  for (const [name, thrown, status, detail] of cases) {
    it(`turns ${name} into ${status}`, async () => {
      const reply = await answer(thrown);
      expect(reply.status).to.equal(status);
      expect(reply.type).to.equal("application/json");
      expect(reply.body).to.deep.equal({ detail, error: detail });
      expect(faults).to.have.length(status >= 500 ? 1 : 0);
    });
  }

  it("sends the headers of an HttpError", async () => {
    const reply = await answer(new HttpError(429, "busy", { "Retry-After": "7" }));
    expect(reply.headers["retry-after"]).to.equal("7");
  });

  it("answers 404 to unknown paths", async () => {
    const reply = await answer(new Error("unused"), "/nowhere");
    expect(reply.status).to.equal(404);
    expect(reply.body).to.deep.equal({ detail: "Not Found", error: "Not Found" });
  });

  it("answers 405 with Allow to other methods", async () => {
    const reply = await answer(undefined);
    expect(reply.status).to.equal(405);
    expect(reply.headers.allow).to.equal("GET, HEAD");
    expect(reply.body).to.deep.equal({ detail: "Method Not Allowed", error: "Method Not Allowed" });
  });

  it("answers 400 to a path that cannot be decoded", async () => {
    const reply = await answer(new Error("unused"), "/files/%ff");
    expect(reply.status).to.equal(400);
    expect(reply.body.detail).to.be.a("string");
    expect(reply.text).to.not.include("    at ");
  });
});

describe("origins", () => {
  const ok: RequestHandler = (_, response) => void response.json({});
  const app = (...allowed: string[]) =>
    express()
      .use(checkOrigin(allowed))
      .get("/", ok)
      .post("/", ok)
      .use(errorHandler(() => {}));

  for (const origin of [
    "http://localhost",
    "http://localhost:5173",
    "https://127.0.0.1:8443",
    "http://[::1]:1",
    "null",
  ]) {
    it(`serves pages from ${origin}`, async () => {
      const reply = await request(app("null")).post("/").set("Origin", origin);
      expect(reply.status).to.equal(200);
      expect(reply.headers["access-control-allow-origin"]).to.equal(origin);
      expect(reply.headers["access-control-expose-headers"]).to.include("Content-Range");
      expect(reply.headers.vary).to.include("Origin");
    });
  }

  it("answers preflights of allowed pages", async () => {
    const reply = await request(app("null"))
      .options("/")
      .set("Origin", "http://localhost:5173")
      .set("Access-Control-Request-Method", "POST");
    expect(reply.status).to.equal(204);
    expect(reply.headers["access-control-allow-methods"]).to.include("POST");
    expect(reply.headers["access-control-allow-headers"]).to.include("Authorization");
    expect(reply.headers["access-control-max-age"]).to.equal("600");
  });

  for (const origin of [
    "https://evil.example",
    "http://localhost.evil.example",
    "http://evil.example:8001",
    "http://127.0.0.1.nip.io",
  ]) {
    it(`refuses writes and preflights from ${origin}`, async () => {
      const write = await request(app("null")).post("/").set("Origin", origin);
      expect(write.status).to.equal(403);
      expect(write.headers).to.not.have.property("access-control-allow-origin");
      const preflight = await request(app("null"))
        .options("/")
        .set("Origin", origin)
        .set("Access-Control-Request-Method", "POST");
      expect(preflight.status).to.equal(400);
      expect(preflight.body).to.deep.equal({
        detail: "Disallowed CORS origin",
        error: "Disallowed CORS origin",
      });
      const read = await request(app("null")).get("/").set("Origin", origin);
      expect(read.headers).to.not.have.property("access-control-allow-origin");
    });
  }

  it("refuses pages opened from a file where the setting leaves them out", async () => {
    expect((await request(app()).post("/").set("Origin", "null")).status).to.equal(403);
  });

  it("serves listed origins, and all with *", async () => {
    const origin = "https://studio.example";
    expect((await request(app(origin)).post("/").set("Origin", origin)).status).to.equal(200);
    expect((await request(app("*")).post("/").set("Origin", "https://any.example")).status).to.equal(200);
  });

  it("serves its own pages by address, but not by a name that anyone could point here", async () => {
    const post = (host: string) => request(app()).post("/").set("Host", host).set("Origin", `http://${host}`);
    expect((await post("192.168.1.5:8001")).status).to.equal(200);
    expect((await post("rebound.example:8001")).status).to.equal(403);
  });

  it("lets requests without an origin pass", async () => {
    expect((await request(app()).post("/")).status).to.equal(200);
  });
});

describe("hosts", () => {
  const app = (...allowed: string[]) =>
    express()
      .use(checkHost(allowed))
      .get("/", (_, response) => void response.json({}))
      .use(errorHandler(() => {}));
  const statusFor = async (host: string, ...allowed: string[]) =>
    (
      await request(app(...allowed))
        .get("/")
        .set("Host", host)
    ).status;

  for (const host of ["localhost", "LOCALHOST:8001", "127.0.0.1:8001", "127.8.8.8", "[::1]:8001", "[::1]"]) {
    it(`answers to ${host}`, async () => expect(await statusFor(host)).to.equal(200));
  }

  for (const host of [
    "rebound.example:8001",
    "localhost.evil.example",
    "127.0.0.1.nip.io",
    "192.168.1.5",
    "none",
    "",
  ]) {
    it(`refuses ${JSON.stringify(host)}`, async () => {
      const reply = await request(app()).get("/").set("Host", host);
      expect(reply.status).to.equal(403);
      expect(reply.body.detail).to.include("SVC_ALLOWED_HOSTS");
    });
  }

  it("answers to listed names on any port, and to all with *", async () => {
    for (const host of ["music.example", "Music.Example:443"])
      expect(await statusFor(host, "music.example")).to.equal(200);
    expect(await statusFor("other.example", "music.example")).to.equal(403);
    expect(await statusFor("other.example", "*")).to.equal(200);
  });
});
