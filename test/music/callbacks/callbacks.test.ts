import dns from "node:dns/promises";
import { syncBuiltinESMExports } from "node:module";
import { createServer, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { Callbacks } from "../../../src/music/callbacks/callbacks.js";
import { postCallback, signatureOf } from "../../../src/music/callbacks/post.js";
import { isPublic, parseCallbackUrl, resolveTarget } from "../../../src/music/callbacks/target.js";
import { StoreError } from "../../../src/music/errors.js";
import { CallbackSchedule } from "../../../src/music/queue/callback-schedule.js";
import type { Task } from "../../../src/music/queue/store.js";
import type { TaskQueue } from "../../../src/music/queue/task-queue.js";
import type { TaskStatusItem } from "../../../src/music/queue/task-status.js";
import { createLogger } from "../../../src/system/log.js";
import { withTimeLimit } from "../../../src/system/time-limit.js";
import { failureOf } from "../../failures.js";
import { listenLocally } from "../../local-server.js";
import { makeResult, makeTask } from "../tasks.js";
import { CallbackReceiver } from "./callback-receiver.js";

describe("delivery of callbacks", () => {
  const never = new AbortController().signal;

  for (const address of [
    ...["0.0.0.0", "10.1.2.3", "100.64.0.1", "100.100.100.200", "127.0.0.1", "127.9.9.9", "169.254.169.254"],
    ...[
      "172.16.0.1",
      "172.31.255.255",
      "192.168.1.5",
      "198.18.0.1",
      "224.0.0.1",
      "240.0.0.1",
      "168.63.129.16",
    ],
    ...[
      "255.255.255.255",
      "::",
      "::1",
      "::ffff:127.0.0.1",
      "::ffff:7f00:1",
      "::ffff:8.8.8.8",
      "64:ff9b::7f00:1",
    ],
    ...[
      "fe80::1",
      "fd00:ec2::254",
      "fc00::1",
      "ff02::1",
      "2002:7f00:1::",
      "2001:0:1::",
      "2001:db8::1",
      "100::1",
    ],
  ]) {
    it(`treats the address ${address} as not public`, () => expect(isPublic(address)).to.equal(false));
  }

  for (const address of [
    "8.8.8.8",
    "100.63.0.1",
    "172.32.0.1",
    "192.169.0.1",
    "2606:4700::1111",
    "2a00::1",
  ]) {
    it(`treats the address ${address} as public`, () => expect(isPublic(address)).to.equal(true));
  }

  const refused: [url: string, allowed: string[], mentions: string][] = [
    ["ftp://example.org/", [], "http or https URL"],
    ["file:///etc/passwd", [], "http or https URL"],
    ["/relative", [], "http or https URL"],
    ["http://user:word@example.org/", [], "user or password"],
    [`http://example.org/${"x".repeat(2048)}`, [], "the maximum is 2048"],
    ["http://127.0.0.1:9000/hook", [], "add 127.0.0.1:9000 to"],
    ["http://2130706433/", [], "127.0.0.1 is not a public address"],
    ["http://0x7f.1/", [], "127.0.0.1 is not a public address"],
    ["http://[::1]/", [], "[::1] is not a public address"],
    ["http://[::ffff:169.254.169.254]/latest", [], "is not a public address"],
    ["http://localhost:9000/", ["127.0.0.1"], "localhost is "],
    ["http://127.0.0.1:9001/", ["127.0.0.1:9000"], "not a public address"],
    ["http://name.invalid/", [], "name.invalid could not be resolved"],
  ];
  for (const [url, allowed, mentions] of refused) {
    it(`rejects the callback URL ${url.slice(0, 50)} if the allowed hosts are ${allowed.join() || "empty"}`, async () => {
      const admit = async () => resolveTarget(parseCallbackUrl(url), allowed);
      const failure = await admit().catch((error: Error) => error);
      expect(failure).to.be.instanceOf(Error);
      expect((failure as Error).message)
        .to.match(/^callback_url/)
        .and.include(mentions);
    });
  }

  it("accepts callback URLs of allowed hosts: with any port, or with the port that the setting names", async () => {
    for (const allowed of ["localhost", "localhost:9000"]) {
      const { address } = await resolveTarget(parseCallbackUrl("http://localhost:9000/"), [allowed]);
      expect(address.address).to.be.oneOf(["127.0.0.1", "::1"]);
    }
    const plain = await resolveTarget(parseCallbackUrl("http://127.0.0.1/"), ["127.0.0.1:80"]);
    expect(plain.address.address).to.equal("127.0.0.1");
  });

  it("connects to the address that was checked, even if the host name now resolves to another one", async () => {
    const receiver = await CallbackReceiver.start();
    const { port } = new URL(receiver.url);
    const url = new URL(`http://rebound.invalid:${port}/hook`);
    const message = { taskId: "t", body: "{}", timestamp: 1, key: "k" };
    await postCallback({ url, address: { address: "127.0.0.1", family: 4 } }, message, never);
    const [{ headers, body, path }] = (await receiver.until("/hook", 1)) as [(typeof receiver.received)[0]];
    receiver.close();
    expect([path, body]).to.deep.equal(["/hook", "{}"]);
    expect(headers).to.include({
      host: `rebound.invalid:${port}`,
      "x-carillon-signature": signatureOf("{}", "k"),
    });
  });

  for (const status of [302, 404, 500]) {
    it(`fails if the receiver answers ${status}, and follows no redirect`, async () => {
      const receiver = await CallbackReceiver.start();
      receiver.status = status;
      const url = new URL(`${receiver.url}/hook`);
      const target = { url, address: { address: "127.0.0.1", family: 4 } };
      const message = { taskId: "t", body: "{}", timestamp: 1, key: null };
      const failure = await postCallback(target, message, never).catch((error: Error) => error);
      receiver.close();
      expect((failure as Error).message).to.equal(`the receiver answered ${status}`);
      expect(receiver.received.map(({ path }) => path)).to.deep.equal(["/hook"]);
    });
  }

  describe("to a receiver that does not answer", () => {
    const headers = "HTTP/1.1 200 OK\r\n";
    const upgrade = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n";
    /** What the receiver does with each connection. */
    const receivers: [how: string, serve: (socket: Socket) => void, protocol: string, reason: string][] = [
      [
        "switches protocols",
        (socket) => socket.write(upgrade),
        "http",
        "the answer is 101 Switching Protocols",
      ],
      [
        "switches to no protocol",
        (socket) => socket.write("HTTP/1.1 101 Switching Protocols\r\n\r\n"),
        "http",
        "the answer is 101 Switching Protocols",
      ],
      ["closes the connection", (socket) => socket.end(), "http", "socket hang up"],
      ["says nothing", () => {}, "http", "too late"],
      ["says nothing to a TLS handshake", () => {}, "https", "too late"],
      ["drips its headers", (socket) => drip(socket, headers, "X-Long: "), "http", "too late"],
      ["drips its TLS handshake", (socket) => drip(socket, "", "\x16\x03\x03"), "https", "too late"],
      [
        "answers 100 again and again",
        (socket) => drip(socket, "", "HTTP/1.1 100 Continue\r\n\r\n"),
        "http",
        "too late",
      ],
    ];

    function drip(socket: Socket, first: string, text: string): void {
      socket.write(first + text.slice(0, 3), "latin1");
      let sent = 3;
      const timer = setInterval(() => socket.write(text[sent++ % text.length] as string, "latin1"), 20);
      socket.on("close", () => clearInterval(timer));
    }

    for (const [how, serve, protocol, reason] of receivers) {
      it(`fails if the receiver ${how}, and leaves no connection`, async () => {
        const sockets: Socket[] = [];
        const server = createServer((socket) => {
          sockets.push(socket.on("error", () => {}));
          socket.once("data", () => serve(socket));
        });
        const { port } = await listenLocally(server);
        const url = new URL(`${protocol}://127.0.0.1:${port}/hook`);
        const target = { url, address: { address: "127.0.0.1", family: 4 } };
        const message = { taskId: "t", body: "{}", timestamp: 1, key: null };
        const limit = { ms: 400, error: () => new Error("too late") };
        const failure = await failureOf(
          withTimeLimit(limit, (signal) => postCallback(target, message, signal)),
        );
        expect(failure.message).to.include(reason);
        // Not `once` of node:events, which rejects if the closed connection is reset.
        for (const socket of sockets)
          if (!socket.closed) await new Promise((closed) => socket.resume().once("close", closed));
        server.close();
      });
    }

    it("accepts a receiver that answers 200 and then drips its body", async () => {
      const server = createServer((socket) => {
        socket.on("error", () => {});
        socket.once("data", () => drip(socket, `${headers}Content-Length: 1000\r\n\r\n`, "body"));
      });
      const { url } = await listenLocally(server);
      const target = { url: new URL(url), address: { address: "127.0.0.1", family: 4 } };
      await postCallback(target, { taskId: "t", body: "{}", timestamp: 1, key: null }, never);
      server.close();
    });

    it("rejects a callback URL whose name server does not answer @slow", async () => {
      const { lookup } = dns;
      Object.assign(dns, { lookup: () => new Promise(() => {}) });
      syncBuiltinESMExports();
      try {
        const failure = await failureOf(resolveTarget(new URL("http://slow.example/"), []));
        expect(failure.message).to.equal(
          "callback_url: slow.example could not be resolved: the name server did not answer within 5 seconds",
        );
      } finally {
        Object.assign(dns, { lookup });
        syncBuiltinESMExports();
      }
    });
  });

  it("sends a callback once, although the store cannot record it at first", async () => {
    const receiver = await CallbackReceiver.start();
    const request = { callbackUrl: `${receiver.url}/hook` } as Task["request"];
    let task = makeTask({ state: "succeeded", result: makeResult(), request });
    let writes = 0;
    const scheduled: unknown[] = [];
    const queue = {
      dueCallbacks: async () => [task.id],
      get: async () => task,
      scheduleCallback: async (...due: unknown[]) => scheduled.push(due),
      update: async (_id: string, change: (task: Task) => Task) => {
        if (writes++ === 0) throw new StoreError("DISK_FULL", "the disk is full");
        task = change(task);
      },
    } as unknown as TaskQueue;
    const config = { apiKey: "", apiKeys: [], callbackHosts: ["127.0.0.1"] };
    const callbacks = new Callbacks(queue, config, () => ({}) as TaskStatusItem, createLogger("silent"));
    while (task.callback === undefined) {
      await callbacks.deliverDue();
      await sleep(10);
    }
    await callbacks.stop();
    receiver.close();
    expect(task.callback).to.deep.equal({ state: "delivered", attempts: 1 });
    expect(scheduled[0]).to.deep.equal([task.id, null]);
    expect(receiver.received).to.have.length(1);
  });

  it("takes a due callback from the schedule once, and again only if it is rescheduled", () => {
    const schedule = new CallbackSchedule();
    for (const id of ["a", "b", "c"]) schedule.set(id, 0);
    schedule.set("later", 60_000);
    expect(schedule.take(2)).to.deep.equal(["a", "b"]);
    expect(schedule.take(9)).to.deep.equal(["c"]);
    schedule.set("a", 0);
    schedule.set("b", null);
    expect(schedule.take(9)).to.deep.equal(["a"]);
    expect(schedule.take(9)).to.deep.equal([]);
  });

  it("takes the callback that is due longest, so that retries to silent receivers let others pass", async () => {
    const schedule = new CallbackSchedule();
    for (const id of ["silent 1", "silent 2", "other"]) schedule.set(id, 0);
    expect(schedule.take(2)).to.deep.equal(["silent 1", "silent 2"]);
    await sleep(1);
    for (const id of ["silent 1", "silent 2"]) schedule.set(id, 0);
    expect(schedule.take(2)).to.deep.equal(["other", "silent 1"]);
  });
});
