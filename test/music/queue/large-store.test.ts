import { join } from "node:path";
import { expect } from "chai";
import { LmdbTaskStore } from "../../../src/music/queue/lmdb-store.js";
import { endServed, ServedProcess } from "../../e2e/served-process.js";
import { shortSong } from "../live-server.js";
import { makeRequest, makeTask, temporaryDirectory } from "../tasks.js";

/** Stores cancelled tasks with requests of 100 kB each. */
async function fillStore(directory: string, count: number): Promise<void> {
  const store = LmdbTaskStore.open(join(directory, "tasks"));
  const request = makeRequest({ prompt: "x".repeat(100_000) });
  const now = Date.now();
  for (let sequence = 0; sequence < count; sequence++) {
    await store.add(
      makeTask({ sequence, state: "failed", finishedAtMs: now, error: "Cancelled by user", request }),
    );
  }
  await store.close();
}

describe("loading of a large task store", () => {
  afterEach(endServed);

  it("a server loads a store larger than the JavaScript heap, cleans it up and accepts tasks @slow", async () => {
    const directory = temporaryDirectory();
    await fillStore(directory, 3000);
    const server = await ServedProcess.startStub(directory, 0, {}, { maxHeapMiB: 96 });
    const { jobs } = (await server.client.get("/v1/stats")).body.data;
    expect(jobs.failed).to.be.within(1, 2999);
    expect((await server.client.finished(await server.client.submit(shortSong))).item.status).to.equal(1);
    expect(await server.end("SIGTERM")).to.equal(0);
  });
});
