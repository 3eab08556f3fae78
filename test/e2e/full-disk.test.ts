import {
  closeSync,
  mkdirSync,
  openSync,
  readdirSync,
  realpathSync,
  rmSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { AceClient, formOf } from "../music/acestep-cpp/ace-client.js";
import { writeSilence } from "../music/audio/recordings.js";
import { type SongRecord, shortSong } from "../music/live-server.js";
import { temporaryDirectory } from "../music/tasks.js";
import { writeSampleSet } from "../music/training/sample-files.js";
import { shortRun, Trainer } from "../music/training/trainer.js";
import { canMountDisks, endServed, ServedProcess } from "./served-process.js";

const DISK_KIB = 2048;

describe("training and preprocessing on a full disk", () => {
  let root: string;
  let server: ServedProcess;
  let trainer: Trainer;

  before(function () {
    // The test needs a real disk that fills up. Without permission to mount a disk, the test is skipped.
    if (!canMountDisks()) this.skip();
  });
  after(endServed);

  beforeEach(async () => {
    root = realpathSync(temporaryDirectory());
    mkdirSync(join(root, "disk"));
    mkdirSync(join(root, "set"));
    writeSampleSet(join(root, "set"), 2);
    const disk = { directory: join(root, "disk"), sizeKiB: DISK_KIB };
    server = await ServedProcess.start(temporaryDirectory(), { SVC_TRAINING_ROOT: root }, { disk });
    trainer = new Trainer(server.client, root);
  });

  afterEach(async () => {
    expect((await server.client.get("/health")).body.data.status).to.equal("ok");
    expect(await server.end("SIGTERM")).to.equal(0);
  });

  /** File names in a directory on the small disk. */
  const onDisk = (path: string) => readdirSync(server.hostPath(join(root, "disk", path)));

  it("fails a training run whose checkpoint does not fit, and frees its space @slow", async () => {
    const small = { ...shortRun, lora_rank: 1 };
    await trainer.complete({ ...small, output_dir: "disk/before" });
    await trainer.start({ ...shortRun, lora_rank: 64, output_dir: "disk/large" });
    const ended = await trainer.untilEnded();
    expect(ended.state).to.equal("failed");
    expect(ended.error).to.match(/ cannot be written: No space left on device$/);
    expect(onDisk("large")).to.not.include("final");
    expect(onDisk("large/checkpoints")).to.deep.equal([]);
    expect(onDisk("before")).to.include("final");
    await trainer.complete({ ...small, output_dir: "disk/after" });
  });

  it("aborts preprocessing at a sample that does not fit @slow", async () => {
    mkdirSync(join(root, "music"));
    for (const [name, seconds] of [
      ["1", 10],
      ["2", 120],
      ["3", 10],
    ] as const) {
      writeSilence(join(root, "music", `${name}.flac`), seconds);
      writeFileSync(join(root, "music", `${name}.caption.txt`), "silence");
    }
    await server.client.post("/v1/dataset/scan", { audio_dir: "music" });
    const { status, body } = await server.client.post("/v1/dataset/preprocess", {
      output_dir: "disk/tensors",
    });
    expect(body.detail).to.match(/ cannot be written: No space left on device$/);
    expect(status).to.equal(500);
    // Preprocessing wrote the first sample and stopped at the second, although the third would have fitted.
    // It wrote no manifest, so training does not take the folder for a complete data set.
    expect(onDisk("tensors")).to.have.length(1);
    expect(onDisk("tensors")[0]).to.match(/\.pt$/);
  });
});

describe("making songs on a full disk", () => {
  before(function () {
    if (!canMountDisks()) this.skip();
  });
  afterEach(endServed);

  it("songs wait until there is room on the disk, and leave no partial files @slow", async () => {
    const directory = realpathSync(temporaryDirectory());
    const songs = join(directory, "api_audio");
    mkdirSync(songs);
    const server = await ServedProcess.start(directory, {}, { disk: { directory: songs, sizeKiB: 1024 } });
    const { client } = server;
    const large = await client.submit({ ...shortSong, audio_format: "wav32" });
    await client.makeOne({ ...shortSong, audio_format: "mp3" });
    expect(server.log).to.include("the disk of the audio folder is full");
    expect((await client.query(large)).item.status).to.equal(0);
    await client.post("/cancel_task", { task_id: large });
    expect(readdirSync(server.hostPath(songs))).to.have.length(1);
    expect(await server.end("SIGTERM")).to.equal(0);
  });
});

describe("a server whose songs fill the disk", () => {
  before(function () {
    if (!canMountDisks()) this.skip();
  });
  afterEach(endServed);

  it("reports the full disk, keeps its data, and continues once there is room @slow", async () => {
    const directory = realpathSync(temporaryDirectory());
    const server = await ServedProcess.startStub(
      directory,
      1500,
      {},
      { disk: { directory, sizeKiB: 64 * 1024 } },
    );
    const { client } = server;
    const [song] = (await client.make(shortSong)) as [SongRecord];
    const running = await client.submit(shortSong);
    const waiting = await client.submit(shortSong);
    const unwanted = await client.submit(shortSong);
    await client.untilStarted(running);
    const filler = server.hostPath(join(directory, "filler"));
    fill(filler);

    const refused = await client.post("/release_task", shortSong);
    expect(refused.status).to.equal(507);
    expect(refused.body.detail).to.match(
      /^the disk of the task store is full \(\d+ MiB left\); free some space$/,
    );
    expect((await client.post("/cancel_task", { task_id: unwanted })).status).to.equal(507);
    expect((await client.query(unwanted)).item).to.include({ status: 0, queue_position: 2 });
    // The job has ended, but neither its end nor a cancellation can be recorded.
    expect((await client.post("/cancel_task", { task_id: running })).status).to.equal(507);
    expect((await client.query(running)).item.status).to.equal(0);
    await client.download(song);

    rmSync(filler);
    expect((await client.finished(running)).item.error).to.equal("Cancelled by user");
    expect((await client.finished(waiting)).item.status).to.equal(1);
    expect((await client.finished(unwanted)).item.status).to.equal(1);
    await client.make(shortSong);
    expect(await server.end("SIGTERM")).to.equal(0);
  });

  it("refuses a job of acestep.cpp's clients in their shape, and finishes the accepted ones once there is room @slow", async () => {
    const directory = realpathSync(temporaryDirectory());
    const disk = { directory, sizeKiB: 64 * 1024 };
    const server = await ServedProcess.startStub(directory, 1500, {}, { disk });
    const ace = new AceClient(server.client);
    const request = { caption: "a waltz", duration: 10, output_format: "wav16" };
    const running = await ace.submit("/synth", request);
    await server.client.untilStarted(running);
    const filler = server.hostPath(join(directory, "filler"));
    fill(filler);
    const uploaded = formOf({ request, ref_audio: Buffer.alloc(1 << 20) });
    for (const body of [request, uploaded]) {
      const { status, body: answer } = await ace.send("POST", "/synth", body);
      expect([status, Object.keys(answer)]).to.deep.equal([507, ["error"]]);
      expect(answer.error).to.match(/disk.* is full/);
    }
    expect((await ace.get(`/job?id=${running}`)).body).to.deep.equal({ status: "running" });
    rmSync(filler);
    expect(await ace.ended(running)).to.equal("done");
    expect(await ace.parts("/synth", request)).to.have.length(2);
    expect(readdirSync(server.hostPath(join(directory, "uploads")))).to.deep.equal([]);
    expect(await server.end("SIGTERM")).to.equal(0);
  });

  it("retries a song that did not fit on the disk @slow", async () => {
    const directory = realpathSync(temporaryDirectory());
    const server = await ServedProcess.startStub(
      directory,
      1500,
      {},
      { disk: { directory, sizeKiB: 64 * 1024 } },
    );
    const id = await server.client.submit(shortSong);
    await server.client.untilStarted(id);
    const filler = server.hostPath(join(directory, "filler"));
    fill(filler);
    while (!server.log.includes("could not record the end of a task")) await sleep(50);
    rmSync(filler);
    expect((await server.client.finished(id)).item.status).to.equal(1);
    expect(await server.end("SIGTERM")).to.equal(0);
  });
});

/** Writes a file until the disk is full. */
function fill(path: string): void {
  const file = openSync(path, "w");
  try {
    for (;;) writeSync(file, Buffer.alloc(4096));
  } catch (error) {
    expect((error as NodeJS.ErrnoException).code).to.equal("ENOSPC");
  } finally {
    closeSync(file);
  }
}
