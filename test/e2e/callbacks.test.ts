/** Tests callbacks at the end of a task, from a server and from a fleet, also after crashes. */
import { createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { signatureOf } from "../../src/music/callbacks/post.js";
import { listenLocally } from "../local-server.js";
import { CallbackReceiver, type ReceivedCallback } from "../music/callbacks/callback-receiver.js";
import { RedisServer } from "../music/fleet/redis-server.js";
import { type Client, shortSong } from "../music/live-server.js";
import { temporaryDirectory } from "../music/tasks.js";
import { endServed, ServedProcess } from "./served-process.js";

/** Rendering time in milliseconds, longer than any test here. */
const ENDLESS_MS = 3_600_000;
const LISTED = { SVC_CALLBACK_HOSTS: "127.0.0.1" };

describe("callbacks of a task with a callback_url", function () {
  this.timeout(180_000);
  let receiver: CallbackReceiver;

  beforeEach(async () => {
    receiver = await CallbackReceiver.start();
  });
  afterEach(async () => {
    await endServed();
    receiver.close();
  });

  const withCallback = (path: string) => ({ ...shortSong, callback_url: receiver.url + path });

  /** Waits until the task's callback is delivered or has failed. Returns its record. */
  async function settled(client: Client, id: string, headers: Record<string, string> = {}) {
    for (;;) {
      const { callback } = (await client.get(`/v1/tasks/${id}`, headers)).body.data;
      if (callback.state !== "pending") return callback;
      await sleep(20);
    }
  }

  function messageOf({ headers, body }: ReceivedCallback, key: string) {
    expect(headers["x-carillon-signature"]).to.equal(signatureOf(body, key));
    const message = JSON.parse(body);
    expect(headers["x-carillon-timestamp"]).to.equal(String(message.timestamp));
    expect(headers["x-carillon-task"]).to.equal(message.task_id);
    return message;
  }

  it("a task sends one callback, signed with the API key of its submission", async () => {
    const settings = { ...LISTED, SVC_API_KEY: "k1", SVC_API_KEYS: "k2" };
    const { client } = await ServedProcess.startStub(temporaryDirectory(), 0, settings);
    for (const key of ["k1", "k2"]) {
      const headers = { Authorization: `Bearer ${key}` };
      const id = await client.submit({ ...withCallback(`/${key}`), ai_token: key });
      const [received] = await receiver.until(`/${key}`, 1);
      const message = messageOf(received as ReceivedCallback, key);
      const polled = (await client.post("/query_result", { task_id_list: [id] }, headers)).body.data[0];
      expect(message).to.deep.equal({ event: "done", timestamp: message.timestamp, ...polled });
      expect(await settled(client, id, headers)).to.deep.equal({
        state: "delivered",
        attempts: 1,
        error: null,
      });
      const { parameters } = (await client.get(`/v1/tasks/${id}`, headers)).body.data;
      expect(parameters).to.not.have.property("callback_url");
    }
    expect(receiver.received).to.have.length(2);
  });

  it("a failed task sends a callback, unsigned if the server has no key", async () => {
    const { client } = await ServedProcess.startStub(temporaryDirectory(), ENDLESS_MS, LISTED);
    const id = await client.submit(withCallback("/failed"));
    await client.post("/cancel_task", { task_id: id });
    const [received] = (await receiver.until("/failed", 1)) as [ReceivedCallback];
    expect(received.headers).to.not.have.property("x-carillon-signature");
    expect(JSON.parse(received.body)).to.include({ event: "failed", status: 2, error: "Cancelled by user" });
  });

  it("a task retries its callback across kill -9 until the receiver accepts it, then stops @slow", async () => {
    const directory = temporaryDirectory();
    const first = await ServedProcess.startStub(directory, 0, LISTED);
    receiver.status = 503;
    const id = await first.client.submit(withCallback("/hook"));
    await receiver.until("/hook", 2);
    const { callback } = (await first.client.get(`/v1/tasks/${id}`)).body.data;
    expect(callback).to.include({ state: "pending", error: "the receiver answered 503" });
    await first.end("SIGKILL");
    receiver.status = 204;

    const second = await ServedProcess.startStub(directory, 0, LISTED);
    const { attempts, state } = await settled(second.client, id);
    expect(state).to.equal("delivered");
    expect(attempts).to.be.above(1);
    const count = receiver.received.length;
    await second.end("SIGKILL");
    const third = await ServedProcess.startStub(directory, 0, LISTED);
    await settled(third.client, await third.client.submit(withCallback("/next")));
    expect(receiver.received.slice(count).map(({ path }) => path)).to.deep.equal(["/next"]);
  });

  it("receivers that never answer hold up no other callback, and are logged @slow", async () => {
    const silent = createServer((socket) => {
      socket.on("error", () => {});
    });
    const upgrading = createServer((socket) => {
      socket.on("error", () => {});
      socket.write("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n");
    });
    const [{ url: silentUrl }, { url: upgradingUrl }] = [
      await listenLocally(silent),
      await listenLocally(upgrading),
    ];
    try {
      const server = await ServedProcess.startStub(temporaryDirectory(), 0, LISTED);
      const { client } = server;
      const hung: string[] = [];
      for (const url of [silentUrl, silentUrl, upgradingUrl, upgradingUrl, silentUrl]) {
        hung.push(await client.submit({ ...shortSong, callback_url: `${url}/hook` }));
      }
      const id = await client.submit(withCallback("/answered"));
      await receiver.until("/answered", 1);
      expect(await settled(client, id)).to.include({ state: "delivered", attempts: 1 });
      for (const task of hung) {
        for (;;) {
          const { callback } = (await client.get(`/v1/tasks/${task}`)).body.data;
          if (callback.error !== null) break;
          await sleep(100);
        }
      }
      expect(server.log).to.include("the receiver did not answer within 10 seconds");
      expect(server.log).to.include("the answer is 101 Switching Protocols");
    } finally {
      await endServed();
      silent.close();
      upgrading.close();
    }
  });

  it("a task is rejected and not stored if its callback_url is not public and not in SVC_CALLBACK_HOSTS", async () => {
    const { client } = await ServedProcess.startStub(temporaryDirectory(), 0);
    for (const callback_url of [
      receiver.url,
      "http://localhost/",
      "http://169.254.169.254/latest/meta-data/",
      "http://[::1]:80/",
      "gopher://example.org/",
      "not a URL",
    ]) {
      const { status, body } = await client.post("/release_task", { ...shortSong, callback_url });
      expect(status, callback_url).to.equal(400);
      expect(body.detail).to.match(/^callback_url/);
      if (callback_url === receiver.url) {
        expect(body.detail).to.include(
          `add ${new URL(callback_url).host} to the server's SVC_CALLBACK_HOSTS`,
        );
      }
    }
    expect((await client.get("/v1/stats")).body.data.jobs.total).to.equal(0);
  });

  it("a task in a fleet sends one callback, also after its gateway has died @slow", async () => {
    const redis = await RedisServer.start();
    try {
      const shared = { ...LISTED, SVC_REDIS_URL: redis.url, SVC_STORAGE: `file://${temporaryDirectory()}` };
      const start = (role: string, renderMs = 0) =>
        ServedProcess.startStub(temporaryDirectory(), renderMs, { ...shared, SVC_ROLE: role }, {}, "stub");
      const [near, far] = await Promise.all([start("gateway"), start("gateway"), start("worker", 1500)]);
      while ((await far.client.get("/v1/stats")).body.data.workers.length === 0) await sleep(50);
      const first = await near.client.submit(withCallback("/both"));
      await receiver.until("/both", 1);
      expect(await settled(far.client, first)).to.include({ state: "delivered", attempts: 1 });
      const second = await near.client.submit(withCallback("/one"));
      await far.client.untilStarted(second);
      await near.end("SIGKILL");
      await receiver.until("/one", 1);
      expect(await settled(far.client, second)).to.include({ state: "delivered", attempts: 1 });
      expect(receiver.received.map(({ path }) => path)).to.deep.equal(["/both", "/one"]);
    } finally {
      await endServed();
      await redis.kill();
    }
  });
});
