import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { open } from "lmdb";
import { StoreError } from "../../../src/music/errors.js";
import { decodeTask, encodeTask, LmdbTaskStore } from "../../../src/music/queue/lmdb-store.js";
import { DamagedRecordError, type Task } from "../../../src/music/queue/store.js";
import { openTaskStore } from "../../../src/music/queue/store-recovery.js";
import { parametersOf } from "../../../src/music/request/replay.js";
import { createLogger } from "../../../src/system/log.js";
import { failureOf } from "../../failures.js";
import { makeRequest, makeResult, makeTask, temporaryDirectory } from "../tasks.js";

/** Requests as version 1 stored them, and the parameters that it derived from them. */
const flatRequests: { request: Record<string, unknown>; parameters: Record<string, unknown> }[] = JSON.parse(
  readFileSync(new URL("flat-requests.json", import.meta.url), "utf8"),
);

describe("LmdbTaskStore", () => {
  let directory: string;
  let store: LmdbTaskStore;

  before(() => {
    directory = temporaryDirectory();
  });

  beforeEach(() => {
    store = LmdbTaskStore.open(directory);
  });

  afterEach(async () => {
    await store.close();
  });

  it("returns stored tasks, also after closing and reopening", async () => {
    const task = makeTask({ state: "succeeded", result: makeResult({ prompt: "ゆっくり 🎷" }) });
    await store.add(task);
    await store.close();
    store = LmdbTaskStore.open(directory);
    expect(await store.get(task.id)).to.deep.equal(task);
  });

  it("finds nothing for invalid ids", async () => {
    for (const id of ["unknown", "", "x".repeat(5000)]) expect(await store.get(id)).to.equal(undefined);
  });

  it("applies concurrent updates one after the other", async () => {
    const task = makeTask({ interruptions: 0 });
    await store.add(task);
    const increment = (current: Task) => ({ ...current, interruptions: current.interruptions + 1 });
    await Promise.all(Array.from({ length: 50 }, () => store.update(task.id, increment)));
    expect((await store.get(task.id))?.interruptions).to.equal(50);
  });

  it("rejects records without a request, and records under a wrong id", () => {
    const fields = ["null", "7", '"text"'].map(
      (request) => `{"id":"a","state":"queued","request":${request}}`,
    );
    for (const record of [...fields, '{"id":"b","state":"queued","request":{}}', "{}", "null"]) {
      expect(() => decodeTask("a", Buffer.from(record)), record).to.throw(DamagedRecordError);
    }
  });

  /** Parameters that did not exist when the flat records were written. */
  const addedSince = { enable_normalization: true, free_timesteps: false, verbatim: false };
  for (const { request, parameters } of flatRequests) {
    it(`reads flat requests of earlier versions, and leaves their form to them: ${request.taskType} ${request.analysis ?? ""}`, async () => {
      const task = { ...makeTask({ state: "succeeded", finishedAtMs: 1, result: makeResult() }), request };
      const read = decodeTask(task.id, Buffer.from(JSON.stringify(task)));
      expect(JSON.parse(JSON.stringify(parametersOf(read)))).to.deep.equal({ ...addedSince, ...parameters });
      const changed = encodeTask({ ...read, title: "a title" });
      expect(changed.toString()).to.match(/^carillon-task 1 /);
      expect(JSON.parse(changed.toString().split("\n")[1] as string).request).to.deep.equal(request);
      expect(decodeTask(task.id, changed)).to.deep.equal({ ...read, title: "a title" });
    });
  }

  it("gives defaults to parameters that a flat request lacks", () => {
    const request = { prompt: "a waltz", taskType: "text2music", seeds: [1], analysis: null, model: null };
    const { words, songs, denoise } = decodeTask(
      "a",
      Buffer.from(JSON.stringify({ ...makeTask({ id: "a" }), request })),
    ).request;
    const plain = makeRequest({ prompt: "a waltz" });
    expect({ words, denoise }).to.deep.equal({ words: plain.words, denoise: plain.denoise });
    expect(songs).to.deep.equal([{ seed: 1, lmSeed: null, codes: null, tracks: [] }]);
  });

  it("gives defaults to parameters that were added after a request was stored", () => {
    const task = makeTask({ id: "a" });
    const { loudness, ...output } = task.request.output;
    const older = { ...task, request: { ...task.request, output } };
    const record = encodeTask(older as typeof task);
    expect(decodeTask("a", record).request.output).to.deep.equal({ ...output, loudness: null });
  });

  it("puts adapters of tasks of earlier versions into their requests", () => {
    const stored = { digest: "d", files: { "a.safetensors": "f" }, entry: "a.safetensors" };
    const asked = { name: "style", scale: 0.5, doraEpsilon: "float32" } as const;
    const task = { ...makeTask(), request: flatRequests[0]?.request };
    for (const older of [{ adapter: { ...stored, ...asked } }, { adapters: [{ ...stored, ...asked }] }]) {
      const record = Buffer.from(JSON.stringify({ ...task, ...older }));
      expect(decodeTask(task.id, record).request.loras).to.deep.equal([{ ...asked, path: null, stored }]);
    }
  });

  it("does not create a task when it updates an unknown id", async () => {
    expect(await store.update("unknown", (task) => task)).to.equal(undefined);
    expect(await store.get("unknown")).to.equal(undefined);
  });

  it("a store with records of lost tasks or of a newer version does not count as damaged", async () => {
    const home = temporaryDirectory();
    const task = makeTask();
    const old = LmdbTaskStore.open(join(home, "tasks"));
    await old.add(task);
    await old.addLost("lost");
    await old.close();
    const raw = open<Buffer, string>({ path: join(home, "tasks"), encoding: "binary" });
    await raw.put("newer", Buffer.from("carillon-task 9 0123456789abcdef0123456789abcdef\n{}"));
    await raw.close();

    const { store } = await openTaskStore(home, createLogger("silent"));
    const found: Record<string, string> = {};
    for await (const stored of store.scan())
      found[stored.id] = stored.task === null ? stored.damage.kind : stored.task.state;
    await store.close();
    expect(found).to.deep.equal({ [task.id]: task.state, lost: "lost", newer: "newer" });
    expect(readdirSync(home)).to.deep.equal(["tasks"]);
  });

  it("scans all tasks except removed ones", async () => {
    const fresh = LmdbTaskStore.open(temporaryDirectory());
    const tasks = Array.from({ length: 120 }, (_, sequence) => makeTask({ sequence }));
    for (const task of tasks) await fresh.add(task);
    const [removed, ...others] = tasks as [Task, ...Task[]];
    await fresh.remove(removed.id);
    const found: string[] = [];
    for await (const { id } of fresh.scan()) found.push(id);
    expect(found).to.have.members(others.map((task) => task.id));
    await fresh.close();
  });

  it("on a nearly full disk, the store updates stored tasks, but rejects new tasks until space is free", async () => {
    let freeBytes = 2 ** 30;
    const small = LmdbTaskStore.open(temporaryDirectory(), () => freeBytes);
    const failureOf = (write: Promise<unknown>) => write.catch((error: unknown) => error);
    const task = makeTask();
    await small.add(task);

    freeBytes = 8 * 2 ** 20;
    const refusal = await failureOf(small.add(makeTask()));
    expect(refusal).to.be.instanceOf(StoreError);
    expect((refusal as StoreError).message).to.equal(
      "the disk of the task store is full (8 MiB left); free some space",
    );
    await small.update(task.id, (current) => ({ ...current, state: "failed" }));

    freeBytes = 0;
    expect(await failureOf(small.update(task.id, (current) => current))).to.be.instanceOf(StoreError);
    expect((await small.get(task.id))?.state).to.equal("failed");

    freeBytes = 2 ** 30;
    await small.add(makeTask());
    await small.close();
  });

  for (const deleted of ["its folder", "its file"]) {
    it(`writes the store again with all tasks after ${deleted} was deleted`, async () => {
      const place = join(temporaryDirectory(), "tasks");
      let times = 0;
      const live = LmdbTaskStore.open(place, undefined, () => times++);
      const tasks = [makeTask(), makeTask(), makeTask()] as const;
      await live.add(tasks[0]);
      rmSync(deleted === "its folder" ? place : join(place, "data.mdb"), { recursive: true });
      await live.add(tasks[1]);
      rmSync(place, { recursive: true });
      await live.update(tasks[0].id, (task) => ({ ...task, state: "failed" }));
      await live.add(tasks[2]);
      expect(times).to.equal(2);
      await live.close();
      const reopened = LmdbTaskStore.open(place);
      const states = await Promise.all(tasks.map(async ({ id }) => (await reopened.get(id))?.state));
      await reopened.close();
      expect(states).to.deep.equal(["failed", "queued", "queued"]);
      expect(readdirSync(join(place, ".."))).to.deep.equal(["tasks"]);
    });
  }

  it("does not write a deleted store again on a full disk", async () => {
    const place = join(temporaryDirectory(), "tasks");
    let freeBytes = 2 ** 30;
    const live = LmdbTaskStore.open(place, () => freeBytes);
    rmSync(place, { recursive: true });
    freeBytes = 8 * 2 ** 20;
    expect(await failureOf(live.add(makeTask()))).to.include({ code: "DISK_FULL" });
    freeBytes = 2 ** 30;
    await live.add(makeTask());
    await live.close();
  });

  for (const what of ["the store", "the folder around it"]) {
    it(`writes nothing if ${what} was replaced, where it would be lost or belong to another server`, async () => {
      const parent = join(temporaryDirectory(), "home");
      const place = join(parent, "tasks");
      const replaced = LmdbTaskStore.open(place);
      try {
        const task = makeTask();
        await replaced.add(task);
        rmSync(what === "the store" ? place : parent, { recursive: true });
        mkdirSync(what === "the store" ? place : parent, { recursive: true });
        if (what === "the store") writeFileSync(join(place, "data.mdb"), "");
        for (const write of [
          replaced.add(makeTask()),
          replaced.update(task.id, (same) => same),
          replaced.remove(task.id),
        ])
          expect(await failureOf(write))
            .to.be.instanceOf(StoreError)
            .and.include({ code: "WRITE_FAILED" });
        expect((await replaced.get(task.id))?.id).to.equal(task.id);
      } finally {
        await replaced.close();
      }
    });
  }

  it("the store keeps every acknowledged task when the process is killed", async () => {
    const place = temporaryDirectory();
    const script = fileURLToPath(new URL("./store-writer.ts", import.meta.url));
    const child = spawn(process.execPath, ["--import", "tsx", script, place], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    let promised = 0;
    for await (const line of createInterface({ input: child.stdout })) {
      promised = Number(line);
      if (promised === 200) child.kill("SIGKILL");
    }
    if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
    expect(promised).to.be.at.least(200);

    const survivor = LmdbTaskStore.open(place);
    for (let sequence = 1; sequence <= promised; sequence++) {
      expect((await survivor.get(`task-${sequence}`))?.state, `task ${sequence}`).to.equal("succeeded");
    }
    await survivor.close();
  });
});
