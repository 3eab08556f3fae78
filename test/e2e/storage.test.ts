/** A gateway and a worker with separate folders, which exchange files through the shared storage. */
import { existsSync, mkdirSync, readdirSync, renameSync, statSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { expect } from "chai";
import { uploadOf, writeRecording } from "../music/audio/recordings.js";
import { RedisServer } from "../music/fleet/redis-server.js";
import { type Client, shortSong } from "../music/live-server.js";
import { BUCKET, type S3Server, startS3 } from "../music/storage/s3-server.js";
import { temporaryDirectory } from "../music/tasks.js";
import { endServed, ServedProcess, spawnCli } from "./served-process.js";

describe("storage of a fleet's songs and uploads", function () {
  this.timeout(300_000);
  let redis: RedisServer;
  let s3: S3Server;

  beforeEach(async () => {
    [redis, s3] = await Promise.all([RedisServer.start(), startS3()]);
  });
  afterEach(() => Promise.all([endServed(), redis.kill(), s3.close()]));

  const start = (role: string, storage: string, directory: string, settings: Record<string, string> = {}) =>
    ServedProcess.startStub(directory, 20, {
      ...{ SVC_REDIS_URL: redis.url, SVC_ROLE: role, SVC_STORAGE: storage, ...s3.environment },
      ...settings,
    });

  async function pair(storage: string, settings: Record<string, string> = {}) {
    const [near, far] = [temporaryDirectory(), temporaryDirectory()];
    const [gateway, worker] = await Promise.all([
      start("gateway", storage, near, settings),
      start("worker", storage, far),
    ]);
    while ((await gateway.client.get("/v1/stats")).body.data.workers.length !== 1) await sleep(50);
    return { gateway, worker, near, far };
  }

  const cover = { ...shortSong, task_type: "cover" };

  it("songs and uploads pass through S3 between servers with separate folders", async () => {
    const { gateway, worker, near, far } = await pair(`s3://${BUCKET}/carillon`);
    const { client } = gateway;
    const recording = writeRecording(join(near, "own.wav"), { seconds: 3 });
    const uploaded = await client.makeOne({ ...cover, src_audio: uploadOf(recording) });
    const named = await client.makeOne({ ...cover, src_audio_path: recording });
    const again = await client.makeOne({ ...cover, src_audio_path: uploaded.file });
    expect(readdirSync(join(far, "api_audio"))).to.have.length(3);

    // The song was made on another machine and is not in the gateway's folder.
    const url = gateway.client.url + named.file;
    const whole = Buffer.from(await (await fetch(url)).arrayBuffer());
    expect(whole.length).to.be.greaterThan(1000);
    const head = await fetch(url, { method: "HEAD" });
    expect(head.status).to.equal(200);
    expect(Number(head.headers.get("content-length"))).to.equal(whole.length);
    expect(head.headers.get("content-type")).to.equal("audio/wav");
    const part = async (range: string) => fetch(url, { headers: { Range: range } });
    const middle = await part("bytes=100-199");
    expect(middle.status).to.equal(206);
    expect(middle.headers.get("content-range")).to.equal(`bytes 100-199/${whole.length}`);
    expect(Buffer.from(await middle.arrayBuffer()).equals(whole.subarray(100, 200))).to.equal(true);
    expect((await part(`bytes=${whole.length}-`)).status).to.equal(416);
    expect((await part("bytes=-5")).headers.get("content-length")).to.equal("5");
    const outside = await client.get(`/v1/audio?path=${encodeURIComponent("/etc/passwd")}`);
    expect(outside.status).to.equal(403);
    const absent = await client.get(`/v1/audio?path=${"0".repeat(36)}-0.mp3`);
    expect(absent.status).to.equal(404);
    const flac = await fetch(`${gateway.client.url}${again.file}&format=flac`);
    expect(flac.headers.get("content-type")).to.equal("audio/flac");
    expect((await flac.arrayBuffer()).byteLength).to.be.greaterThan(1000);

    const signed = await start("gateway", `s3://${BUCKET}/carillon`, temporaryDirectory(), {
      SVC_STORAGE_URLS: "signed",
    });
    const address = signed.client.url + pathOf(named.file);
    expect((await fetch(address, { redirect: "manual" })).status).to.equal(307);
    s3.checkSignatures(true);
    const direct = await fetch(address);
    expect(Buffer.from(await direct.arrayBuffer()).equals(whole)).to.equal(true);
    const piece = await fetch(address, { headers: { Range: "bytes=100-199" } });
    expect(piece.status).to.equal(206);
    expect(Buffer.from(await piece.arrayBuffer()).equals(whole.subarray(100, 200))).to.equal(true);
    const looked = await fetch(address, { method: "HEAD" });
    expect(looked.status).to.equal(200);
    expect(Number(looked.headers.get("content-length"))).to.equal(whole.length);
    s3.checkSignatures(false);

    const id = (await client.get("/v1/tasks")).body.data.tasks.find(
      (task: { songs: { file: string }[] }) => task.songs[0]?.file === named.file,
    ).task_id;
    expect((await client.delete(`/v1/tasks/${id}?state=succeeded`)).status).to.equal(200);
    expect((await client.get(named.file)).status).to.equal(404);
    await Promise.all([gateway, signed, worker].map((served) => served.end("SIGTERM")));
  });

  /** Returns a path that downloads the song from any server. The path contains only the file name of the song. */
  function pathOf(file: string): string {
    const name = decodeURIComponent(file).split("/").at(-1);
    return `/v1/audio?path=${name}`;
  }

  async function untilWaiting(client: Client, id: string): Promise<void> {
    const text = async () => (await client.query(id)).item.progress_text;
    while (!(await text())?.startsWith("Waiting for the storage")) await sleep(50);
  }

  it("songs wait while the mounted directory is unavailable; requests get 503 meanwhile @slow", async () => {
    const shared = join(temporaryDirectory(), "mount");
    mkdirSync(shared);
    const { gateway, worker } = await pair(pathToFileURL(shared).href);
    const { client } = gateway;
    const made = await client.makeOne(shortSong);
    renameSync(shared, `${shared}.away`);
    const id = await client.submit(shortSong);
    await untilWaiting(client, id);
    const answer = await client.get(made.file);
    expect(answer.status).to.equal(503);
    expect(answer.body.detail).to.match(/^the storage \S+ is unavailable/);
    const covered = await client.postForm("/release_task", {
      ...cover,
      src_audio: uploadOf(writeRecording(join(temporaryDirectory(), "own.wav"), { seconds: 3 })),
    });
    expect(covered.status).to.equal(503);
    expect(existsSync(shared)).to.equal(false);
    renameSync(`${shared}.away`, shared);
    const { item } = await client.finished(id);
    expect(item.status, item.error).to.equal(1);
    expect((await client.get(made.file)).status).to.equal(200);
    await Promise.all([gateway, worker].map((served) => served.end("SIGTERM")));
  });

  it("songs wait while S3 is unavailable; requests get 503 meanwhile @slow", async () => {
    const { gateway, worker } = await pair(`s3://${BUCKET}`);
    const { client } = gateway;
    const made = await client.makeOne(shortSong);
    const port = Number(new URL(s3.environment.AWS_ENDPOINT_URL_S3 as string).port);
    await s3.close();
    const id = await client.submit(shortSong);
    while (!worker.log.includes("storage unreachable; the task waits")) await sleep(50);
    await untilWaiting(client, id);
    const answer = await client.get(made.file);
    expect(answer.status).to.equal(503);
    expect(answer.body.detail).to.match(/^the storage s3:\/\/\S+ does not answer/);
    s3 = await startS3(port);
    const { item } = await client.finished(id);
    expect(item.status, item.error).to.equal(1);
    await Promise.all([gateway, worker].map((served) => served.end("SIGTERM")));
  });

  it("songs and uploads are stored in a directory that all servers mount @slow", async () => {
    const shared = temporaryDirectory();
    const { gateway, worker, near, far } = await pair(pathToFileURL(shared).href);
    const recording = writeRecording(join(near, "own.wav"), { seconds: 3 });
    const { file } = await gateway.client.makeOne({ ...cover, src_audio: uploadOf(recording) });
    expect((await gateway.client.download({ file })).length).to.be.greaterThan(1000);
    expect(readdirSync(join(shared, "api_audio"))).to.have.length(1);
    expect(() => statSync(join(far, "api_audio"))).to.throw();
    expect(readdirSync(join(far, "unpublished"))).to.deep.equal([]);
    const [task] = (await gateway.client.get("/v1/tasks")).body.data.tasks;
    const again = await gateway.client.makeOne(task.parameters);
    expect(readdirSync(join(shared, "uploads"))).to.have.length(2);
    expect((await gateway.client.download(again)).equals(await gateway.client.download({ file }))).to.equal(
      true,
    );
    await Promise.all([gateway, worker].map((served) => served.end("SIGTERM")));
  });

  it("a server whose storage differs from the rest of the fleet prints one line and exits @slow", async () => {
    const [shared, elsewhere] = [temporaryDirectory(), temporaryDirectory()].map(
      (path) => pathToFileURL(path).href,
    );
    await start("gateway", shared as string, temporaryDirectory());
    for (const storage of [elsewhere as string, `s3://${BUCKET}`]) {
      const settings = { ...s3.environment, SVC_REDIS_URL: redis.url, SVC_STORAGE: storage };
      const child = spawnCli(["gateway", "--port", "0", "--home", temporaryDirectory()], settings);
      let stderr = "";
      for await (const text of child.stderr?.setEncoding("utf8") ?? []) stderr += text;
      const line = stderr.trim().split("\n").at(-1);
      expect(line).to.include(
        `carillon: SVC_STORAGE: ${storage} is not the storage of the fleet at SVC_REDIS_URL`,
      );
      expect(line).to.include(`which uses ${shared}`);
    }
  });

  it("a server whose bucket does not exist prints one line and exits @slow", async () => {
    const settings = { ...s3.environment, SVC_STORAGE: "s3://no-such-bucket" };
    const child = spawnCli(["serve", "--port", "0", "--home", temporaryDirectory()], settings);
    let stderr = "";
    for await (const text of child.stderr?.setEncoding("utf8") ?? []) stderr += text;
    expect(stderr.trim().split("\n").at(-1)).to.equal(
      "carillon: SVC_STORAGE: the bucket s3://no-such-bucket does not exist",
    );
  });
});
