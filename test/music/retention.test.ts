import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { pino } from "pino";
import { AudioFiles } from "../../src/music/audio-files.js";
import { LmdbTaskStore } from "../../src/music/lmdb-store.js";
import { Retention, type RetentionLimits } from "../../src/music/retention.js";
import { JobStatistics } from "../../src/music/statistics.js";
import type { Task } from "../../src/music/store.js";
import { makeResult, makeTask, temporaryDirectory } from "./tasks.js";

const nowMs = 1_765_000_000_000;

describe("Retention", () => {
  let store: LmdbTaskStore;
  let files: AudioFiles;
  let statistics: JobStatistics;

  beforeEach(() => {
    const directory = temporaryDirectory();
    store = LmdbTaskStore.open(join(directory, "tasks"));
    files = new AudioFiles(join(directory, "audio"));
    statistics = new JobStatistics(5, 50);
  });

  afterEach(() => store.close());

  /** A finished task with one file of so many bytes. */
  async function finishedTask(ageSeconds: number, bytes: number): Promise<Task> {
    const task = makeTask({ state: "succeeded", finishedAtMs: nowMs - ageSeconds * 1000 });
    const name = files.nameOf(task.id, 0, "mp3");
    writeFileSync(files.pathOf(name), Buffer.alloc(bytes));
    task.result = makeResult({ audioFiles: [{ name, bytes }] });
    await store.add(task);
    statistics.moved(null, "succeeded");
    return task;
  }

  async function sweep(limits: Partial<RetentionLimits>): Promise<void> {
    const all = { maxAgeSeconds: 0, maxAudioBytes: 0, ...limits };
    const retention = new Retention(store, files, statistics, all, pino({ level: "silent" }));
    await retention.removeOrphans();
    await retention.sweep(nowMs);
  }

  async function isKept(task: Task): Promise<boolean> {
    const record = (await store.get(task.id)) !== undefined;
    const audio = existsSync(files.pathOf(files.nameOf(task.id, 0, "mp3")));
    expect(record).to.equal(audio);
    return record;
  }

  it("lets go of what is too old, record and audio", async () => {
    const old = await finishedTask(61, 10);
    const young = await finishedTask(59, 10);
    await sweep({ maxAgeSeconds: 60 });
    expect([await isKept(old), await isKept(young)]).to.deep.equal([false, true]);
    expect(statistics.counts).to.include({ total: 1, succeeded: 1 });
  });

  it("lets go of the oldest until the rest fits", async () => {
    const tasks = [await finishedTask(1, 40), await finishedTask(3, 40), await finishedTask(2, 40)];
    await sweep({ maxAudioBytes: 100 });
    expect(await Promise.all(tasks.map(isKept))).to.deep.equal([true, false, true]);
  });

  it("keeps the newest song even if it is larger than all that may be", async () => {
    const tasks = [await finishedTask(2, 40), await finishedTask(1, 400)];
    await sweep({ maxAudioBytes: 100 });
    expect(await Promise.all(tasks.map(isKept))).to.deep.equal([false, true]);
  });

  it("keeps everything without limits, and what still waits with any", async () => {
    const old = await finishedTask(1e6, 1000);
    await sweep({});
    expect(await isKept(old)).to.equal(true);
    const waiting = makeTask({ createdAtMs: 0 });
    await store.add(waiting);
    await sweep({ maxAgeSeconds: 1 });
    expect((await store.get(waiting.id))?.state).to.equal("queued");
  });

  it("removes audio that no task names, and nothing that is not its own", async () => {
    const kept = await finishedTask(1, 10);
    const stranger = makeTask();
    const orphans = [files.nameOf(stranger.id, 0, "wav"), `${files.nameOf(kept.id, 1, "mp3")}.part`];
    for (const name of [...orphans, "readme.txt"]) writeFileSync(files.pathOf(name), "x");
    await sweep({});
    for (const name of orphans) expect(existsSync(files.pathOf(name)), name).to.equal(false);
    expect(existsSync(files.pathOf("readme.txt"))).to.equal(true);
    expect(await isKept(kept)).to.equal(true);
  });
});
