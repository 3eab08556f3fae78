import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { request as httpRequest } from "node:http";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { runFfmpeg, uploadOf, writeRecording, writeSilence } from "../music/audio/recordings.js";
import {
  type Answer,
  type LiveServer,
  longSong,
  oneSecondSong,
  type SongRecord,
  serverForAll,
  startLiveServer,
} from "../music/live-server.js";
import { temporaryDirectory } from "../music/tasks.js";

const cover = { prompt: "a song", task_type: "cover", inference_steps: 1, batch_size: 1 };

describe("storage and checks of recordings sent with a task", () => {
  const directory = temporaryDirectory();
  const uploads = join(directory, "server", "uploads");
  const recording = writeRecording(join(directory, "recording.wav"), { seconds: 3 });
  const { client } = serverForAll({ SVC_QUEUE_MAXSIZE: "2" }, join(directory, "server"));

  afterEach("the server still responds and has no tasks", async () => {
    expect((await client.get("/health")).status).to.equal(200);
    await noUploads();
  });

  /**
   * Deletes all songs, then waits until no upload is left. Waiting is needed because a task reports its end
   * before its files are deleted.
   */
  async function noUploads(): Promise<void> {
    const { tasks } = (await client.get("/v1/tasks?state=succeeded")).body.data;
    for (const { task_id: id } of tasks) await client.delete(`/v1/tasks/${id}?state=succeeded`);
    while (readdirSync(uploads).length > 0) await sleep(10);
  }

  function expectRefusal({ status, body }: Answer, detail: RegExp, what = ""): void {
    expect(status, what).to.equal(400);
    const { note: _, ...words } = body;
    expect(words, what).to.deep.equal({ detail: body.detail, error: body.detail });
    expect(body.detail, what).to.match(detail);
  }

  const sendUpload = (path: string, name?: string, more: object = {}): Promise<Answer> =>
    client.postForm("/release_task", { ...cover, ...more, src_audio: uploadOf(path, name) });

  const cancel = (id: string) => client.post("/cancel_task", { task_id: id });

  it("uploads are deleted with their task, or when their task fails", async () => {
    const damaged = writeRecording(join(directory, "damaged.wav"), { seconds: 3 });
    const running = await client.submit(longSong);
    await client.untilStarted(running);
    const done = await client.submit({ ...cover, src_audio: uploadOf(recording) });
    const failed = await client.submit({
      ...cover,
      src_audio_path: damaged,
      ref_audio: uploadOf(recording),
    });
    expect(readdirSync(uploads)).to.have.length(2);
    writeFileSync(damaged, "not audio");
    await cancel(running);
    expect((await client.finished(done)).item.status).to.equal(1);
    const { item } = await client.finished(failed);
    expect([item.status, item.error]).to.deep.equal([2, "src_audio contains no decodable audio"]);
    while (readdirSync(uploads).length > 1) await sleep(10);
    const { parameters, uploads: gone } = (await client.get(`/v1/tasks/${done}`)).body.data;
    expect([parameters.src_audio_path, gone]).to.deep.equal([`upload:${readdirSync(uploads)[0]}`, []]);
    const kept = await client.download({ file: `/v1/audio?path=${parameters.src_audio_path}` });
    expect(kept.equals(readFileSync(recording))).to.equal(true);
    const [song] = (await client.query(done)).records as [SongRecord];
    const [again] = await client.make(parameters);
    expect(readdirSync(uploads)).to.have.length(2);
    expect((await client.download(again as SongRecord)).equals(await client.download(song))).to.equal(true);
    await client.delete(`/v1/tasks/${done}?state=succeeded`);
    expect(readdirSync(uploads)).to.have.length(1);
    const lost = await client.post("/release_task", parameters);
    expectRefusal(lost, /^the recording "upload:ctx_audio_.*" is no longer stored: send the file again$/);
  });

  it("uploads are deleted when their waiting or running task is cancelled", async () => {
    const running = await client.submit(longSong);
    await client.untilStarted(running);
    const waiting = await client.submit({ ...cover, src_audio: uploadOf(recording) });
    expect(readdirSync(uploads)).to.have.length(1);
    await cancel(waiting);
    await noUploads();
    await cancel(running);
    const long = writeSilence(join(directory, "two minutes.flac"), 120);
    const other = await client.submit({ ...longSong, task_type: "cover", src_audio: uploadOf(long) });
    await client.untilStarted(other);
    expect(readdirSync(uploads)).to.have.length(1);
    await cancel(other);
    await noUploads();
  });

  it("no upload is left if the queue is full, the parameters are invalid, or no task uses it", async () => {
    const ids = [await client.submit(longSong)];
    await client.untilStarted(ids[0] as string);
    for (let i = 0; i < 2; i++) ids.push(await client.submit(longSong));
    expect((await sendUpload(recording)).status).to.equal(429);
    expect(readdirSync(uploads)).to.deep.equal([]);
    for (const id of ids.reverse()) await cancel(id);
    expectRefusal(await sendUpload(recording, undefined, { batch_size: "many" }), /batch_size/);
    expect(readdirSync(uploads)).to.deep.equal([]);
    const ignored = await client.submit({ ...longSong, src_audio: uploadOf(recording) });
    expect(readdirSync(uploads)).to.deep.equal([]);
    await cancel(ignored);
  });

  it("an uploaded file takes precedence over a path; an empty file input is ignored", async () => {
    const both = { ...cover, src_audio_path: "/no/such/file.wav", ctx_audio: uploadOf(recording) };
    await cancel(await client.submit(both));
    const untouched = await fetch(`${client.url}/release_task`, {
      method: "POST",
      headers: { "Content-Type": "multipart/form-data; boundary=x" },
      body:
        '--x\r\nContent-Disposition: form-data; name="task_type"\r\n\r\ncover\r\n' +
        '--x\r\nContent-Disposition: form-data; name="src_audio"; filename=""\r\n\r\n\r\n--x--\r\n',
    });
    expect(untouched.status).to.equal(400);
    expect(((await untouched.json()) as { detail: string }).detail).to.include("needs a source");
  });

  it("uploads are written only into the uploads folder, whatever their file name", async () => {
    const before = readdirSync(directory, { recursive: true }).length;
    const answer = await sendUpload(recording, "../../x.exe");
    expect(answer.status).to.equal(200);
    expect(readdirSync(uploads).join()).to.match(/^ctx_audio_[0-9a-f-]{36}\.exe$/);
    await client.finished(answer.body.data.task_id);
    const added = ["song", "upload"];
    expect(readdirSync(directory, { recursive: true }).length).to.equal(before + added.length);
  });

  it("uploads that are not audio are rejected without echoing their content", async () => {
    const text = join(directory, "song.mp3");
    writeFileSync(text, "top secret words\n".repeat(300));
    const empty = join(directory, "empty.wav");
    writeFileSync(empty, "");
    const playlist = join(directory, "list.m3u8");
    writeFileSync(playlist, `#EXTM3U\n#EXTINF:1,\nfile://${recording}\n#EXT-X-ENDLIST\n`);
    const picture = join(directory, "picture.png");
    runFfmpeg(["-f", "lavfi", "-i", "color=red:s=16x16", "-frames:v", "1", picture]);
    for (const path of [text, empty, playlist, picture])
      expectRefusal(await sendUpload(path), /^src_audio contains no decodable audio/, path);
    const byPath = await client.post("/release_task", { ...cover, src_audio_path: text });
    expectRefusal(byPath, /^src_audio contains no decodable audio/);
    const reference = { prompt: "a song", reference_audio: uploadOf(text) };
    expectRefusal(await client.postForm("/release_task", reference), /^reference_audio contains no/);
  });

  it("a recording that is too long is rejected", async () => {
    const path = writeSilence(join(directory, "eleven minutes.flac"), 660);
    expectRefusal(await sendUpload(path), /^src_audio lasts longer than 600 seconds$/);
    rmSync(path);
  });

  it("a silent recording is rejected as a reference", async () => {
    const ref_audio = uploadOf(writeSilence(join(directory, "silence.flac"), 6));
    const answer = await client.postForm("/release_task", { prompt: "a song", ref_audio });
    expectRefusal(answer, /^reference_audio is silent/);
  });

  it("a repaint window outside the source is rejected", async () => {
    const repaint = { ...cover, task_type: "repaint", src_audio_path: recording };
    for (const [repainting_start, repainting_end] of [
      [8, 9],
      [100, -1],
      [3, -1],
      [4, 2],
      [-500, 500],
    ]) {
      const answer = await client.post("/release_task", { ...repaint, repainting_start, repainting_end });
      expectRefusal(answer, /repainting_start/, `${repainting_start} to ${repainting_end}`);
    }
  });

  it("a task fails if its recording was deleted", async () => {
    const path = writeRecording(join(directory, "fleeting.wav"), { seconds: 3 });
    const running = await client.submit(longSong);
    await client.untilStarted(running);
    const waiting = await client.submit({ ...cover, src_audio_path: path });
    rmSync(path);
    await cancel(running);
    const { item } = await client.finished(waiting);
    expect(item.status).to.equal(2);
    expect(item.error).to.match(/^src_audio_path names a path that does not exist on the server/);
  });

  it("an upload leaves no file if the client disconnects", async () => {
    await new Promise<void>((resolve) => {
      const upload = httpRequest(`${client.url}/release_task`, {
        method: "POST",
        headers: { "Content-Type": "multipart/form-data; boundary=x", "Content-Length": "9999999" },
      });
      upload.on("error", () => resolve());
      upload.write('--x\r\nContent-Disposition: form-data; name="src_audio"; filename="a.wav"\r\n\r\n');
      upload.write(Buffer.alloc(200_000), () => upload.destroy());
      upload.on("close", resolve);
    });
  });

  /** Submits a task as JSON, form and multipart. */
  async function sendEach(fields: Record<string, string>): Promise<Answer[]> {
    const form = await fetch(`${client.url}/release_task`, {
      method: "POST",
      body: new URLSearchParams(fields),
    });
    const type = form.headers;
    return [
      await client.post("/release_task", fields),
      await client.postForm("/release_task", fields),
      { status: form.status, headers: type, body: await form.json() },
    ];
  }

  for (const [parameter, task] of [
    ["src_audio_path", { task_type: "cover" }],
    ["reference_audio_path", {}],
  ] as const) {
    const fieldsOf = (path: string) => ({
      ...task,
      prompt: "a song",
      inference_steps: "1",
      [parameter]: path,
    });

    it(`a recording may be a path in ${parameter}, in every kind of body; unusable paths are rejected`, async () => {
      for (const { status, body } of await sendEach(fieldsOf(recording))) {
        expect(status, body.detail).to.equal(200);
        await cancel(body.data.task_id);
      }
      for (const [path, detail] of [
        ["/no/such/file.wav", "names a path that does not exist"],
        ["../absent.wav", "does not exist on the server, where relative paths start in the folder of songs"],
        [directory, "names a path that is a directory"],
        ["/etc/passwd", "contains no decodable audio"],
        ["/v1/audio?path=%2Fno%2Fsuch.mp3", "names a path that does not exist"],
      ] as const) {
        for (const answer of await sendEach(fieldsOf(path))) {
          expectRefusal(answer, new RegExp(detail), path);
          expect(answer.body.detail).to.not.include("root:");
        }
      }
    });
  }
});

describe("paths of recordings sent to a server that is open to the network", () => {
  const directory = temporaryDirectory();
  let server: LiveServer;

  before(async () => {
    mkdirSync(join(directory, "music"));
    for (const folder of [".", "music"]) writeRecording(join(directory, folder, "a.wav"), { seconds: 3 });
  });

  afterEach(() => server.close());

  async function statusOf(path: string): Promise<number> {
    const { status, body } = await server.client.post("/release_task", { ...cover, src_audio_path: path });
    if (status === 200) await server.client.post("/cancel_task", { task_id: body.data.task_id });
    else expect(body.detail).to.include("SVC_AUDIO_ROOTS");
    return status;
  }

  it("a server open to the network accepts only paths of its own songs", async () => {
    server = await startLiveServer(join(directory, "open"), {
      SVC_API_HOST: "0.0.0.0",
      SVC_ALLOW_NO_KEY: "true",
    });
    expect(await statusOf(join(directory, "a.wav"))).to.equal(400);
    const song = await server.client.makeOne(oneSecondSong);
    expect(await statusOf(song.file)).to.equal(200);
    expect(await statusOf("/v1/audio?path=%2Fetc%2Fpasswd")).to.equal(400);
  });

  it("a server open to the network also accepts paths in the folders of SVC_AUDIO_ROOTS", async () => {
    const settings = { SVC_AUDIO_ROOTS: join(directory, "music") };
    server = await startLiveServer(join(directory, "rooted"), settings);
    expect(await statusOf(join(directory, "music", "a.wav"))).to.equal(200);
    expect(await statusOf(join(directory, "a.wav"))).to.equal(400);
  });
});

describe("recordings uploaded to a server with a key", () => {
  const directory = temporaryDirectory();
  const uploads = join(directory, "server", "uploads");
  const server = serverForAll({ SVC_API_KEY: "k1" }, join(directory, "server"));

  it("uploads are stored only if the API key precedes them in the form", async () => {
    const src_audio = uploadOf(writeRecording(join(directory, "a.wav"), { seconds: 3 }));
    const send = (fields: Record<string, string | File>) =>
      server.client.postForm("/release_task", fields as never);
    for (const token of [{}, { ai_token: "wrong" }]) {
      expect((await send({ ...token, task_type: "cover", src_audio })).status).to.equal(401);
      expect(readdirSync(uploads)).to.deep.equal([]);
    }
    const late = await send({ task_type: "cover", src_audio, ai_token: "k1" });
    expect([late.status, late.body.detail]).to.satisfy(
      ([status, detail]: [number, string]) => status === 400 && detail.includes("ai_token before the files"),
    );
    const early = await send({ ai_token: "k1", task_type: "cover", src_audio });
    expect(early.status).to.equal(200);
    expect(readdirSync(uploads)).to.have.length(1);
    await server.client.post("/cancel_task", { task_id: early.body.data.task_id, ai_token: "k1" });
    while (readdirSync(uploads).length > 0) await sleep(10);
  });
});
