import { expect } from "chai";
import express from "express";
import request from "supertest";
import { Authenticator } from "../../src/music/auth.js";
import { errorHandler } from "../../src/music/errors.js";

/** An application whose GET needs a key, whose POST takes one in the body, and whose health need not. */
function app(apiKey: string) {
  const authenticator = new Authenticator(apiKey);
  const server = express();
  server.use(express.json());
  server.get("/", (incoming, response) => {
    authenticator.authorize(incoming);
    response.json({});
  });
  server.post("/", (incoming, response) => {
    authenticator.authorize(incoming, incoming.body?.ai_token);
    response.json({});
  });
  server.get("/health", (incoming, response) => {
    authenticator.authorizeIfPresented(incoming);
    response.json({});
  });
  server.use(errorHandler(() => {}));
  return server;
}

describe("authentication", () => {
  const headerCases: [string, Record<string, string>, number, string?][] = [
    ["no key", {}, 401, "Missing ai_token or Authorization header"],
    ["the key as Bearer", { Authorization: "Bearer k1" }, 200],
    ["the key as bearer in lower case", { Authorization: "bearer k1" }, 200],
    ["the key without a scheme", { Authorization: "k1" }, 200],
    ["a wrong key", { Authorization: "Bearer k2" }, 401, "Invalid API key"],
    ["the key's beginning", { Authorization: "Bearer k" }, 401, "Invalid API key"],
    ["Bearer and nothing", { Authorization: "Bearer " }, 401, "Invalid API key"],
    ["the key in X-API-Key", { "X-API-Key": "k1" }, 200],
    ["a wrong X-API-Key", { "X-API-Key": "k2" }, 401, "Invalid API key"],
    ["an empty X-API-Key", { "X-API-Key": "" }, 401, "Missing ai_token or Authorization header"],
    ["an empty X-API-Key beside the right header", { "X-API-Key": "", Authorization: "Bearer k1" }, 200],
  ];
  for (const [name, headers, status, detail] of headerCases) {
    it(`answers ${status} to ${name}`, async () => {
      for (const reply of [
        await request(app("k1")).get("/").set(headers),
        await request(app("k1")).post("/").set(headers),
      ]) {
        expect(reply.status).to.equal(status);
        if (detail !== undefined) expect(reply.body).to.deep.equal({ detail, error: detail });
      }
    });
  }

  const bodyCases: [string, unknown, Record<string, string>, number][] = [
    ["the right ai_token", "k1", {}, 200],
    ["a wrong ai_token", "k2", {}, 401],
    ["a wrong ai_token beside the right header", "k2", { Authorization: "Bearer k1" }, 401],
    ["the right ai_token beside a wrong header", "k1", { Authorization: "Bearer k2" }, 200],
    ["an empty ai_token beside the right header", "", { Authorization: "Bearer k1" }, 200],
    ["a null ai_token beside the right header", null, { Authorization: "Bearer k1" }, 200],
    ["an empty ai_token alone", "", {}, 401],
    ["a list as ai_token", ["k1"], {}, 401],
    ["true as ai_token", true, {}, 401],
  ];
  for (const [name, token, headers, status] of bodyCases) {
    it(`answers ${status} to ${name}`, async () => {
      const reply = await request(app("k1")).post("/").set(headers).send({ ai_token: token });
      expect(reply.status).to.equal(status);
      if (status === 401) expect(reply.body.detail).to.be.a("string");
    });
  }

  for (const key of ["", "   "]) {
    it(`is off with the key ${JSON.stringify(key)}`, async () => {
      expect((await request(app(key)).get("/")).status).to.equal(200);
      expect((await request(app(key)).get("/").set("Authorization", "Bearer anything")).status).to.equal(200);
      expect((await request(app(key)).post("/").send({ ai_token: "anything" })).status).to.equal(200);
    });
  }

  it("lets health probes pass without a key, but not with a wrong one", async () => {
    expect((await request(app("k1")).get("/health")).status).to.equal(200);
    expect((await request(app("k1")).get("/health").set("Authorization", "Bearer k1")).status).to.equal(200);
    expect((await request(app("k1")).get("/health").set("Authorization", "Bearer k2")).status).to.equal(401);
  });

  it("does not take the key out of an error message", async () => {
    const reply = await request(app("secret")).get("/").set("Authorization", "Bearer guess");
    expect(JSON.stringify(reply.body)).to.not.match(/secret|guess/);
  });
});
