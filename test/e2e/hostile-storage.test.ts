/** Servers whose S3 refuses deletions or does not answer. */
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { Redis } from "ioredis";
import { redisKey } from "../../src/music/fleet/redis.js";
import { uploadOf, writeRecording } from "../music/audio/recordings.js";
import { RedisServer } from "../music/fleet/redis-server.js";
import { type Client, shortSong } from "../music/live-server.js";
import { BUCKET, type HostileS3, startHostileS3 } from "../music/storage/s3-server.js";
import { temporaryDirectory } from "../music/tasks.js";
import { endServed, ServedProcess } from "./served-process.js";

describe("a server whose S3 misbehaves", function () {
  this.timeout(300_000);
  let s3: HostileS3;
  let directory: string;

  beforeEach(async () => {
    s3 = await startHostileS3();
    directory = temporaryDirectory();
  });
  afterEach(() => Promise.all([endServed(), s3.close()]));

  const start = (settings: Record<string, string> = {}, folder = directory, renderMs = 20) =>
    ServedProcess.startStub(folder, renderMs, {
      ...{ SVC_STORAGE: `s3://${BUCKET}/carillon`, ...s3.environment },
      ...settings,
    });

  /** Names of the stored objects. */
  async function objects(folder: string): Promise<string[]> {
    const { behave } = s3;
    s3.behave = () => null;
    const url = `${s3.environment.AWS_ENDPOINT_URL_S3}/${BUCKET}?list-type=2&prefix=carillon/${folder}/`;
    const listing = await (await fetch(url)).text();
    s3.behave = behave;
    return [...listing.matchAll(/<Key>carillon\/([^<]+)/g)].map(([, key]) => key as string);
  }

  const recording = () => uploadOf(writeRecording(join(temporaryDirectory(), "own.wav"), { seconds: 3 }));
  const cover = () => ({ ...shortSong, task_type: "cover", src_audio: recording() });

  async function idOfOnlySong(client: Client): Promise<string> {
    return (await client.get("/v1/tasks")).body.data.tasks[0].task_id;
  }

  it("deletes songs and uploads of a deleted task after all, once S3 permits it, also after kill -9", async () => {
    const first = await start();
    const song = await first.client.makeOne(cover());
    const upload = (await objects("uploads"))[0]?.split("/")[1];
    const id = await idOfOnlySong(first.client);
    s3.behave = (method) => (method === "DELETE" ? 403 : null);
    expect((await first.client.delete(`/v1/tasks/${id}?state=succeeded`)).status).to.equal(200);
    expect(first.log).to.include("the storage did not delete files; the next sweep tries again");
    const check = async (client: Client) => {
      for (const path of [`/v1/tasks/${id}`, song.file, `/v1/audio?path=upload:${upload}`]) {
        expect((await client.get(path)).status, path).to.equal(404);
      }
      const again = { ...shortSong, task_type: "cover", src_audio_path: song.file };
      expect((await client.post("/release_task", again)).status).to.equal(400);
      expect([...(await objects("audio")), ...(await objects("uploads"))]).to.have.length(2);
    };
    await check(first.client);
    await first.end("SIGKILL");
    const second = await start();
    await check(second.client);
    await second.end("SIGTERM");
    s3.behave = () => null;
    await start();
    expect([...(await objects("audio")), ...(await objects("uploads"))]).to.deep.equal([]);
  });

  it("deletes the uploads of tasks that failed or were refused", async () => {
    const first = await start({}, directory, 3_600_000);
    const failing = await first.client.submit(cover());
    await first.client.untilStarted(failing);
    s3.behave = (method) => (method === "DELETE" ? 403 : null);
    await first.client.post("/cancel_task", { task_id: failing });
    let uploads = 0;
    s3.behave = (method, path) => {
      if (method === "PUT" && path.includes("/uploads/") && ++uploads === 2) return 403;
      return method === "DELETE" ? 403 : null;
    };
    const refused = await first.client.postForm("/release_task", {
      ...cover(),
      reference_audio: recording(),
    });
    expect(refused.status).to.equal(503);
    expect(await objects("uploads")).to.have.length(2);
    await first.end("SIGTERM");
    s3.behave = () => null;
    const second = await start();
    expect(await objects("uploads")).to.deep.equal([]);
    expect((await second.client.get("/v1/stats")).body.data.jobs).to.include({ total: 1, failed: 1 });
  });

  it("any gateway of a fleet deletes what another one could not @slow", async () => {
    const redis = await RedisServer.start();
    try {
      const shared = { SVC_REDIS_URL: redis.url };
      const [near, worker] = await Promise.all([
        start({ ...shared, SVC_ROLE: "gateway" }),
        start({ ...shared, SVC_ROLE: "worker" }, temporaryDirectory()),
      ]);
      while ((await near.client.get("/v1/stats")).body.data.workers.length !== 1) await sleep(50);
      const song = await near.client.makeOne(cover());
      const id = await idOfOnlySong(near.client);
      s3.behave = (method) => (method === "DELETE" ? 403 : null);
      expect((await near.client.delete(`/v1/tasks/${id}?state=succeeded`)).status).to.equal(200);
      expect((await near.client.get(song.file)).status).to.equal(404);
      await Promise.all([near.end("SIGTERM"), worker.end("SIGTERM")]);
      expect(await objects("audio")).to.have.length(1);
      s3.behave = () => null;
      // The lease would let only the first gateway clean up for four minutes.
      const client = new Redis(redis.url);
      await client.del(redisKey("lease", "clean-up"));
      client.disconnect();
      await start({ ...shared, SVC_ROLE: "gateway" }, temporaryDirectory());
      expect([...(await objects("audio")), ...(await objects("uploads"))]).to.deep.equal([]);
    } finally {
      await endServed();
      await redis.kill();
    }
  });

  it("a task whose S3 does not answer ends at its time limit and when it is cancelled, and frees its place @slow", async () => {
    const { client } = await start({ SVC_JOB_TIMEOUT_SECONDS: "3" });
    s3.behave = () => "hang";
    const { item } = await client.finished(await client.submit(shortSong));
    expect(item.error).to.include("the job ran longer than 3 seconds");
    const second = await client.submit(shortSong);
    await client.untilStarted(second);
    expect((await client.post("/cancel_task", { task_id: second })).status).to.equal(200);
    s3.behave = () => null;
    expect((await client.makeOne(shortSong)).file).to.be.a("string");
    expect(await objects("audio")).to.have.length(1);
  });

  it("a submission with an upload and a download answer 503 if S3 does not answer; no partial file stays @slow", async () => {
    const first = await start();
    const song = await first.client.makeOne(shortSong);
    await first.end("SIGTERM");
    const elsewhere = temporaryDirectory();
    const { client } = await start({}, elsewhere);
    s3.behave = () => "hang";
    const path = `/v1/audio?path=${decodeURIComponent(song.file).split("/").at(-1)}`;
    const answers = await Promise.all([
      client.postForm("/release_task", cover()),
      client.get(path),
      client.get(`${path}&format=flac`),
    ]);
    for (const { status, body } of answers) {
      expect(status).to.equal(503);
      expect(body.detail).to.include("did not answer within 30 seconds; check AWS_ENDPOINT_URL_S3");
    }
    for (const folder of ["uploads", "api_audio"]) {
      if (existsSync(join(elsewhere, folder))) expect(readdirSync(join(elsewhere, folder))).to.deep.equal([]);
    }
    expect((await client.get("/v1/stats")).body.data.jobs.total).to.equal(0);
  });

  it("clients that give up a conversion leave no partial file and no connection to S3", async () => {
    const first = await start();
    const song = await first.client.makeOne(shortSong);
    await first.end("SIGTERM");
    const elsewhere = temporaryDirectory();
    const served = await start({}, elsewhere);
    const path = `/v1/audio?path=${decodeURIComponent(song.file).split("/").at(-1)}`;
    let asked = 0;
    s3.behave = (method) => {
      if (method !== "GET") return null;
      asked++;
      return "hang";
    };
    const descriptors = () => readdirSync(`/proc/${served.pid}/fd`).length;
    const before = descriptors();
    const leaving = new AbortController();
    const answers = Array.from({ length: 8 }, () =>
      fetch(`${served.client.url}${path}&format=flac`, { signal: leaving.signal }).catch(() => null),
    );
    while (asked < 8) await sleep(20);
    leaving.abort();
    await Promise.all(answers);
    while (descriptors() > before + 4) await sleep(50);
    expect(readdirSync(join(elsewhere, "api_audio"))).to.deep.equal([]);
  });
});
