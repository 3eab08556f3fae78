import { once } from "node:events";
import { connect } from "node:net";
import { expect } from "chai";
import express, { type RequestHandler } from "express";
import request from "supertest";
import { Authenticator, checkHost, checkOrigin } from "../../../src/music/access/access.js";
import { answerErrors } from "../../../src/music/errors.js";
import { ConfigError } from "../../../src/system/config-error.js";
import { serverForAll, startLiveServer } from "../live-server.js";
import { temporaryDirectory } from "../tasks.js";

/** Application that requires the key in a header. POST accepts the key in the body, too; /health needs no key. */
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
  server.use(answerErrors(() => {}));
  return server;
}

describe("authentication with an API key", () => {
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
    it(`accepts every request if the configured key is ${JSON.stringify(key)}`, async () => {
      expect((await request(app(key)).get("/")).status).to.equal(200);
      expect((await request(app(key)).get("/").set("Authorization", "Bearer anything")).status).to.equal(200);
      expect((await request(app(key)).post("/").send({ ai_token: "anything" })).status).to.equal(200);
    });
  }

  it("accepts /health without a key, but not with a wrong key", async () => {
    expect((await request(app("k1")).get("/health")).status).to.equal(200);
    expect((await request(app("k1")).get("/health").set("Authorization", "Bearer k1")).status).to.equal(200);
    expect((await request(app("k1")).get("/health").set("Authorization", "Bearer k2")).status).to.equal(401);
  });

  describe("authentication with a session cookie", () => {
    const server = serverForAll({
      SVC_API_KEY: "first key",
      SVC_API_KEYS: "second key",
    });

    const ask = (headers: Record<string, string>, method = "GET", path = "/v1/tasks") =>
      fetch(server.url + path, { method, headers });
    async function startSession(key: string, headers: Record<string, string> = {}) {
      const response = await ask({ "X-API-Key": key, ...headers }, "POST", "/v1/session");
      expect(response.status).to.equal(200);
      return response.headers.get("set-cookie") as string;
    }

    it("the server's own pages can read and write with a session cookie, which does not contain the key", async () => {
      for (const key of ["first key", "second key"]) {
        const set = await startSession(key);
        expect(set).to.match(/^carillon_\d+=.*; Path=\/; Max-Age=2592000; HttpOnly; SameSite=Strict$/);
        expect(set).to.not.include(key);
        const Cookie = set.split(";")[0] as string;
        expect((await ask({ Cookie })).status).to.equal(200);
        expect((await ask({ Cookie, Origin: server.url }, "POST", "/create_random_sample")).status).to.equal(
          200,
        );
        expect((await ask({ Cookie, "X-API-Key": "wrong" })).status).to.equal(401);
      }
      expect(await startSession("first key", { Origin: server.url.replace("http:", "https:") })).to.match(
        /; Secure$/,
      );
    });

    it("refuses session cookies that are forged, expired or from another site; DELETE clears the cookie", async () => {
      const Cookie = (await startSession("first key")).split(";")[0] as string;
      const [name, value = ""] = Cookie.split("=");
      const [, mac] = value.split(".");
      for (const forged of ["", "x", `9999999999.${mac}`, `1000.${mac}`, value.slice(0, -1), `${value}x`]) {
        expect((await ask({ Cookie: `${name}=${forged}` })).status, forged).to.equal(401);
      }
      for (const foreign of [{ Origin: "http://localhost:1" }, { "Sec-Fetch-Site": "same-site" }]) {
        expect((await ask({ Cookie, ...foreign })).status).to.equal(401);
        expect((await ask({ Cookie, ...foreign }, "POST", "/create_random_sample")).status).to.equal(401);
      }
      const ended = await ask({ Cookie }, "DELETE", "/v1/session");
      expect(ended.headers.get("set-cookie")).to.match(new RegExp(`^${name}=; Path=/; Max-Age=0; `));
    });
  });

  it("does not echo the key in error messages", async () => {
    const reply = await request(app("secret")).get("/").set("Authorization", "Bearer guess");
    expect(JSON.stringify(reply.body)).to.not.match(/secret|guess/);
  });
});

describe("check of the Origin header", () => {
  const ok: RequestHandler = (_, response) => void response.json({});
  const app = (...allowed: string[]) =>
    express()
      .use(checkOrigin(allowed))
      .get("/", ok)
      .post("/", ok)
      .use(answerErrors(() => {}));

  for (const origin of [
    "http://localhost",
    "http://localhost:5173",
    "https://127.0.0.1:8443",
    "http://[::1]:1",
    "null",
  ]) {
    it(`allows pages of the origin ${origin} to send requests`, async () => {
      const reply = await request(app("null")).post("/").set("Origin", origin);
      expect(reply.status).to.equal(200);
      expect(reply.headers["access-control-allow-origin"]).to.equal(origin);
      expect(reply.headers["access-control-expose-headers"]).to.include("Content-Range");
      expect(reply.headers.vary).to.include("Origin");
    });
  }

  it("answers preflight requests from pages of allowed origins", async () => {
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
    it(`refuses writes and reads by scripts of ${origin}, with a reason that they can read`, async () => {
      const preflight = await request(app("null"))
        .options("/")
        .set("Origin", origin)
        .set("Access-Control-Request-Method", "POST");
      expect(preflight.status).to.equal(204);
      const refused = [
        await request(app("null")).post("/").set("Origin", origin),
        await request(app("null")).get("/").set("Origin", origin).set("Sec-Fetch-Mode", "cors"),
      ];
      for (const { status, body } of refused) {
        expect(status).to.equal(403);
        expect(body.detail).to.include(origin).and.include("SVC_ALLOWED_ORIGINS");
      }
      for (const { headers } of [preflight, ...refused]) {
        expect(headers["access-control-allow-origin"]).to.equal(origin);
        expect(headers).to.not.have.property("access-control-allow-credentials");
      }
      const read = await request(app("null")).get("/").set("Origin", origin);
      expect(read.headers).to.not.have.property("access-control-allow-origin");
    });
  }

  it('refuses pages opened from a file if "null" is not listed', async () => {
    const reply = await request(app()).post("/").set("Origin", "null");
    expect(reply.status).to.equal(403);
    expect(reply.headers["access-control-allow-origin"]).to.equal("null");
    expect(reply.body.detail)
      .to.include("opened from a file")
      .and.match(/set SVC_ALLOWED_ORIGINS=null$/);
  });

  it("allows pages of listed origins to send requests; * allows pages of any origin", async () => {
    const origin = "https://studio.example";
    expect((await request(app(origin)).post("/").set("Origin", origin)).status).to.equal(200);
    expect((await request(app("*")).post("/").set("Origin", "https://any.example")).status).to.equal(200);
  });

  it("the error for a refused origin names the value to add, but no other allowed origin", async () => {
    const own = "https://studio.example";
    const reply = await request(app(own)).post("/").set("Origin", "http://192.168.1.5:3000");
    expect(reply.status).to.equal(403);
    expect(reply.body.detail).to.match(/add http:\/\/192\.168\.1\.5:3000 to SVC_ALLOWED_ORIGINS$/);
    expect(reply.body.detail).to.not.include(own);
  });

  it("accepts its own pages at an IP address, and refuses a host name to prevent DNS rebinding", async () => {
    const post = (host: string) => request(app()).post("/").set("Host", host).set("Origin", `http://${host}`);
    expect((await post("192.168.1.5:8001")).status).to.equal(200);
    expect((await post("rebound.example:8001")).status).to.equal(403);
  });

  it("accepts requests without an Origin header", async () => {
    expect((await request(app()).post("/")).status).to.equal(200);
  });
});

describe("check of the Host header", () => {
  const app = (...allowed: string[]) =>
    express()
      .use(checkHost({ isLocal: true, apiKey: "", allowedHosts: allowed }))
      .get("/", (_, response) => void response.json({}))
      .use(answerErrors(() => {}));
  const statusFor = async (host: string, ...allowed: string[]) =>
    (
      await request(app(...allowed))
        .get("/")
        .set("Host", host)
    ).status;

  for (const host of ["localhost", "LOCALHOST:8001", "127.0.0.1:8001", "127.8.8.8", "[::1]:8001", "[::1]"]) {
    it(`accepts the Host header ${host}`, async () => expect(await statusFor(host)).to.equal(200));
  }

  for (const host of [
    "rebound.example:8001",
    "localhost.evil.example",
    "127.0.0.1.nip.io",
    "192.168.1.5",
    "none",
    "",
  ]) {
    it(`refuses the Host header ${JSON.stringify(host)}`, async () => {
      const reply = await request(app()).get("/").set("Host", host);
      expect(reply.status).to.equal(403);
      expect(reply.body.detail).to.include("SVC_ALLOWED_HOSTS");
    });
  }

  it("the error for a refused host names SVC_ALLOWED_HOSTS and the value to set", async () => {
    const detailOf = async (host: string, ...allowed: string[]) =>
      (
        await request(app(...allowed))
          .get("/")
          .set("Host", host)
      ).body.detail;
    const docker = await detailOf("host.docker.internal:8001");
    expect(docker).to.match(/set SVC_ALLOWED_HOSTS=host\.docker\.internal, or a key in SVC_API_KEY$/);
    expect(await detailOf("carillon", "music.example")).to.include(
      "SVC_ALLOWED_HOSTS=music.example,carillon,",
    );
  });

  it("accepts any Host header if a key is set or the server is not on a loopback address", async () => {
    for (const rules of [
      { isLocal: true, apiKey: "k1" },
      { isLocal: false, apiKey: "" },
    ]) {
      const app = express()
        .use(checkHost({ ...rules, allowedHosts: [] }))
        .get("/", (_, response) => void response.json({}));
      expect((await request(app).get("/").set("Host", "host.docker.internal")).status).to.equal(200);
    }
  });

  it("accepts listed hosts on any port; * accepts any host", async () => {
    for (const host of ["music.example", "Music.Example:443"])
      expect(await statusFor(host, "music.example")).to.equal(200);
    expect(await statusFor("other.example", "music.example")).to.equal(403);
    expect(await statusFor("other.example", "*")).to.equal(200);
  });
});

describe("a server on a loopback address", () => {
  const server = serverForAll();

  /** Sends a raw request and returns the status. */
  async function statusOf(target: string, ...hosts: string[]): Promise<number> {
    const { port } = new URL(server.url);
    const socket = connect(Number(port), "127.0.0.1");
    let reply = "";
    socket.on("data", (chunk) => {
      reply += chunk;
    });
    const names = hosts.map((host) => `Host: ${host}\r\n`).join("");
    socket.write(`GET ${target} HTTP/1.1\r\n${names}Connection: close\r\n\r\n`);
    await once(socket, "close");
    expect(reply).to.match(/Content-Type: application\/json/);
    return Number(reply.split(" ")[1]);
  }

  it("a loopback server accepts only loopback names in the Host header and the request target", async () => {
    expect(await statusOf("/health", "localhost")).to.equal(200);
    expect(await statusOf("/health", "rebound.example")).to.equal(403);
    expect(await statusOf("http://localhost/health", "rebound.example")).to.equal(200);
    expect(await statusOf("http://rebound.example/health", "localhost")).to.equal(403);
  });

  it("merges repeated slashes in a request path", async () => {
    for (const target of ["//health", "/openrouter//v1///models", "//v1/audio?path=//absent.mp3"]) {
      const expected = target.includes("audio") ? 403 : 200;
      expect(await statusOf(target, "localhost"), target).to.equal(expected);
    }
  });

  it("refuses a request with two Host headers", async () => {
    expect(await statusOf("/health", "localhost", "localhost")).to.equal(400);
    expect(await statusOf("/health", "localhost", "rebound.example")).to.equal(400);
  });

  it("answers 400 to a request target that is not a URL", async () => {
    for (const target of ["http://[", "http://[::1", "http://a:b/"]) {
      expect(await statusOf(target, "localhost"), target).to.equal(400);
    }
  });
});

describe("requirements for starting a server", () => {
  it("a server that other machines can reach needs a key or SVC_ALLOW_NO_KEY=true to start", async () => {
    const failure = await startLiveServer(temporaryDirectory(), { SVC_API_HOST: "0.0.0.0" }).catch((e) => e);
    expect(failure).to.be.instanceOf(ConfigError);
    expect(failure.message).to.match(/^SVC_API_KEY is empty.*SVC_ALLOW_NO_KEY=true$/);
    for (const settings of [{ SVC_API_KEY: "k1" }, { SVC_ALLOW_NO_KEY: "true" }]) {
      const server = await startLiveServer(temporaryDirectory(), { SVC_API_HOST: "0.0.0.0", ...settings });
      const answer = await fetch(`http://127.0.0.1:${new URL(server.url).port}/health`);
      await server.close();
      expect(answer.status).to.equal(200);
    }
  });
});
