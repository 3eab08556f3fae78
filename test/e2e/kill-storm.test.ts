import { readdirSync } from "node:fs";
import { basename, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { pino } from "pino";
import { openTaskStore } from "../../src/music/queue/store-recovery.js";
import { type Client, type SongRecord, shortSong } from "../music/live-server.js";
import { temporaryDirectory } from "../music/tasks.js";
import { endServed, ServedProcess } from "./served-process.js";

interface Storm {
  kills: number;
  /** A server is killed at a random moment, at most this long after its start. */
  maxLifeMs: number;
  start(directory: string): Promise<ServedProcess>;
}

/** Submits tasks until the server no longer responds. Adds the acknowledged ids to `accepted`. */
async function submitUntilGone(client: Client, accepted: string[]): Promise<void> {
  try {
    for (;;) {
      accepted.push(await client.submit(shortSong));
      await sleep(Math.random() * 100);
    }
  } catch {
    // The server was killed, or its queue is full.
  }
}

/** Repeatedly starts a server, submits tasks and kills the server. Returns the ids of all acknowledged tasks. */
async function storm(directory: string, { kills, maxLifeMs, start }: Storm): Promise<string[]> {
  const accepted: string[] = [];
  for (let kill = 0; kill < kills; kill++) {
    const server = await start(directory);
    const submitting = submitUntilGone(server.client, accepted);
    await sleep(Math.random() * maxLifeMs);
    expect(await server.end("SIGKILL")).to.equal(null);
    await submitting;
  }
  return accepted;
}

/** Checks that every task has succeeded and has its song, and that there are no leftover files. */
async function expectNothingLost(
  directory: string,
  ids: readonly string[],
  last: ServedProcess,
): Promise<void> {
  const files: string[] = [];
  for (const id of ids) {
    const { item, records } = await last.client.finished(id);
    expect(item.status, item.error).to.equal(1);
    for (const record of records as SongRecord[]) {
      expect((await last.client.download(record)).length).to.be.greaterThan(0);
      files.push(basename(decodeURIComponent(record.file)));
    }
  }
  const { jobs } = (await last.client.get("/v1/stats")).body.data;
  // A task may be stored although the kill cut off its response.
  while ((await last.client.get("/v1/stats")).body.data.jobs.succeeded < jobs.total) await sleep(50);
  expect(await last.end("SIGTERM")).to.equal(0);

  const errors: object[] = [];
  const log = pino({ level: "warn" }, { write: (line) => errors.push(JSON.parse(line)) });
  const { store, backup } = await openTaskStore(directory, log);
  const stored: string[] = [];
  for await (const { task } of store.scan()) {
    expect(task?.state).to.equal("succeeded");
    stored.push(...(task?.result?.audioFiles.map(({ name }) => name) ?? []));
  }
  await backup.close(0);
  await store.close();
  expect(errors.filter((line) => "level" in line && line.level === 50)).to.deep.equal([]);
  expect(stored).to.include.members(files);
  expect(readdirSync(join(directory, "api_audio"))).to.have.members(stored);
  expect(readdirSync(directory)).to.not.include("quarantine");
}

describe("repeated kills of a server at random times", function () {
  this.timeout(600_000);
  afterEach(endServed);

  it("killing the server loses no task or song, with a stub engine @slow", async () => {
    const directory = temporaryDirectory();
    const start = (place: string) => ServedProcess.startStub(place, 60, { SVC_QUEUE_MAXSIZE: "0" });
    const ids = await storm(directory, { kills: 12, maxLifeMs: 800, start });
    await expectNothingLost(directory, ids, await start(directory));
    console.log(`      ${ids.length} tasks, 12 kills`);
  });

  it("killing the server loses no task or song, with the real engine @slow", async () => {
    const directory = temporaryDirectory();
    const start = (place: string) => ServedProcess.start(place);
    const ids = await storm(directory, { kills: 3, maxLifeMs: 1500, start });
    await expectNothingLost(directory, ids, await start(directory));
    console.log(`      ${ids.length} tasks, 3 kills`);
  });
});
