import { readdirSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { expect } from "chai";
import { AceClient, formOf, type Part, partsOf } from "../music/acestep-cpp/ace-client.js";
import { uploadOf, writeRecording } from "../music/audio/recordings.js";
import { longSong, type SongRecord, shortSong } from "../music/live-server.js";
import { temporaryDirectory } from "../music/tasks.js";
import { endServed, ServedProcess } from "./served-process.js";

/** Temporary files and uploads left in the server's directory. */
function leftovers(directory: string, finished: readonly string[]): string[] {
  const audio = readdirSync(join(directory, "api_audio")).filter((name) => !finished.includes(name));
  return [...audio, ...readdirSync(join(directory, "uploads"))];
}

function fileName({ file }: SongRecord): string {
  return basename(decodeURIComponent(file));
}

describe("stop and restart of a server", () => {
  afterEach(endServed);

  it("a server killed with kill -9 keeps results and audio, and restarts running and waiting tasks in order", async () => {
    const directory = temporaryDirectory();
    const first = await ServedProcess.start(directory);
    const done = await first.client.submit(shortSong);
    const before = await first.client.finished(done);
    const [song] = before.records as [SongRecord];
    const bytes = await first.client.download(song);
    // A song that still runs when the server is killed, and soon finishes after the restart.
    const running = await first.client.submit({
      ...shortSong,
      batch_size: 2,
      seed: 5,
      use_random_seed: false,
    });
    const waiting = await first.client.submit(shortSong);
    await first.client.untilStarted(running);
    const { seed } = (await first.client.get(`/v1/tasks/${running}`)).body.data.parameters;
    await first.end("SIGKILL");

    const second = await ServedProcess.start(directory);
    expect(await second.client.query(done)).to.deep.equal(before);
    expect((await second.client.download(song)).equals(bytes)).to.equal(true);
    expect((await second.client.query(running)).item.status).to.equal(0);
    const files = [fileName(song)];
    for (const id of [running, waiting]) {
      const { item, records } = await second.client.finished(id);
      expect(item.status, item.error).to.equal(1);
      if (id === running) expect(records[0]?.seed_value).to.equal(String(seed));
      files.push(...(records as SongRecord[]).map(fileName));
    }
    const { jobs } = (await second.client.get("/v1/stats")).body.data;
    expect(jobs).to.deep.equal({ total: 3, queued: 0, running: 0, succeeded: 3, failed: 0 });
    expect(await second.end("SIGTERM")).to.equal(0);
    expect(leftovers(directory, files)).to.deep.equal([]);
  });

  it("jobs of acestep.cpp's clients survive kill -9: finished, running and waiting ones @slow", async () => {
    const directory = temporaryDirectory();
    const request = { caption: "a waltz", duration: 10, output_format: "wav16", seed: 1 };
    const first = await ServedProcess.start(directory);
    const before = new AceClient(first.client);
    const done = await before.submit("/synth", request);
    const result = await before.resultOf(done);
    const [, latents] = partsOf(result) as [Part, Part];
    const running = await before.submit("/synth", { ...request, synth_batch_size: 2 });
    const waiting = await before.submit("/vae", formOf({ src_latents: latents.bytes, request }));
    await first.client.untilStarted(running);
    await first.end("SIGKILL");

    const second = await ServedProcess.start(directory);
    const after = new AceClient(second.client);
    expect((await after.get(`/job?id=${done}&result=1`)).body.equals(result.body)).to.equal(true);
    expect((await after.get(`/job?id=${running}`)).body).to.deep.equal({ status: "running" });
    const songs = partsOf(await after.resultOf(running));
    expect(songs).to.have.length(4);
    expect(songs[1]?.bytes.equals(latents.bytes)).to.equal(true);
    expect((await after.resultOf(waiting)).headers.get("content-type")).to.equal("audio/wav");
    expect(await second.end("SIGTERM")).to.equal(0);
    expect(readdirSync(join(directory, "uploads"))).to.have.length(1);
  });

  it("a server requeues its running job on SIGTERM, leaves no temporary file, and exits with 0", async () => {
    const directory = temporaryDirectory();
    const first = await ServedProcess.start(directory, { SVC_GRACE_SECONDS: "0" });
    const running = await first.client.submit(longSong);
    const waiting = await first.client.submit(longSong);
    await first.client.untilStarted(running);
    expect(await first.end("SIGTERM")).to.equal(0);
    expect(leftovers(directory, [])).to.deep.equal([]);

    const second = await ServedProcess.start(directory);
    await second.client.untilStarted(running);
    expect((await second.client.query(waiting)).item).to.include({ status: 0, queue_position: 1 });
    for (const id of [waiting, running]) await second.client.post("/cancel_task", { task_id: id });
    expect(await second.end("SIGINT")).to.equal(0);
  });

  it("a server killed with kill -9 keeps the upload of a waiting task, also once the song is finished @slow", async () => {
    const directory = temporaryDirectory();
    const recording = writeRecording(join(directory, "recording.mp3"), { seconds: 6 });
    const first = await ServedProcess.start(directory);
    const running = await first.client.submit(longSong);
    const waiting = await first.client.submit({
      ...shortSong,
      task_type: "cover",
      src_audio: uploadOf(recording),
    });
    await first.client.untilStarted(running);
    await first.end("SIGKILL");
    const uploads = join(directory, "uploads");
    const [upload] = readdirSync(uploads) as [string];
    writeFileSync(join(uploads, "ctx_audio_of_nobody.wav"), "x");

    const second = await ServedProcess.start(directory);
    expect(readdirSync(uploads)).to.deep.equal([upload]);
    await second.client.post("/cancel_task", { task_id: running });
    const { item, records } = await second.client.finished(waiting);
    expect(item.status, item.error).to.equal(1);
    expect(records[0]?.metas).to.have.property("duration").that.is.closeTo(6, 0.1);
    expect(await second.end("SIGTERM")).to.equal(0);
    expect(readdirSync(uploads)).to.deep.equal([upload]);
  });
});
