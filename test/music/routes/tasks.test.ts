import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { loadConfig } from "../../../src/config.js";
import { createMusicServer } from "../../../src/index.js";
import type { TaskEvent } from "../../../src/music/queue/task-events.js";
import { createLogger } from "../../../src/system/log.js";
import { writeRecording } from "../audio/recordings.js";
import { Client, type LiveServer, serverForAll, shortSong } from "../live-server.js";
import { stubEngine } from "../stub-engine.js";
import { temporaryDirectory } from "../tasks.js";

const NO_SUCH_TASK = "00000000-0000-4000-8000-000000000000";

async function all(events: AsyncIterable<TaskEvent>): Promise<TaskEvent[]> {
  const list: TaskEvent[] = [];
  for await (const event of events) list.push(event);
  return list;
}

describe("listing, searching and deleting tasks", () => {
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

  /** Starts a task that ends only when it is cancelled. */
  async function endlessTask(): Promise<string> {
    renderMs.value = 600_000;
    const id = await client.submit(shortSong);
    await client.untilStarted(id);
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

  it("a chat completion whose server stops leaves no task that would run after the next start", async () => {
    renderMs.value = 600_000;
    const answer = client.post("/v1/chat/completions", {
      messages: [{ role: "user", content: "a waltz" }],
      inference_steps: 1,
    });
    while ((await listed("?state=running")).total === 0) await sleep(10);
    await server.close();
    expect((await answer).status).to.equal(503);
    await start();
    const { tasks } = await listed();
    expect(tasks.map(({ state }: { state: string }) => state)).to.deep.equal(["failed"]);
    await client.delete(`/v1/tasks/${tasks[0].task_id}`);
  });

  it("lists tasks in pages, newest first, each with the parameters to repeat it", async () => {
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

  it("shows waiting, running and failed tasks, also after a restart", async () => {
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
    it(`refuses the query ${query}`, async () => {
      const { status, body } = await client.get(`/v1/tasks?${query}`);
      expect(status).to.equal(400);
      expect(body.detail).to.include(mentions);
    });
  }

  it("answers 404 for unknown tasks", async () => {
    for (const path of [`/v1/tasks/${NO_SUCH_TASK}`, `/v1/tasks/${NO_SUCH_TASK}/events`]) {
      expect((await client.get(path)).status).to.equal(404);
    }
    const { status, body } = await client.delete(`/v1/tasks/${NO_SUCH_TASK}`);
    expect([status, body.detail]).to.deep.equal([404, `No such task: "${NO_SUCH_TASK}"`]);
  });

  it("deletes a finished task and its files, even during a download of a song", async () => {
    const id = await client.submit({ ...shortSong, audio_format: "wav", audio_duration: 60 });
    await client.finished(id);
    const [song] = (await client.get(`/v1/tasks/${id}`)).body.data.songs;
    const names = readdirSync(join(directory, "api_audio")).filter((name) => name.startsWith(id));
    expect(names).to.have.length(1);
    const playing = await fetch(client.url + song.file);
    const kept = await client.delete(`/v1/tasks/${id}`);
    expect([kept.status, kept.body.detail]).to.deep.equal([
      409,
      "The task is succeeded: to remove it in this state, add ?state=succeeded",
    ]);
    expect((await client.delete(`/v1/tasks/${id}?state=running`)).status).to.equal(409);
    expect(existsSync(join(directory, "api_audio", names[0] as string))).to.equal(true);
    const deleted = await client.delete(`/v1/tasks/${id}?state=succeeded`);
    expect(deleted.body.data).to.deep.equal({ task_id: id, status: "deleted" });
    expect(existsSync(join(directory, "api_audio", names[0] as string))).to.equal(false);
    expect((await playing.arrayBuffer()).byteLength).to.equal(song.bytes);
    const again = await client.get(song.file, { Range: "bytes=100-" });
    expect([again.status, again.body.detail]).to.deep.equal([404, "Audio file not found"]);
    expect((await client.get(`/v1/tasks/${id}`)).status).to.equal(404);
    expect((await client.delete(`/v1/tasks/${id}`)).status).to.equal(404);
  });

  it("names downloads by title and version, in any script, and reports when songs will be deleted", async () => {
    const id = await client.submit({ ...shortSong, prompt: "a waltz", batch_size: 2, audio_format: "wav" });
    await client.finished(id);
    const { songs } = (await client.get(`/v1/tasks/${id}`)).body.data;
    const header = async (path: string) => (await client.get(path)).headers.get("content-disposition");
    expect(await header(songs[0].file)).to.equal('inline; filename="a waltz - A.wav"');
    await client.patch(`/v1/tasks/${id}`, { title: "Nacht/夜" });
    expect(await header(songs[1].file)).to.equal(
      "inline; filename=\"Nacht ? - B.wav\"; filename*=UTF-8''Nacht%20%E5%A4%9C%20-%20B.wav",
    );
    expect(await header(`${songs[1].file}&format=wav32`)).to.match(/^attachment; .*%20-%20B\.wav$/);
    const { bytes, max_bytes, max_age_seconds, expiries } = (await client.get(`/v1/retention?task_ids=${id}`))
      .body.data;
    expect(bytes).to.be.at.least(songs[0].bytes + songs[1].bytes);
    expect([max_bytes, max_age_seconds]).to.deep.equal([10_240 * 2 ** 20, null]);
    expect(expiries[id].time).to.equal(null);
    expect(expiries[id].after_bytes).to.be.within(max_bytes - bytes, max_bytes);
    await client.patch(`/v1/tasks/${id}`, { favorite: true });
    expect((await client.get(`/v1/retention?task_ids=${id}`)).body.data.expiries).to.deep.equal({});
    await client.delete(`/v1/tasks/${id}?state=succeeded`);
  });

  it("forecasts the end of a temporary task in an hour, and lists it apart until it is kept", async () => {
    const [before, id] = [
      await listed("?temporary=false"),
      await client.submit({ ...shortSong, temporary: true }),
    ];
    await client.finished(id);
    const expiries = async () => (await client.get(`/v1/retention?task_ids=${id}`)).body.data.expiries[id];
    const { temporary, end_time } = (await client.get(`/v1/tasks/${id}`)).body.data;
    expect(temporary).to.equal(true);
    expect((await expiries()).time).to.be.closeTo(end_time + 3600, 600);
    expect((await listed("?temporary=true")).tasks[0].task_id).to.equal(id);
    expect((await listed("?temporary=false")).total).to.equal(before.total);
    await client.patch(`/v1/tasks/${id}`, { temporary: false });
    expect((await expiries()).time).to.equal(null);
    expect((await listed("?temporary=false")).total).to.equal(before.total + 1);
    await client.delete(`/v1/tasks/${id}?state=succeeded`);
  });

  it("searches tasks, and stores their titles and favourites", async () => {
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
      [{ name: "x" }, 'name is unknown: only title, favorite and temporary can be set, got "x"'],
    ] as const) {
      const { status, body: answer } = await client.patch(path, body);
      expect([status, answer.detail.includes(mentions)], answer.detail).to.deep.equal([400, true]);
    }
    expect((await client.patch(`/v1/tasks/${NO_SUCH_TASK}`, {})).status).to.equal(404);
  });

  it("makes retakes with other seeds and groups them with the first task", async () => {
    const words = { ...shortSong, prompt: "retaken", bpm: 90, audio_format: "wav", batch_size: 2 };
    const first = await client.submit({ ...words, seed: 7, use_random_seed: false });
    await client.finished(first);
    const retake = async (id: string, body: object = {}) => {
      const answer = await client.post(`/v1/tasks/${id}/retake`, body);
      expect([answer.status, answer.body.detail]).to.deep.equal([200, undefined]);
      await client.finished(answer.body.data.task_id);
      return (await client.get(`/v1/tasks/${answer.body.data.task_id}`)).body.data;
    };
    const rowOf = async (id: string) => (await client.get(`/v1/tasks/${id}`)).body.data;
    const original = await rowOf(first);
    const second = await retake(first);
    const { seed: seeds, ...parameters } = second.parameters;
    const { seed, ...asked } = original.parameters;
    expect(parameters).to.deep.equal(asked);
    expect(seeds).to.have.length(2).and.not.deep.equal(seed);
    const third = await retake(second.task_id, { seed: "11,-1,12", batch_size: 3 });
    expect(third.songs.map((song: { seed: number }) => song.seed))
      .to.include.members([11, 12])
      .with.length(3);
    expect([original, second, third].map(({ retake_of }) => retake_of)).to.deep.equal([null, first, first]);
    const { tasks, total } = await listed(`?retakes_of=${first}`);
    expect(total).to.equal(3);
    const ids = tasks.map(({ task_id }: { task_id: string }) => task_id);
    expect(ids).to.deep.equal([third.task_id, second.task_id, first]);
  });

  it("refuses a retake if the task is unknown, a parameter is changed, or an upload is gone", async () => {
    const missing = await client.post(`/v1/tasks/${NO_SUCH_TASK}/retake`, {});
    expect(missing.status).to.equal(404);
    const upload = new File(
      [readFileSync(writeRecording(join(directory, "a.wav"), { seconds: 1 }))],
      "a.wav",
    );
    const id = await client.submit({ ...shortSong, task_type: "cover", src_audio: upload });
    await client.finished(id);
    const other = await client.post(`/v1/tasks/${id}/retake`, { prompt: "other" });
    expect([other.status, other.body.detail]).to.deep.equal([
      400,
      `A retake can change only seed and batch_size, not "prompt"; to change others, send all parameters to POST /release_task`,
    ]);
    const { status, body } = await client.post(`/v1/tasks/${id}/retake`, {});
    expect(status).to.equal(200);
    expect((await client.finished(body.data.task_id)).item.status).to.equal(1);
    const running = await endlessTask();
    const cancelled = await client.submit({ ...shortSong, task_type: "cover", src_audio: upload });
    await client.delete(`/v1/tasks/${cancelled}`);
    await client.delete(`/v1/tasks/${running}`);
    renderMs.value = 5;
    const without = await client.post(`/v1/tasks/${cancelled}/retake`, {});
    expect([without.status, without.body.detail]).to.deep.equal([
      409,
      "The upload of the task is no longer stored: send src_audio again",
    ]);
    const sent = await client.postForm(`/v1/tasks/${cancelled}/retake`, { src_audio: upload });
    expect(sent.status).to.equal(200);
    await client.finished(sent.body.data.task_id);
    for (const made of [id, body.data.task_id, sent.body.data.task_id])
      await client.delete(`/v1/tasks/${made}?state=succeeded`);
    // The server deletes uploads after it has reported the end of their task.
    while (readdirSync(server.service.uploadsDirectory).length > 0) await sleep(10);
  });

  it("makes one retake per Idempotency-Key", async () => {
    const id = await client.submit(shortSong);
    const again = () => client.post(`/v1/tasks/${id}/retake`, {}, { "Idempotency-Key": "a retake" });
    const [one, two] = [await again(), await again()];
    expect(one.body.data.task_id).to.equal(two.body.data.task_id);
  });

  it("cancels a running task", async () => {
    const id = await endlessTask();
    expect((await client.delete(`/v1/tasks/${id}`)).body.data).to.deep.equal({
      task_id: id,
      status: "cancelled",
    });
    const { item } = await client.query(id);
    expect(item).to.include({ status: 2, error: "Cancelled by user" });
  });

  it("streams position, stages, progress and the end of a task", async () => {
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

  it("replays missed events once on reconnect", async () => {
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

  it("disables proxy buffering of events and sends keep-alive comments @slow", async () => {
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

describe("access to tasks on a server with a key", () => {
  const server = serverForAll({ SVC_API_KEY: "k1" });

  it("tasks are accessible only with the key; an event stream also accepts the key in the query", async () => {
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
    expect((await client.delete(`${path}?state=succeeded`, key)).body.data.status).to.equal("deleted");
  });
});
