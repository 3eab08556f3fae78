import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { expect } from "chai";
import { uploadOf, writeRecording } from "../music/audio/recordings.js";
import { shortSong } from "../music/live-server.js";
import { temporaryDirectory } from "../music/tasks.js";
import { endServed, ServedProcess } from "./served-process.js";

describe("requests with an Idempotency-Key", () => {
  const directory = temporaryDirectory();
  const key = () => ({ "Idempotency-Key": randomUUID() });
  let server: ServedProcess;
  const start = async () => {
    server = await ServedProcess.startStub(directory, 5);
  };
  const total = async () => (await server.client.get("/v1/tasks")).body.data.total;

  before(start);
  after(endServed);

  it("repeated and simultaneous requests with one key create one task", async () => {
    const headers = key();
    const before = await total();
    const send = () => server.client.post("/release_task", { ...shortSong, prompt: "x" }, headers);
    const answers = await Promise.all(Array.from({ length: 8 }, send));
    const [first] = answers;
    expect(first?.status).to.equal(200);
    for (const { status, body } of answers) {
      expect([status, body.data]).to.deep.equal([200, first?.body.data]);
    }
    await server.client.finished(first?.body.data.task_id);
    expect((await send()).body.data).to.deep.equal(first?.body.data);
    expect(await total()).to.equal(before + 1);
  });

  it("a repeated request is recognised after kill -9, whatever the order of its fields; another body is rejected", async () => {
    const headers = key();
    const { body } = await server.client.post("/release_task", { ...shortSong, seed: 1, bpm: 90 }, headers);
    await server.end("SIGKILL");
    await start();
    const again = await server.client.post("/release_task", { bpm: 90, seed: 1, ...shortSong }, headers);
    expect(again.body.data).to.deep.equal(body.data);
    const other = await server.client.post("/release_task", { ...shortSong, seed: 2, bpm: 90 }, headers);
    expect(other.status).to.equal(422);
    expect(other.body.detail).to.include(headers["Idempotency-Key"]).and.include(body.data.task_id);
  });

  it("a repeated request creates a new task after its task was removed", async () => {
    const headers = key();
    const submit = async () =>
      (await server.client.post("/release_task", shortSong, headers)).body.data.task_id as string;
    const first = await submit();
    await server.client.finished(first);
    await server.client.delete(`/v1/tasks/${first}?state=succeeded`);
    expect(await submit()).to.not.equal(first);
  });

  it("a repeated request is recognised with the same files, and rejected with others", async () => {
    const headers = key();
    const recording = (seconds: number) =>
      uploadOf(writeRecording(join(directory, `recording-${seconds}.mp3`), { seconds }));
    const cover = { ...shortSong, task_type: "text2music" };
    const submit = (seconds: number) =>
      server.client.postForm("/release_task", { ...cover, reference_audio: recording(seconds) }, headers);
    const first = await submit(2);
    expect(first.status, first.body.detail).to.equal(200);
    expect((await submit(2)).body.data).to.deep.equal(first.body.data);
    expect((await submit(3)).status).to.equal(422);
  });

  it("a request can reuse the key of a rejected request", async () => {
    const headers = key();
    expect((await server.client.post("/release_task", { task_type: "cover" }, headers)).status).to.equal(400);
    expect((await server.client.post("/release_task", shortSong, headers)).status).to.equal(200);
  });

  it("a request with an invalid Idempotency-Key is rejected", async () => {
    for (const bad of ["", "x".repeat(256)]) {
      const { status, body } = await server.client.post("/release_task", shortSong, {
        "Idempotency-Key": bad,
      });
      expect(status).to.equal(400);
      expect(body.detail).to.include("Idempotency-Key must be 1 to 255 characters long");
    }
  });
});
