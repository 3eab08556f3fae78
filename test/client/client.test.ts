import { readFileSync } from "node:fs";
import { createServer, type Server, type ServerResponse } from "node:http";
import { join } from "node:path";
import { expect } from "chai";
import { Carillon, CarillonError, TaskFailedError, type TaskProgress } from "../../src/client/index.js";
import { endServed, ServedProcess } from "../e2e/served-process.js";
import { failureOf } from "../failures.js";
import { listenLocally } from "../local-server.js";
import { writeRecording } from "../music/audio/recordings.js";
import { serverForAll, shortSong } from "../music/live-server.js";
import { temporaryDirectory } from "../music/tasks.js";

describe("the client", () => {
  const directory = temporaryDirectory();
  let server: ServedProcess;
  let carillon: Carillon;
  const start = async (settings: Record<string, string> = {}) => {
    server = await ServedProcess.startStub(directory, 300, { SVC_API_KEY: "k1", ...settings });
    carillon = new Carillon({ url: server.client.url, key: "k1" });
  };

  before(() => start());
  after(endServed);

  it("imports only types and time limits from the server, so that browsers can load it", () => {
    const read = (name: string) => readFileSync(new URL(`../../src/${name}`, import.meta.url), "utf8");
    const imports = read("client/index.ts").match(/^import .*/gm) as string[];
    const code = imports.filter((line) => !line.startsWith("import type "));
    expect(code).to.deep.equal(['import { withTimeLimit } from "../system/time-limit.js";']);
    expect(read("system/time-limit.ts")).to.not.match(/^import /m);
    for (const name of ["client/index.ts", "system/time-limit.ts"]) {
      expect(read(name)).to.not.match(/\bimport\(|\brequire\(|^export .* from /m);
    }
  });

  it("makes a song, reports progress, downloads, names, lists and deletes it", async () => {
    const seen: TaskProgress[] = [];
    const task = await carillon.make(
      { ...shortSong, prompt: "a waltz", seed: 5, use_random_seed: false },
      {
        onProgress: (progress) => seen.push(progress),
      },
    );
    expect(seen[0]).to.deep.include({ stage: "queued", position: 1 });
    expect(seen.map(({ stage }) => stage)).to.include("Preparing inputs...");
    const [song] = task.songs;
    expect(song?.seed).to.equal(5);
    const audio = await carillon.download(song as { file: string });
    expect(audio.size).to.equal(song?.bytes);
    expect((await fetch(carillon.audioUrl(song as { file: string }))).status).to.equal(200);
    expect((await carillon.mark(task.task_id, { title: "Waltz" })).title).to.equal("Waltz");
    const page = await carillon.list({ search: "waltz", state: "succeeded", limit: 5 });
    expect(page.tasks.map(({ task_id }) => task_id)).to.deep.equal([task.task_id]);
    expect(await carillon.delete(task.task_id, "succeeded")).to.deep.equal({
      task_id: task.task_id,
      status: "deleted",
    });
    expect(await failureOf(carillon.task(task.task_id))).to.include({ status: 404 });
  });

  it("rejects with an exception of onProgress", async () => {
    const wrong = new Error("no display");
    const onProgress = () => {
      throw wrong;
    };
    expect(await failureOf(carillon.make(shortSong, { onProgress }))).to.equal(wrong);
    const rejecting = { onProgress: async () => onProgress() };
    expect(await failureOf(carillon.make(shortSong, rejecting))).to.equal(wrong);
  });

  it("the client reports invalid parameters and a wrong key", async () => {
    const error = await failureOf(carillon.submit({ task_type: "cover" }));
    expect(error).to.be.instanceOf(CarillonError).and.include({ status: 400 });
    expect(error.message).to.include("task_type cover needs a source");
    const wrongKey = new Carillon({ url: server.client.url, key: "k2" });
    expect(await failureOf(wrongKey.list())).to.include({ status: 401, message: "Invalid API key" });
  });

  it("sends a recording as a file in a request that also has list parameters", async () => {
    const parameters = { ...shortSong, task_type: "complete" as const, track_classes: ["drums", "bass"] };
    const error = await failureOf(carillon.submit({ ...parameters, src_audio: new Blob(["no audio"]) }));
    expect(error.message).to.match(/^src_audio/);
  });

  it("sends a list of adapters as JSON in a request with a recording", async () => {
    const parameters = { ...shortSong, task_type: "cover" as const, loras: [{ path: "none", scale: 0.5 }] };
    const error = await failureOf(carillon.submit({ ...parameters, src_audio: new Blob(["no audio"]) }));
    expect(error.message).to.match(/^(src_audio|loras.*none)/);
  });

  it("calls endpoints that have no method of their own", async () => {
    const { jobs } = await carillon.call<{ jobs: object }>("GET", "/v1/stats");
    expect(jobs).to.include.keys("queued", "succeeded");
    expect(await carillon.call("GET", "/openapi.json")).to.include.keys("openapi", "paths");
    expect(await carillon.call("POST", "/query_result", { task_id_list: ["none"] })).to.have.length(1);
    const wrong = await failureOf(carillon.call("POST", "/v1/lora/load", { lora_path: "" }));
    expect(wrong).to.be.instanceOf(CarillonError).and.include({ status: 400 });
  });

  it("sends requests with the given function, and passes its errors on", async () => {
    const wrong = new Error("no network");
    const offline = new Carillon({ url: server.client.url, fetch: () => Promise.reject(wrong) });
    expect(await failureOf(offline.list())).to.equal(wrong);
  });

  it("makes one task from two submissions with the same idempotency key", async () => {
    const idempotencyKey = "the-only-one";
    const [first, second] = await Promise.all(
      [1, 2].map(() => carillon.submit(shortSong, { idempotencyKey })),
    );
    expect(second).to.deep.equal(first);
  });

  it("cancels its task on abort, and reports a task that another request cancelled", async () => {
    const giveUp = new AbortController();
    const given = carillon.make(shortSong, {
      signal: giveUp.signal,
      onProgress: () => giveUp.abort(new Error("enough")),
    });
    expect((await failureOf(given)).message).to.equal("enough");
    const [latest] = (await carillon.list({ limit: 1 })).tasks;
    expect(latest).to.include({ state: "failed", error: "Cancelled by user" });
    const { task_id: id } = await carillon.submit(shortSong);
    const waiting = failureOf(carillon.wait(id));
    await carillon.cancel(id);
    expect(await waiting)
      .to.be.instanceOf(TaskFailedError)
      .and.include({ message: "Cancelled by user" });
    expect(await failureOf(carillon.wait("no-such-task"))).to.include({ status: 404 });
  });

  it("keeps waiting while the service is killed and restarted", async () => {
    const { task_id: id } = await carillon.submit({ ...shortSong, prompt: "through the night" });
    const { port } = new URL(server.client.url);
    const waiting = carillon.wait(id);
    await server.end("SIGKILL");
    await start({ SVC_API_PORT: port });
    expect(await waiting).to.include({ state: "succeeded", prompt: "through the night" });
  });

  it("the client polls if a proxy holds back the event stream", async () => {
    const proxy: Server = createServer((request, response) => {
      if (request.url?.endsWith("/events")) return;
      void fetch(server.client.url + request.url, { headers: { "X-API-Key": "k1" } }).then(async (answer) => {
        response.writeHead(answer.status).end(await answer.text());
      });
    });
    proxy.on("error", () => {});
    const { url } = await listenLocally(proxy);
    const behind = new Carillon({ url, key: "k1", silenceSeconds: 0.2 });
    const { task_id: id } = await carillon.submit(shortSong);
    expect(await behind.wait(id)).to.include({ state: "succeeded" });
    proxy.closeAllConnections();
    await new Promise((resolve) => proxy.close(resolve));
  });

  it("gives up when the service stays unreachable", async () => {
    const unreachable = new Carillon({ url: "http://127.0.0.1:9", patienceSeconds: 0 });
    expect((await failureOf(unreachable.wait("any"))).message).to.include("fetch failed");
  });

  describe("of a service that accepts and does not answer", () => {
    let silent: Server;
    let hung: Carillon;
    let url: string;
    /** Sends the beginning of an answer; null: nothing. */
    let begin: ((response: ServerResponse) => void) | null;

    before(async () => {
      silent = createServer((_request, response) => begin?.(response));
      ({ url } = await listenLocally(silent));
      hung = new Carillon({ url, silenceSeconds: 0.2, answerSeconds: 0.3, patienceSeconds: 0.1 });
    });
    beforeEach(() => {
      begin = null;
    });
    after(() => {
      silent.closeAllConnections();
      silent.close();
    });

    const song = { file: "/v1/audio?path=a.mp3" };
    const calls: [name: string, call: () => Promise<unknown>][] = [
      ["submit", () => hung.submit({ prompt: "a" })],
      ["submit of a file", () => hung.submit({ src_audio: new Blob(["x"]) })],
      ["make", () => hung.make({ prompt: "a" })],
      ["task", () => hung.task("a")],
      ["list", () => hung.list()],
      ["retake", () => hung.retake("a")],
      ["mark", () => hung.mark("a", { title: "b" })],
      ["cancel", () => hung.cancel("a")],
      ["delete", () => hung.delete("a", "succeeded")],
      ["wait", () => hung.wait("a")],
      ["download", () => hung.download(song)],
    ];
    for (const [name, call] of calls) {
      it(`${name} fails after a time limit`, async () => {
        expect((await failureOf(call())).message).to.match(/did not answer within 0\.[23]\d* seconds$/);
      });
    }

    it("a call fails after a time limit if the answer stalls after its beginning", async () => {
      begin = (response) => response.writeHead(200, { "Content-Length": 1000 }).write('{"data":');
      for (const call of [() => hung.task("a"), () => hung.download(song)]) {
        expect((await failureOf(call())).message).to.include("did not answer within");
      }
      begin = (response) => response.writeHead(503, { "Content-Length": 1000 }).write('{"detail":');
      expect((await failureOf(hung.task("a"))).message).to.include("did not answer within");
    });

    it("a download may take longer than the time limit as long as data arrives", async () => {
      begin = (response) => {
        let sent = 0;
        response.writeHead(200, { "Content-Type": "audio/mpeg" });
        const sending = setInterval(() => {
          response.write("x");
          if (++sent === 10) {
            clearInterval(sending);
            response.end();
          }
        }, 60);
      };
      const audio = await hung.download(song);
      expect([audio.size, audio.type]).to.deep.equal([10, "audio/mpeg"]);
    });

    it("an abort ends a call at once with its reason", async () => {
      const patient = new Carillon({ url });
      const reason = new Error("enough");
      for (const call of [
        (signal: AbortSignal) => patient.list({}, { signal }),
        (signal: AbortSignal) => patient.wait("a", { signal }),
        (signal: AbortSignal) => patient.download(song, { signal }),
      ]) {
        const leaving = new AbortController();
        const failure = failureOf(call(leaving.signal));
        leaving.abort(reason);
        expect(await failure).to.equal(reason);
      }
    });
  });
});

describe("encoding and decoding by the client", () => {
  const SECONDS = 2;
  const server = serverForAll();

  it("encodes a recording to latents, decodes them, and makes a song of them", async () => {
    const carillon = new Carillon({ url: server.url });
    const recording = await carillon.decode(await carillon.encode(beep()), { audio_format: "wav" });
    const header = Buffer.from(await recording.slice(0, 44).arrayBuffer());
    expect(header.toString("latin1", 0, 4)).to.equal("RIFF");
    expect(header.readUInt32LE(40)).to.equal(4 * 48_000 * SECONDS);
    const stages: string[] = [];
    const latents = await carillon.encode(recording, {}, { onProgress: ({ stage }) => stages.push(stage) });
    expect(stages).to.include("queued");
    const cover = { ...shortSong, task_type: "cover" as const, src_latents: latents };
    expect((await carillon.make(cover)).songs[0]?.metas.duration).to.equal(SECONDS);
  });

  it("rejects what is no recording and no latents", async () => {
    const carillon = new Carillon({ url: server.url });
    const wrong = new Blob(["neither"]);
    expect(await failureOf(carillon.encode(wrong))).to.include({ status: 400 });
    expect(await failureOf(carillon.decode(wrong))).to.include({ status: 400 });
  });

  function beep(): Blob {
    const path = writeRecording(join(temporaryDirectory(), "beep.flac"), { seconds: SECONDS });
    return new Blob([readFileSync(path)]);
  }
});
