import { connect } from "node:net";
import { join } from "node:path";
import { expect } from "chai";
import { LmdbTaskStore } from "../../src/music/queue/lmdb-store.js";
import type { Task } from "../../src/music/queue/store.js";
import { shortSong } from "../music/live-server.js";
import { makeTask, temporaryDirectory } from "../music/tasks.js";
import { endServed, ServedProcess } from "./served-process.js";

/** One step of the model takes longer than a server has to end. */
const hugeSong = { ...shortSong, audio_duration: 600, inference_steps: 20, batch_size: 4 };

/** Cancelled tasks with requests of 100 kB. */
async function fillStore(directory: string, count: number): Promise<void> {
  const store = LmdbTaskStore.open(join(directory, "tasks"));
  const request = { prompt: "x".repeat(100_000) } as Task["request"];
  const now = Date.now();
  for (let sequence = 0; sequence < count; sequence++) {
    await store.add(
      makeTask({ sequence, state: "failed", finishedAtMs: now, error: "Cancelled by user", request }),
    );
  }
  await store.close();
}

describe("the end of a server", () => {
  afterEach(endServed);

  it("waits for no step of a model and for no half of a request; the task goes back", async () => {
    const directory = temporaryDirectory();
    const server = await ServedProcess.start(directory);
    const id = await server.client.submit(hugeSong);
    await server.client.begun(id);
    const halfSent = connect(Number(new URL(server.client.url).port), "127.0.0.1");
    halfSent.on("error", () => {});
    halfSent.write("POST /release_task HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{");
    // Without the limit this takes half a minute; killed from inside, it would have no exit code.
    expect(await server.end("SIGTERM")).to.equal(0);

    const second = await ServedProcess.startStub(directory, 60_000);
    await second.client.begun(id);
    expect(second.log).to.not.include("task was interrupted");
    expect(await second.end("SIGKILL")).to.equal(null);
  });

  it("comes with one line and exit code 1 where nobody caught an error, and the running task goes back", async () => {
    const directory = temporaryDirectory();
    const server = await ServedProcess.startStub(directory, 60_000);
    const id = await server.client.submit(shortSong);
    await server.client.begun(id);
    expect(await server.end("SIGUSR2")).to.equal(1);
    expect(server.log.split("\n").filter((line) => line.includes("nobody caught this"))).to.have.length(1);

    const second = await ServedProcess.startStub(directory, 0);
    expect((await second.client.finished(id)).item.status).to.equal(1);
    expect(second.log).to.not.include("task was interrupted");
    expect(await second.end("SIGTERM")).to.equal(0);
  });

  it("does not fail a task that kills from outside meet three times", async () => {
    const directory = temporaryDirectory();
    let server = await ServedProcess.startStub(directory, 60_000);
    const id = await server.client.submit(shortSong);
    for (let kill = 0; kill < 3; kill++) {
      await server.client.begun(id);
      await server.end("SIGKILL");
      server = await ServedProcess.startStub(directory, kill < 2 ? 60_000 : 0);
      expect((await server.client.query(id)).item.status).to.equal(0);
    }
    expect((await server.client.finished(id)).item.status).to.equal(1);
    expect(await server.end("SIGTERM")).to.equal(0);
  });

  it("starts and sweeps with thousands of large tasks and little memory", async () => {
    const directory = temporaryDirectory();
    await fillStore(directory, 3000);
    const server = await ServedProcess.startStub(directory, 0, {}, { maxHeapMiB: 96 });
    const { jobs } = (await server.client.get("/v1/stats")).body.data;
    expect(jobs.failed).to.be.within(1, 2999);
    expect((await server.client.finished(await server.client.submit(shortSong))).item.status).to.equal(1);
    expect(await server.end("SIGTERM")).to.equal(0);
  });
});
