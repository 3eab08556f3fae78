import { mkdirSync, readdirSync, realpathSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { shortSong } from "../music/live-server.js";
import { writeSilence } from "../music/recordings.js";
import { temporaryDirectory } from "../music/tasks.js";
import { writeSampleSet } from "../music/training/sample-files.js";
import { shortRun, Trainer } from "../music/training/trainer.js";
import { canMountDisks, ServedProcess } from "./served-process.js";

const DISK_KIB = 2048;

describe("a server with a small disk", () => {
  let root: string;
  let server: ServedProcess;
  let trainer: Trainer;

  before(function () {
    // Pending where the machine lets no test mount anything: only a real disk fills up as one.
    if (!canMountDisks()) this.skip();
  });

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

  /** Names in a directory of the disk. */
  const onDisk = (path: string) => readdirSync(server.seen(join(root, "disk", path)));

  it("fails a run whose checkpoint does not fit, and gives its space back", async () => {
    const small = { ...shortRun, lora_rank: 1 };
    await trainer.complete({ ...small, output_dir: "disk/before" });
    await trainer.start({ ...shortRun, lora_rank: 64, output_dir: "disk/large" });
    const ended = await trainer.ended();
    expect(ended.state).to.equal("failed");
    expect(ended.error).to.match(/ cannot be written: No space left on device$/);
    expect(onDisk("large")).to.not.include("final");
    expect(onDisk("large/checkpoints")).to.deep.equal([]);
    expect(onDisk("before")).to.include("final");
    await trainer.complete({ ...small, output_dir: "disk/after" });
  });

  it("ends a whole preprocessing at the sample that does not fit", async () => {
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
    // The first one stays; the third, which would fit, is not tried, and no manifest calls this a data set.
    expect(onDisk("tensors")).to.have.length(1);
    expect(onDisk("tensors")[0]).to.match(/\.pt$/);
  });
});

describe("songs on a small disk", () => {
  before(function () {
    if (!canMountDisks()) this.skip();
  });

  it("say that it is full, leave nothing of themselves, and are made again once they fit", async () => {
    const directory = realpathSync(temporaryDirectory());
    const songs = join(directory, "api_audio");
    mkdirSync(songs);
    const server = await ServedProcess.start(directory, {}, { disk: { directory: songs, sizeKiB: 1024 } });
    const { client } = server;
    const large = await client.finished(await client.submit({ ...shortSong, audio_format: "wav32" }));
    expect(large.item).to.include({ status: 2, error: "the disk with the audio folder is full" });
    expect(readdirSync(server.seen(songs))).to.deep.equal([]);
    await client.makeOne({ ...shortSong, audio_format: "mp3" });
    expect(readdirSync(server.seen(songs))).to.have.length(1);
    expect(await server.end("SIGTERM")).to.equal(0);
  });
});
