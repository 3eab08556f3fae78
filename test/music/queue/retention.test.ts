import { existsSync, readdirSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { pino } from "pino";
import { AudioFiles } from "../../../src/music/audio/audio-files.js";
import type { EmbeddedQueue } from "../../../src/music/queue/embedded-queue.js";
import { LmdbTaskStore } from "../../../src/music/queue/lmdb-store.js";
import { Retention, RetentionClock, type RetentionLimits } from "../../../src/music/queue/retention.js";
import type { Task } from "../../../src/music/queue/store.js";
import { OwnDeletionRecord } from "../../../src/music/storage/deletion-record.js";
import { Deletions } from "../../../src/music/storage/deletions.js";
import type { FileStorage } from "../../../src/music/storage/file-storage.js";
import { idleQueue, makeRequest, makeResult, makeTask, temporaryDirectory } from "../tasks.js";

const nowMs = 1_765_000_000_000;
const hourMs = 3_600_000;
const silent = pino({ level: "silent" });

describe("retention of tasks and audio", () => {
  let store: LmdbTaskStore;
  let files: AudioFiles;
  let deletions: Deletions;
  let queue: EmbeddedQueue;

  beforeEach(() => {
    const directory = temporaryDirectory();
    store = LmdbTaskStore.open(join(directory, "tasks"));
    files = new AudioFiles(join(directory, "audio"));
    deletions = new Deletions(new OwnDeletionRecord(null, silent), [files.storage], silent);
  });

  afterEach(() => store.close());

  /** A finished task with one audio file of `bytes` bytes. */
  async function finishedTask(ageSeconds: number, bytes: number): Promise<Task> {
    const task = makeTask({ state: "succeeded", finishedAtMs: nowMs - ageSeconds * 1000 });
    const name = files.nameOf(task.id, 0, "mp3");
    writeFileSync(files.pathOf(name), Buffer.alloc(bytes));
    task.result = makeResult({ audioFiles: [{ name, bytes }] });
    await store.add(task);
    return task;
  }

  async function sweep(limits: Partial<RetentionLimits>): Promise<void> {
    const all = { maxAgeSeconds: 0, maxAudioBytes: 0, maxRecordBytes: 0, ...limits };
    queue = idleQueue(store);
    await queue.open(() => {});
    await new Retention(queue, deletions, all, silent).sweep(nowMs);
  }

  async function isKept(task: Task): Promise<boolean> {
    const record = (await store.get(task.id)) !== undefined;
    const audio = existsSync(files.pathOf(files.nameOf(task.id, 0, "mp3")));
    expect(record).to.equal(audio);
    return record;
  }

  it("deletes every file that the storage permits, although it refuses others for ever", async () => {
    const refused = Array.from({ length: 40 }, (_, index) => `audio/refused-${index}.mp3`);
    const names = [...refused, "audio/permitted.mp3"];
    const remove = async (name: string) => {
      if (name.startsWith("refused")) throw new Error("403");
    };
    const storage = { prefix: "audio/", remove } as unknown as FileStorage;
    const record = new OwnDeletionRecord(null, silent);
    await record.add("a removed task", names);
    await new Deletions(record, [storage], silent).sweep(async () => undefined);
    expect((await record.all()).map(([name]) => name)).to.deep.equal(refused);
  });

  it("keeps the record of files whose task was removed while a sweep ran, if the storage refuses to delete them", async () => {
    const remove = async () => {
      throw new Error("403");
    };
    const storage = { prefix: "audio/", remove } as unknown as FileStorage;
    const record = new OwnDeletionRecord(null, silent);
    const refused = new Deletions(record, [storage], silent);
    const { id } = await finishedTask(0, 1000);
    queue = idleQueue(store);
    await queue.open(() => {});
    const plan = async (task: string, names: readonly string[]) => {
      await refused.plan(task, names);
      await refused.sweep(async () => "succeeded");
    };
    const deletions = { plan, discard: refused.discard.bind(refused), sweep: refused.sweep.bind(refused) };
    const limits = { maxAgeSeconds: 0, maxAudioBytes: 0, maxRecordBytes: 0 };
    expect(await new Retention(queue, deletions, limits, silent).remove(id)).to.equal(true);
    expect(await record.all()).to.deep.equal([[`audio/${files.nameOf(id, 0, "mp3")}`, id]]);
  });

  it("keeps favourites of any age and size", async () => {
    const favorite = await finishedTask(600, 1000);
    await store.update(favorite.id, (task) => ({ ...task, favorite: true }));
    const other = await finishedTask(500, 10);
    const newest = await finishedTask(400, 10);
    await sweep({ maxAudioBytes: 100 });
    expect([await isKept(favorite), await isKept(other), await isKept(newest)]).to.deep.equal([
      true,
      false,
      true,
    ]);
    await sweep({ maxAgeSeconds: 60 });
    expect([await isKept(favorite), await isKept(newest)]).to.deep.equal([true, false]);
  });

  it("removes tasks beyond the maximum age with their audio", async () => {
    const old = await finishedTask(61, 10);
    const young = await finishedTask(59, 10);
    await sweep({ maxAgeSeconds: 60 });
    expect([await isKept(old), await isKept(young)]).to.deep.equal([false, true]);
    expect((await queue.statistics()).counts).to.include({ total: 1, succeeded: 1 });
  });

  it("removes temporary tasks after an hour, unless they were kept", async () => {
    const tasks = [await finishedTask(3700, 10), await finishedTask(3700, 10), await finishedTask(3500, 10)];
    for (const { id } of tasks)
      await store.update(id, (task) => ({ ...task, request: { ...task.request, isTemporary: true } }));
    await store.update((tasks[1] as Task).id, (task) => ({ ...task, isTemporary: false }));
    await sweep({});
    expect(await Promise.all(tasks.map(isKept))).to.deep.equal([false, true, true]);
  });

  it("removes the oldest tasks until the audio fits the limit", async () => {
    const tasks = [await finishedTask(1, 40), await finishedTask(3, 40), await finishedTask(2, 40)];
    await sweep({ maxAudioBytes: 100 });
    expect(await Promise.all(tasks.map(isKept))).to.deep.equal([true, false, true]);
  });

  it("forecasts which tasks are removed, and when", async () => {
    const old = await finishedTask(30, 40);
    const starred = await finishedTask(20, 40);
    await store.update(starred.id, (task) => ({ ...task, favorite: true }));
    const young = await finishedTask(10, 40);
    queue = idleQueue(store);
    await queue.open(() => {});
    const forecast = (limits: Partial<RetentionLimits>) => {
      const all = { maxAgeSeconds: 0, maxAudioBytes: 0, maxRecordBytes: 0, ...limits };
      const retention = new Retention(queue, deletions, all, silent);
      return retention.forecast([old.id, starred.id, young.id]);
    };
    expect(await forecast({})).to.deep.equal({
      bytes: 120,
      max_bytes: null,
      max_age_seconds: null,
      expiries: {},
    });
    const { expiries, ...totals } = await forecast({ maxAudioBytes: 150, maxAgeSeconds: 60 });
    expect(totals).to.deep.equal({ bytes: 120, max_bytes: 150, max_age_seconds: 60 });
    const time = nowMs / 1000 + 60;
    expect(expiries).to.deep.equal({
      [old.id]: { time: time - 30, after_bytes: 30 },
      [young.id]: { time: time - 10, after_bytes: 70 },
    });
  });

  it("keeps the newest song even if it exceeds the limit", async () => {
    const tasks = [await finishedTask(2, 40), await finishedTask(1, 400)];
    await sweep({ maxAudioBytes: 100 });
    expect(await Promise.all(tasks.map(isKept))).to.deep.equal([false, true]);
  });

  it("keeps everything if no limits are set, and never removes waiting tasks", async () => {
    const old = await finishedTask(1e6, 1000);
    await sweep({});
    expect(await isKept(old)).to.equal(true);
    const waiting = makeTask({ createdAtMs: 0 });
    await store.add(waiting);
    await sweep({ maxAgeSeconds: 1 });
    expect((await store.get(waiting.id))?.state).to.equal("queued");
  });

  it("removes the oldest tasks until the records fit the limit, even tasks without audio", async () => {
    const request = makeRequest({ prompt: "x".repeat(10_000) });
    const tasks = [3, 1, 2].map((ageSeconds) =>
      makeTask({ state: "failed", finishedAtMs: nowMs - ageSeconds * 1000, request }),
    );
    for (const task of tasks) await store.add(task);
    await sweep({ maxRecordBytes: 25_000 });
    const kept = await Promise.all(tasks.map(({ id }) => store.get(id)));
    expect(kept.map((task) => task !== undefined)).to.deep.equal([false, true, true]);
  });
});

describe("clean-up of AudioFiles", () => {
  it("removes partial and unlisted audio files, and moves songs without a task to quarantine", async () => {
    const root = temporaryDirectory();
    const files = new AudioFiles(join(root, "audio"));
    const quarantine = join(root, "quarantine");
    const [known, damaged, withoutTask] = [makeTask(), makeTask(), makeTask()];
    const song = files.nameOf(known.id, 0, "mp3");
    const unreadable = files.nameOf(damaged.id, 0, "flac");
    const lost = files.nameOf(withoutTask.id, 0, "wav");
    const leftovers = [files.nameOf(known.id, 1, "mp3"), `${lost}.part`];
    for (const name of [song, unreadable, lost, ...leftovers, "readme.txt"]) {
      writeFileSync(files.pathOf(name), name);
    }
    const moved = await files.clearOrphans(
      (id) => (id === damaged.id ? "all" : id === known.id ? [song] : null),
      quarantine,
    );
    expect(moved).to.deep.equal([lost]);
    expect(readdirSync(files.directory)).to.have.members([song, unreadable, "readme.txt"]);
    expect(readdirSync(quarantine)).to.deep.equal([lost]);
  });
});

describe("clean-up of AudioFiles that servers share", () => {
  it("in a shared folder, AudioFiles removes only partial files older than a day", async () => {
    const files = new AudioFiles(join(temporaryDirectory(), "audio"));
    const [dead, alive] = [makeTask(), makeTask()];
    const unfinished = (id: string) => `${files.nameOf(id, 0, "mp3")}.part`;
    const song = files.nameOf(dead.id, 1, "mp3");
    const old = [unfinished(dead.id), song, "notes.part"];
    for (const name of [...old, unfinished(alive.id)]) writeFileSync(files.pathOf(name), name);
    const twoDaysAgo = Date.now() / 1000 - 2 * 24 * 60 * 60;
    for (const name of old) utimesSync(files.pathOf(name), twoDaysAgo, twoDaysAgo);
    const { now } = Date;
    // Simulates a server whose clock is ahead of the file system's clock.
    Date.now = () => now() + 3 * 24 * hourMs;
    try {
      await files.removeAbandoned();
    } finally {
      Date.now = now;
    }
    expect(readdirSync(files.directory)).to.have.members([song, "notes.part", unfinished(alive.id)]);
  });
});

describe("RetentionClock", () => {
  let file: string;

  beforeEach(() => {
    file = join(temporaryDirectory(), "clock.json");
  });

  /** Starts a clock at system time `wallMs`. Returns the time of the clock, rounded to hours. */
  async function started(wallMs: number, newestMs: number | null = null): Promise<number> {
    const clock = new RetentionClock(file, 24 * hourMs, silent, () => wallMs);
    await clock.start(newestMs);
    return Math.round(clock.nowMs() / hourMs) * hourMs;
  }

  const first = Math.round(nowMs / hourMs) * hourMs;

  it("the clock counts at most a day of downtime, and none if the system clock was set back", async () => {
    expect(await started(first)).to.equal(first);
    expect(await started(first + 2 * hourMs)).to.equal(first + 2 * hourMs);
    expect(await started(first + 8 * 24 * hourMs)).to.equal(first + 26 * hourMs);
    expect(await started(first)).to.equal(first + 26 * hourMs);
    expect(await started(first + hourMs)).to.equal(first + 27 * hourMs);
  });

  it("the clock continues from the newest task's time if the clock's file is missing or damaged", async () => {
    expect(await started(first + 8 * 24 * hourMs, first)).to.equal(first + 24 * hourMs);
    writeFileSync(file, "{");
    expect(await started(first + 8 * 24 * hourMs, first)).to.equal(first + 24 * hourMs);
    writeFileSync(file, "{}");
    expect(await started(first, first + 8 * 24 * hourMs)).to.equal(first);
  });
});
