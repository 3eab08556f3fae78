/** Tests clients that share a server, connect by IPv6, disconnect early, or send slowly. */
import { once } from "node:events";
import { existsSync, readdirSync } from "node:fs";
import { connect, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { loadConfig } from "../../src/config.js";
import { type Client, shortSong } from "../music/live-server.js";
import { temporaryDirectory } from "../music/tasks.js";
import { endServed, ServedProcess } from "./served-process.js";

const bearer = (key: string) => ({ Authorization: `Bearer ${key}` });

describe("sharing between clients with different keys", () => {
  after(endServed);

  it("clients with different keys share tasks, songs and searches, but not idempotency keys", async () => {
    const settings = { SVC_API_KEY: "k1", SVC_API_KEYS: "k2" };
    const { client } = await ServedProcess.startStub(temporaryDirectory(), 0, settings);
    const submit = async (key: string, prompt: string) => {
      const headers = { ...bearer(key), "Idempotency-Key": "1" };
      const { status, body } = await client.post("/release_task", { ...shortSong, prompt }, headers);
      expect(status, JSON.stringify(body)).to.equal(200);
      return body.data.task_id as string;
    };
    const one = await submit("k1", "a waltz");
    const two = await submit("k2", "a tango");
    expect(two).to.not.equal(one);
    expect(await submit("k1", "a waltz")).to.equal(one);
    expect(await submit("k2", "a tango")).to.equal(two);
    const found = (await client.get("/v1/tasks?search=waltz", bearer("k2"))).body.data;
    expect(found.tasks.map(({ task_id }: { task_id: string }) => task_id)).to.deep.equal([one]);
    for (const key of ["k1", "k2"]) {
      expect((await client.get(`/v1/tasks/${one}`, bearer(key))).status).to.equal(200);
    }
    expect((await client.get(`/v1/tasks/${one}`, bearer("k3"))).status).to.equal(401);
  });
});

describe("serving on the IPv6 address ::1", () => {
  let client: Client;

  before(async function () {
    const probe = createServer().listen(0, "::1");
    const [found] = await Promise.race([
      once(probe, "listening").then(() => [true]),
      once(probe, "error").then(() => [false]),
    ]);
    probe.close();
    if (!found) this.skip();
    ({ client } = await ServedProcess.startStub(temporaryDirectory(), 0, { SVC_API_HOST: "[::1]" }));
  });
  after(endServed);

  it("a server on ::1 counts as local, answers at [::1] and serves its songs", async () => {
    expect(loadConfig({ SVC_API_HOST: "::1" }).isLocal).to.equal(true);
    expect(client.url).to.match(/^http:\/\/\[::1\]:\d+$/);
    expect((await client.get("/health")).status).to.equal(200);
    expect((await client.download(await client.makeOne(shortSong))).length).to.be.above(1000);
    const { port } = new URL(client.url);
    for (const [host, status] of [
      [`[::1]:${port}`, 200],
      ["localhost", 200],
      ["[fd00::1]", 403],
    ]) {
      const socket = connect(Number(port), "::1");
      let reply = "";
      socket.on("data", (chunk) => {
        reply += chunk;
      });
      socket.write(`GET /health HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
      await once(socket, "close");
      expect(reply, String(host)).to.match(new RegExp(`^HTTP/1.1 ${status} `));
    }
  });
});

describe("responsiveness of a server under load", () => {
  const directory = temporaryDirectory();
  let client: Client;
  before(async () => {
    ({ client } = await ServedProcess.startStub(directory, 0));
  });
  after(endServed);

  const leftOver = () => {
    const uploads = join(directory, "uploads");
    return existsSync(uploads) ? readdirSync(uploads) : [];
  };

  it("ten concurrent downloads are converted; disconnected clients leave no files @slow", async () => {
    const { file } = await client.makeOne({ ...shortSong, audio_format: "wav" });
    const convert = (signal: AbortSignal | null = null) =>
      fetch(`${client.url}${file}&format=flac`, { signal }).then(async (response) => {
        expect(response.status).to.equal(200);
        return (await response.arrayBuffer()).byteLength;
      });
    const lengths = await Promise.all(Array.from({ length: 10 }, () => convert()));
    expect(new Set(lengths).size).to.equal(1);
    const gone = Array.from({ length: 10 }, async (_, index) => {
      const hangUp = new AbortController();
      const answer = convert(hangUp.signal).catch(() => 0);
      await sleep(30 * index);
      hangUp.abort();
      return answer;
    });
    await Promise.all(gone);
    expect(await convert()).to.equal(lengths[0]);
    while (leftOver().length > 0) await sleep(20);
  });

  it("other clients get answers during a hundred slow uploads, and after a thousand rejections", async () => {
    const { port } = new URL(client.url);
    const slow = Array.from({ length: 100 }, (): Socket => {
      const socket = connect(Number(port), "127.0.0.1").on("error", () => {});
      const head = "POST /release_task HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json";
      socket.write(`${head}\r\nContent-Length: 1000\r\n\r\n{`);
      return socket;
    });
    const refusals: [path: string, init: RequestInit, status: number][] = [
      ["/release_task", { method: "POST", body: "{", headers: { "Content-Type": "application/json" } }, 400],
      ["/release_task", { method: "POST", body: "<a/>", headers: { "Content-Type": "text/xml" } }, 415],
      ["/nowhere", {}, 404],
      ["/release_task", {}, 405],
      ["/query_result", { method: "POST", body: "{}", headers: { Origin: "http://foreign.example" } }, 403],
    ];
    for (let round = 0; round < 20; round++) {
      for (const socket of slow) socket.write(" ");
      const answers = await Promise.all(
        Array.from({ length: 50 }, async (_, index) => {
          const [path, init, status] = refusals[index % refusals.length] as (typeof refusals)[0];
          const response = await fetch(client.url + path, init);
          await response.arrayBuffer();
          return [response.status, status];
        }),
      );
      for (const [status, expected] of answers) expect(status).to.equal(expected);
    }
    expect((await client.get("/health")).status).to.equal(200);
    expect((await client.get("/v1/stats")).body.data.jobs.total).to.be.below(3);
    for (const socket of slow) socket.destroy();
  });
});
