import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { readdir, readFile, stat, utimes, writeFile } from "node:fs/promises";
import { createServer, type Server, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { basename, join } from "node:path";
import type { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { FileStorage } from "../../../src/music/storage/file-storage.js";
import { ObjectStore } from "../../../src/music/storage/object-store.js";
import { failureOf } from "../../failures.js";
import { listenLocally } from "../../local-server.js";
import { temporaryDirectory } from "../tasks.js";
import { BUCKET, type S3Server, startS3 } from "./s3-server.js";

describe("object store", () => {
  const before = { ...process.env };
  let server: S3Server;
  let store: ObjectStore;
  let directory: string;

  const file = async (bytes: Buffer): Promise<string> => {
    const path = join(directory, `${randomBytes(4).toString("hex")}.flac`);
    await writeFile(path, bytes);
    return path;
  };

  beforeEach(async () => {
    server = await startS3();
    Object.assign(process.env, server.environment);
    directory = temporaryDirectory();
    store = await ObjectStore.open(`s3://${BUCKET}/a/deep/prefix`);
  });

  afterEach(async () => {
    store.close();
    await server.close();
    for (const name of Object.keys(process.env)) if (!(name in before)) delete process.env[name];
    Object.assign(process.env, before);
  });

  it("returns objects whole and by range, and removes them", async () => {
    const bytes = randomBytes(3 * 2 ** 20 + 17);
    await store.put("audio/one.flac", await file(bytes));
    expect((await store.head("audio/one.flac"))?.bytes).to.equal(bytes.length);
    const part = await store.read("audio/one.flac", { start: 10, end: 99 }, undefined);
    expect((await buffer(part as NodeJS.ReadableStream)).equals(bytes.subarray(10, 100))).to.equal(true);

    const copy = join(directory, "copies", "one.flac");
    expect(await store.fetch("audio/one.flac", copy)).to.equal(true);
    expect((await readFile(copy)).equals(bytes)).to.equal(true);

    await store.remove("audio/one.flac");
    await store.remove("audio/one.flac");
    expect(await store.head("audio/one.flac")).to.equal(null);
  });

  it("returns null for a missing object and leaves no partial file", async () => {
    expect(await store.head("audio/none.flac")).to.equal(null);
    expect(await store.read("audio/none.flac", null, undefined)).to.equal(null);
    expect(await store.fetch("audio/none.flac", join(directory, "none.flac"))).to.equal(false);
    expect(await readdir(directory)).to.deep.equal([]);
  });

  it("lists all pages of a prefix, without objects of other prefixes", async () => {
    const path = await file(Buffer.from("x"));
    const names = Array.from({ length: 12 }, (_, index) => `uploads/${index}.wav`).sort();
    for (const name of [...names, "audio/other.wav"]) await store.put(name, path);
    const neighbour = await ObjectStore.open(`s3://${BUCKET}/a/deep`);
    await neighbour.put("uploads/foreign.wav", path);
    neighbour.close();
    const listed: string[] = [];
    for await (const { name, bytes, modifiedMs } of store.list("uploads/")) {
      listed.push(name);
      expect(bytes).to.equal(1);
      expect(modifiedMs).to.be.greaterThan(0);
    }
    expect(listed.sort()).to.deep.equal(names);
  });

  it("signs URLs that anyone can read until they expire", async () => {
    const bytes = randomBytes(1000);
    await store.put("audio/one.flac", await file(bytes));
    const url = await store.signedUrl("audio/one.flac", 'inline; filename="one.flac"');
    const answer = await fetch(url, { headers: { Range: "bytes=0-9" } });
    expect(answer.status).to.equal(206);
    expect(Buffer.from(await answer.arrayBuffer()).equals(bytes.subarray(0, 10))).to.equal(true);
  });

  it("reports a wrong bucket, key or endpoint in one line", async () => {
    const absent = await failureOf(ObjectStore.open("s3://no-such-bucket"));
    expect(absent.message).to.equal("SVC_STORAGE: the bucket s3://no-such-bucket does not exist");

    process.env.AWS_ACCESS_KEY_ID = "unknown";
    process.env.AWS_SECRET_ACCESS_KEY = "secret";
    const refused = await failureOf(ObjectStore.open(`s3://${BUCKET}`));
    expect(refused.message).to.match(/rejects the credentials .*AWS_ACCESS_KEY_ID/);
    expect(refused.message).to.not.contain("secret");

    process.env.AWS_ENDPOINT_URL_S3 = "http://127.0.0.1:9";
    const silent = await failureOf(ObjectStore.open(`s3://${BUCKET}`));
    expect(silent.message).to.match(/does not answer \(ECONNREFUSED.*AWS_ENDPOINT_URL_S3/);
    expect(silent.message).to.not.contain("\n");
  });

  it("a store counts as unavailable while it answers 500 or truncates its answers", async () => {
    const path = await file(Buffer.from("x"));
    await store.put("audio/one.flac", path);
    const { AWS_ENDPOINT_URL_S3: endpoint } = process.env;
    let answer = (response: ServerResponse) => void response.writeHead(500).end("<Error/>");
    const failing = createServer((request, response) => {
      request.resume();
      request.on("end", () => answer(response));
    });
    try {
      process.env.AWS_ENDPOINT_URL_S3 = (await listenLocally(failing)).url;
      // Answers 200 so that `open`, which checks the bucket, succeeds.
      answer = (response) => void response.writeHead(200).end();
      const other = await ObjectStore.open(`s3://${BUCKET}`);
      answer = (response) => void response.writeHead(500).end("<Error/>");
      for (const work of [() => other.head("audio/one.flac"), () => other.put("audio/two.flac", path)]) {
        const error = await failureOf(work());
        expect(error).to.include({ name: "StoreError", code: "UNREACHABLE" });
      }
      answer = (response) => {
        response.writeHead(200, { "Content-Length": 100 }).write("half");
        setTimeout(() => response.destroy(), 20);
      };
      const copy = join(directory, "copies", "one.flac");
      const error = await failureOf(other.fetch("audio/one.flac", copy));
      expect(error).to.include({ name: "StoreError", code: "UNREACHABLE" });
      expect(await readdir(join(directory, "copies"))).to.deep.equal([]);
      other.close();
    } finally {
      process.env.AWS_ENDPOINT_URL_S3 = endpoint;
      failing.close();
      failing.closeAllConnections();
    }
  });

  describe("that accepts connections and does not answer", () => {
    /** How the server answers GET and HEAD; null: not at all. */
    let reply: ((response: ServerResponse, path: string) => void) | null;
    let hostile: Server;
    let other: ObjectStore;
    let endpoint: string | undefined;

    beforeEach(async () => {
      reply = (response) => void response.writeHead(200).end();
      hostile = createServer((request, response) => {
        if (reply !== null && request.method !== "PUT") reply(response, request.url as string);
      });
      ({ AWS_ENDPOINT_URL_S3: endpoint } = process.env);
      process.env.AWS_ENDPOINT_URL_S3 = (await listenLocally(hostile)).url;
      other = await ObjectStore.open(`s3://${BUCKET}`);
      reply = null;
    });
    afterEach(() => {
      process.env.AWS_ENDPOINT_URL_S3 = endpoint;
      other.close();
      hostile.closeAllConnections();
      hostile.close();
    });

    const name = "audio/one.flac";
    const calls: [what: string, call: (signal?: AbortSignal) => Promise<unknown>][] = [
      ["a head", (signal) => other.head(name, signal)],
      ["a read", (signal) => other.read(name, null, signal)],
      ["a fetch", (signal) => other.fetch(name, join(directory, "copy", "one.flac"), signal)],
      ["a removal", (signal) => other.remove(name, signal)],
      ["a small upload", async (signal) => other.put(name, await file(Buffer.from("x")), signal)],
      ["a large upload", async (signal) => other.put(name, await file(randomBytes(9 * 2 ** 20)), signal)],
    ];
    const ended = new Error("the job was cancelled");
    for (const [what, call] of calls) {
      it(`ends ${what} when the caller gives up`, async () => {
        const caller = new AbortController();
        const failure = failureOf(call(caller.signal));
        setTimeout(() => caller.abort(ended), 100);
        expect(await failure).to.equal(ended);
      });
    }

    const stalls: [how: string, reply: (response: ServerResponse) => void][] = [
      ["stalls", (response) => void response.writeHead(200, { "Content-Length": 100_000 }).write("some")],
      [
        "sends a byte at a time",
        (response) => {
          response.writeHead(200, { "Content-Length": 100_000 });
          const dripping = setInterval(() => response.write("x"), 20);
          response.on("close", () => clearInterval(dripping));
        },
      ],
    ];
    for (const [how, stalled] of stalls) {
      it(`ends a copy whose content ${how}, and leaves no file and no connection`, async () => {
        const connections: Socket[] = [];
        hostile.on("connection", (socket) => connections.push(socket));
        reply = stalled;
        const caller = new AbortController();
        const copy = join(directory, "copies", "one.flac");
        const failure = failureOf(other.fetch(name, copy, caller.signal));
        while (!(await readdir(join(directory, "copies")).catch(() => [])).length) await sleep(10);
        caller.abort(ended);
        expect(await failure).to.equal(ended);
        expect(await readdir(join(directory, "copies"))).to.deep.equal([]);
        for (const socket of connections.slice(-1)) if (!socket.closed) await once(socket, "close");
      });
    }

    it("does not count the time in which nobody reads a download", async () => {
      reply = (response) => void response.writeHead(200).end(randomBytes(2 ** 20));
      const content = (await other.read(name, null, undefined)) as Readable;
      content.once("readable", () => {});
      await sleep(200);
      expect((await buffer(content)).length).to.equal(2 ** 20);
    });

    it("closes the connection of a download that nobody reads", async () => {
      reply = (response) => void response.writeHead(200).write(randomBytes(2 ** 20));
      const content = (await other.read(name, null, undefined)) as Readable;
      const open = new Promise<number>((resolve) => hostile.getConnections((_, count) => resolve(count)));
      expect(await open).to.be.above(0);
      content.destroy();
      for (;;) {
        const count = await new Promise<number>((resolve) => hostile.getConnections((_, n) => resolve(n)));
        if (count === 0) break;
        await sleep(20);
      }
    });

    it("ends every call and download after 30 seconds with an error that says what to check @slow", async () => {
      reply = (response, path) => {
        for (const [how, stalled] of stalls) if (path.includes(encodeURI(how))) stalled(response);
      };
      const errors = await Promise.all([
        ...calls.map(([, call]) => failureOf(call())),
        ...stalls.map(async ([how]) =>
          failureOf(buffer((await other.read(how, null, undefined)) as Readable)),
        ),
        failureOf(other.putText("fleet/token", "x")),
        failureOf(other.list("fleet/").next()),
        failureOf(ObjectStore.open(`s3://${BUCKET}`)),
      ]);
      for (const { message } of errors) {
        expect(message).to.match(
          /the storage s3:\S+ did not answer within 30 seconds; check AWS_ENDPOINT_URL_S3/,
        );
      }
      expect(await readdir(directory)).to.have.length(2);
    });
  });

  it("keeps local copies for a day after their last use", async () => {
    const copies = new FileStorage(directory, store, "audio/");
    const [used, unused] = [await file(Buffer.from("used")), await file(Buffer.from("unused"))];
    for (const path of [used, unused]) {
      await copies.publish(path);
      await utimes(path, 0, 0);
    }
    expect(await copies.fetch(used)).to.equal(true);
    await copies.removeUnusedCopies();
    expect(await readdir(directory)).to.deep.equal([basename(used)]);
    expect(await copies.fetch(unused)).to.equal(true);
    expect(await readFile(unused, "utf8")).to.equal("unused");
    const folder = join(directory, "folder of another machine");
    const other = new FileStorage(folder, store, "audio/");
    expect(await other.fetch(join(folder, basename(used)))).to.equal(true);
  });

  it("servers that share a folder need no object store; a missing folder means that the storage is unavailable", async () => {
    const songs = new FileStorage(directory, null, "audio/");
    expect(await songs.fetch(join(directory, "none.flac"))).to.equal(false);
    const path = await file(Buffer.from("song"));
    const { mtimeMs } = await stat(path);
    expect(await songs.fetch(path)).to.equal(true);
    expect((await stat(path)).mtimeMs).to.equal(mtimeMs);
    const lost = new FileStorage(join(directory, "lost"), null, "audio/");
    const error = await failureOf(lost.fetch(join(directory, "lost", "song.flac")));
    expect(error).to.include({ code: "UNREACHABLE" });
  });

  it("distinguishes an unavailable store from a missing object", async () => {
    const path = await file(Buffer.from("x"));
    await store.put("audio/one.flac", path);
    await server.close();
    for (const work of [() => store.head("audio/one.flac"), () => store.put("audio/two.flac", path)]) {
      const error = await failureOf(work());
      expect(error.name).to.equal("StoreError");
      expect(error.message).to.contain("does not answer");
    }
    expect(await readdir(directory)).to.have.length(1);
  });
});
