import { expect } from "chai";
import express from "express";
import request from "supertest";
import { methodNotAllowed, notFound } from "../../../src/http/guards.js";
import { answerErrors, HttpError, RequestError } from "../../../src/music/errors.js";
import { sendEnvelope } from "../../../src/music/routes/route.js";

const coded = (code: string, message: string) => Object.assign(new Error(message), { code });

describe("the response envelope", () => {
  it("the envelope is UTF-8 JSON with status 200, five keys in order and a timestamp in milliseconds", async () => {
    const before = Date.now();
    const app = express().get("/", (_, response) => sendEnvelope(response, ["né"]));
    const reply = await request(app).get("/");
    expect(reply.status).to.equal(200);
    expect(reply.type).to.equal("application/json");
    expect(Object.keys(reply.body)).to.deep.equal(["data", "code", "error", "timestamp", "extra"]);
    expect(reply.body).to.deep.include({ data: ["né"], code: 200, error: null, extra: null });
    expect(reply.body.timestamp).to.be.within(before, Date.now());
    expect(reply.text).to.include("né");
  });
});

describe("responses to errors", () => {
  const faults: unknown[] = [];
  const answer = async (thrown: unknown, path = "/") => {
    faults.length = 0;
    const app = express();
    app.get("/files/:name", (_, response) => void response.end());
    app.get("/", () => {
      throw thrown;
    });
    app.all("/", methodNotAllowed("GET", "HEAD"));
    app.use(notFound("Not Found"));
    app.use(answerErrors((_, error) => faults.push(error)));
    return thrown === undefined ? request(app).post(path) : request(app).get(path);
  };

  const cases: [string, unknown, number, string][] = [
    ["an HttpError", new HttpError(429, "Server busy"), 429, "Server busy"],
    ["a RequestError", new RequestError("bpm must be a number"), 400, "bpm must be a number"],
    ["an absent model", coded("MODEL_NOT_FOUND", "There is no model x"), 500, "There is no model x"],
    ["an absent slot", coded("SLOT_UNAVAILABLE", "Slot 2 is not available"), 400, "Slot 2 is not available"],
    ["a bad checkpoint", coded("BAD_CHECKPOINT", "Tensor w is missing\nat x"), 500, "Tensor w is missing"],
    ["an out-of-memory error", coded("OUT_OF_MEMORY", "Out of memory"), 500, "Out of memory"],
    [
      "a full disk",
      coded("ENOSPC", "ENOSPC: no space left, write '/srv/x'"),
      507,
      "The server's disk is full",
    ],
    ["an error of Node", coded("ERR_INVALID_ARG_TYPE", "secret"), 500, "Internal server error"],
    [
      "a system error with paths in its message",
      Object.assign(coded("EACCES", "EACCES: /secret/path"), { syscall: "open" }),
      500,
      "Internal server error",
    ],
    ["a plain error", new Error("secret"), 500, "Internal server error"],
    ["a thrown string", "secret", 500, "Internal server error"],
  ];
  for (const [name, thrown, status, detail] of cases) {
    it(`answers ${status} to ${name}`, async () => {
      const reply = await answer(thrown);
      expect(reply.status).to.equal(status);
      expect(reply.type).to.equal("application/json");
      expect(reply.body).to.deep.equal({ detail, error: detail });
      expect(faults).to.have.length(status >= 500 ? 1 : 0);
      if (status === 507) expect(faults[0], "a full disk is logged without a stack").to.equal(undefined);
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

  it("answers 405 with an Allow header to other methods", async () => {
    const reply = await answer(undefined);
    expect(reply.status).to.equal(405);
    expect(reply.headers.allow).to.equal("GET, HEAD");
    expect(reply.body).to.deep.equal({ detail: "Method Not Allowed", error: "Method Not Allowed" });
  });

  it("answers 400 to a path with invalid escapes", async () => {
    const reply = await answer(new Error("unused"), "/files/%ff");
    expect(reply.status).to.equal(400);
    expect(reply.body.detail).to.be.a("string");
    expect(reply.text).to.not.include("    at ");
  });
});
