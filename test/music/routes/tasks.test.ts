import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { loadConfig } from "../../../src/config.js";
import { createMusicServer } from "../../../src/index.js";
import { createLogger } from "../../../src/log.js";
import type { TaskEvent } from "../../../src/music/queue/task-events.js";
import { Client, type LiveServer, shortSong, startLiveServer } from "../live-server.js";
import { stubEngine } from "../stub-engine.js";
import { temporaryDirectory } from "../tasks.js";

const NO_SUCH_TASK = "00000000-0000-4000-8000-000000000000";

async function all(events: AsyncIterable<TaskEvent>): Promise<TaskEvent[]> {
  const list: TaskEvent[] = [];
  for await (const event of events) list.push(event);
  return list;
}

describe("the list of tasks", () => {
  const directory = temporaryDirectory();
  const renderMs = { value: 5 };
  let server: LiveServer;
  let client: Client;

  async function start(settings: Record<string, string> = {}): Promise<void> {
    const config = loadConfig({ SVC_API_PORT: "0", SVC_TMPDIR: directory, ...settings });
    const engine = stubEngine(() => renderMs.value);
    const music = await createMusicServer({ config, engine, log: createLogger("silent") });
    client = new Client(music.url);
    server = { ...music, client };
  }

  /** Whose length only an end by somebody else bounds. */
  async function endlessTask(): Promise<string> {
    renderMs.value = 600_000;
    const id = await client.submit(shortSong);
    await client.begun(id);
    return id;
  }

  const listed = async (query = "") => (await client.get(`/v1/tasks${query}`)).body.data;

  before(() => start());
  after(() => server.close());

  afterEach(async () => {
    for (const { task_id: id } of (await listed("?state=queued")).tasks)
      await client.delete(`/v1/tasks/${id}`);
    for (const { task_id: id } of (await listed("?state=running")).tasks)
      await client.delete(`/v1/tasks/${id}`);
    renderMs.value = 5;
  });

  it("holds the newest first, by pages, with all that makes each again", async () => {
    const ids: string[] = [];
    for (const prompt of ["one", "two", "three"]) {
      ids.push(
        await client.submit({ ...shortSong, prompt, lyrics: "la", seed: 7, use_random_seed: false, bpm: 90 }),
      );
      await client.finished(ids.at(-1) as string);
    }
    const { tasks, total } = await listed();
    expect(total).to.equal(3);
    expect(tasks.map((task: { prompt: string }) => task.prompt)).to.deep.equal(["three", "two", "one"]);
    const page = await listed("?offset=1&limit=1");
    expect(page).to.deep.include({ total: 3, offset: 1 });
    expect(page.tasks).to.deep.equal([tasks[1]]);
    const [newest] = tasks;
    expect(newest).to.deep.include({
      task_id: ids[2],
      task_type: "text2music",
      state: "succeeded",
      status: 1,
      progress: 1,
      queue_position: null,
      error: null,
      uploads: [],
      lyrics: "la",
    });
    expect(newest.parameters).to.deep.include({
      prompt: "three",
      seed: [7],
      use_random_seed: false,
      bpm: 90,
    });
    expect(newest.create_time).to.be.at.most(newest.start_time);
    expect(newest.start_time).to.be.at.most(newest.end_time);
    const [song] = newest.songs;
    expect(song).to.deep.include({ seed: 7, dit_model: "stub" });
    expect((await client.download(song)).length).to.equal(song.bytes);
    expect((await client.get(`/v1/tasks/${ids[2]}`)).body.data).to.deep.equal(newest);
    const again = await client.submit(newest.parameters);
    await client.finished(again);
    expect((await client.get(`/v1/tasks/${again}`)).body.data.parameters).to.deep.equal(newest.parameters);
  });

  it("tells tasks that wait, run and failed, and outlives a restart", async () => {
    const running = await endlessTask();
    const waiting = await client.submit(shortSong);
    const second = await client.submit(shortSong);
    expect((await listed("?state=running")).tasks).to.have.length(1);
    const [later, sooner] = (await listed("?state=queued")).tasks;
    expect(sooner).to.include({
      task_id: waiting,
      queue_position: 1,
      stage: "queued",
      status: 0,
      end_time: null,
    });
    expect(later).to.include({ task_id: second, queue_position: 2 });
    await client.delete(`/v1/tasks/${second}`);
    const [failed] = (await listed("?state=failed")).tasks;
    expect(failed).to.deep.include({
      task_id: second,
      error: "Cancelled by user",
      songs: [],
      start_time: null,
    });
    const before = await listed();
    await server.close();
    await start();
    const afterwards = await listed();
    expect(afterwards.total).to.equal(before.total);
    const idsOf = ({ tasks }: { tasks: { task_id: string }[] }) => tasks.map((task) => task.task_id);
    expect(idsOf(afterwards)).to.deep.equal(idsOf(before));
    expect(idsOf(afterwards)).to.include(running);
  });

  for (const [query, mentions] of [
    ["state=lost", "state must be one of queued, running, succeeded, failed"],
    ["offset=-1", "offset must be from 0"],
    ["limit=0", "limit must be from 1 to 200"],
    ["limit=x", "limit must be a number"],
  ] as const) {
    it(`refuses ${query}`, async () => {
      const { status, body } = await client.get(`/v1/tasks?${query}`);
      expect(status).to.equal(400);
      expect(body.detail).to.include(mentions);
    });
  }

  it("answers 404 for tasks that are not there", async () => {
    for (const path of [`/v1/tasks/${NO_SUCH_TASK}`, `/v1/tasks/${NO_SUCH_TASK}/events`]) {
      expect((await client.get(path)).status).to.equal(404);
    }
    const { status, body } = await client.delete(`/v1/tasks/${NO_SUCH_TASK}`);
    expect([status, body.detail]).to.deep.equal([404, `No such task: "${NO_SUCH_TASK}"`]);
  });

  it("lets a finished song go with its files, also while it is being downloaded", async () => {
    const id = await client.submit({ ...shortSong, audio_format: "wav", audio_duration: 60 });
    await client.finished(id);
    const [song] = (await client.get(`/v1/tasks/${id}`)).body.data.songs;
    const names = readdirSync(join(directory, "api_audio")).filter((name) => name.startsWith(id));
    expect(names).to.have.length(1);
    const playing = await fetch(client.url + song.file);
    const deleted = await client.delete(`/v1/tasks/${id}`);
    expect(deleted.body.data).to.deep.equal({ task_id: id, status: "deleted" });
    expect(existsSync(join(directory, "api_audio", names[0] as string))).to.equal(false);
    expect((await playing.arrayBuffer()).byteLength).to.equal(song.bytes);
    const again = await client.get(song.file, { Range: "bytes=100-" });
    expect([again.status, again.body.detail]).to.deep.equal([404, "Audio file not found"]);
    expect((await client.get(`/v1/tasks/${id}`)).status).to.equal(404);
    expect((await client.delete(`/v1/tasks/${id}`)).status).to.equal(404);
  });

  it("is searched, and shows the names and favourites that people gave", async () => {
    const id = await client.submit({ ...shortSong, prompt: "Slow Bossa Nova", lyrics: "by the Sea" });
    await client.finished(id);
    const path = `/v1/tasks/${id}`;
    const marked = await client.patch(path, { title: "Evening", favorite: true });
    expect(marked.body.data).to.include({ title: "Evening", favorite: true });
    for (const query of ["search=bossa%20SEA", "q=evening", "favorite=true"]) {
      expect((await listed(`?${query}`)).tasks, query).to.deep.equal([marked.body.data]);
    }
    expect((await listed("?search=bossa%20tango")).total).to.equal(0);
    expect((await listed("?favorite=false")).total).to.equal((await listed()).total - 1);
    expect((await client.patch(path, { favorite: false })).body.data).to.include({
      title: "Evening",
      favorite: false,
    });
    expect((await client.patch(path, { title: "" })).body.data.title).to.equal("");
    for (const [body, mentions] of [
      [{ title: 5 }, "title must be text, got 5"],
      [{ title: "x".repeat(201) }, "title must be at most 200 characters"],
      [{ favorite: "so" }, 'favorite must be true or false, got "so"'],
      [{ name: "x" }, 'name is unknown: title and favorite can be set, got "x"'],
    ] as const) {
      const { status, body: answer } = await client.patch(path, body);
      expect([status, answer.detail.includes(mentions)], answer.detail).to.deep.equal([400, true]);
    }
    expect((await client.patch(`/v1/tasks/${NO_SUCH_TASK}`, {})).status).to.equal(404);
  });

  it("cancels a task that runs", async () => {
    const id = await endlessTask();
    expect((await client.delete(`/v1/tasks/${id}`)).body.data).to.deep.equal({
      task_id: id,
      status: "cancelled",
    });
    const { item } = await client.query(id);
    expect(item).to.include({ status: 2, error: "Cancelled by user" });
  });

  it("tells those who follow a task when it moves up, and how it ends", async () => {
    const running = await endlessTask();
    const first = await client.submit(shortSong);
    const second = await client.submit(shortSong);
    const followed = all(client.events(second));
    const other = all(client.events(second));
    await client.delete(`/v1/tasks/${first}`);
    renderMs.value = 5;
    await client.delete(`/v1/tasks/${running}`);
    const events = await followed;
    expect(events.map(({ event }) => event)).to.include.members([
      "queued",
      "position",
      "stage",
      "progress",
      "done",
    ]);
    expect(events[0]).to.deep.include({ event: "queued", data: { task_id: second, position: 2 } });
    expect(events.find(({ event }) => event === "position")?.data).to.deep.equal({
      task_id: second,
      position: 1,
    });
    const shares = events.flatMap((event) => (event.event === "progress" ? event.data.progress : []));
    expect(shares).to.deep.equal(shares.toSorted((a, b) => a - b));
    expect(events.at(-1)).to.deep.equal({
      id: "end",
      event: "done",
      data: (await client.get(`/v1/tasks/${second}`)).body.data,
    });
    expect((await other).at(-1)).to.deep.equal(events.at(-1));
    expect(await all(client.events(first))).to.deep.equal([
      { id: "end", event: "failed", data: (await client.get(`/v1/tasks/${first}`)).body.data },
    ]);
  });

  it("tells one who comes back what was missed, once", async () => {
    const running = await endlessTask();
    const seen: TaskEvent[] = [];
    for await (const event of client.events(running)) {
      seen.push(event);
      if (event.event === "stage") break;
    }
    const rest = all(client.events(running, { "Last-Event-ID": seen.at(-1)?.id ?? "" }));
    const foreign = all(client.events(running, { "Last-Event-ID": "elsewhere-99" }));
    await client.delete(`/v1/tasks/${running}`);
    const known = seen.map(({ id }) => id);
    expect((await rest).filter(({ id }) => known.includes(id))).to.deep.equal([]);
    expect((await rest).map(({ event }) => event)).to.include("failed");
    expect((await foreign).map(({ id }) => id)).to.include.members(known);
    const headers = { "Last-Event-ID": "end" };
    expect((await fetch(`${client.url}/v1/tasks/${running}/events`, { headers })).status).to.equal(204);
  });

  it("sends events that no proxy keeps back, and a sign of life where there are none", async () => {
    const id = await endlessTask();
    const response = await fetch(`${client.url}/v1/tasks/${id}/events`);
    expect(response.headers.get("content-type")).to.include("text/event-stream");
    expect(response.headers.get("x-accel-buffering")).to.equal("no");
    let text = "";
    for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      text += chunk;
      if (text.includes("\n: alive\n\n")) break;
    }
    expect(text).to.match(/^retry: \d+\n\n/);
    const head = await fetch(`${client.url}/v1/tasks/${id}/events`, { method: "HEAD" });
    expect(head.status).to.equal(200);
  });
});

describe("tasks of a server with a key", () => {
  let server: LiveServer;

  before(async () => {
    server = await startLiveServer(temporaryDirectory(), { SVC_API_KEY: "k1" });
  });

  after(() => server.close());

  it("are shown, followed and removed with it alone, by a page's EventSource in the query", async () => {
    const { client } = server;
    const key = { "X-API-Key": "k1" };
    const { body } = await client.post("/release_task", shortSong, key);
    const path = `/v1/tasks/${body.data.task_id}`;
    for (const open of ["/v1/tasks", path, `${path}/events`, `${path}/events?ai_token=k2`]) {
      expect((await client.get(open)).status, open).to.equal(401);
    }
    expect((await client.delete(path)).status).to.equal(401);
    const events = await (await fetch(`${client.url}${path}/events?ai_token=k1`)).text();
    expect(events).to.include("event: done");
    expect((await client.get("/v1/tasks", key)).body.data.total).to.equal(1);
    expect((await client.delete(path, key)).body.data.status).to.equal("deleted");
  });
});
