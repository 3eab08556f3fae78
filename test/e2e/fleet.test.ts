/** Servers in separate processes share their tasks through Redis. Some of the servers are killed. */
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { RedisServer } from "../music/fleet/redis-server.js";
import { type Client, oneSecondSong, type SongRecord, shortSong } from "../music/live-server.js";
import { temporaryDirectory } from "../music/tasks.js";
import { endServed, ServedProcess, spawnCli } from "./served-process.js";

/** Rendering time longer than any test here. Tasks with it must be cancelled. */
const ENDLESS_MS = 3_600_000;

describe("a fleet of server processes", function () {
  this.timeout(300_000);
  let redis: RedisServer;
  let storage: string;

  const shared = () => ({
    SVC_REDIS_URL: redis.url,
    SVC_STORAGE: `file://${storage}`,
    SVC_QUEUE_MAXSIZE: "0",
  });
  const start = (role: string, renderMs = 0, settings: Record<string, string> = {}, model = "stub") =>
    ServedProcess.startStub(
      temporaryDirectory(),
      renderMs,
      { ...shared(), SVC_ROLE: role, ...settings },
      {},
      model,
    );
  const gateways = () => Promise.all([start("gateway"), start("gateway")]);

  async function untilWorkers({ client }: ServedProcess, count: number): Promise<void> {
    while ((await client.get("/v1/stats")).body.data.workers.length !== count) await sleep(50);
  }

  /** Ids of the tasks that a worker started, in order. */
  const startedBy = ({ log }: ServedProcess) =>
    [...log.matchAll(/"task":"([^"]+)"[^\n]*"task started"/g)].map(([, id]) => id as string);

  /** How often workers started the task, summed over all workers. */
  const startCount = (workers: readonly ServedProcess[], id: string) =>
    workers.flatMap(startedBy).filter((other) => other === id).length;

  async function untilBegun(worker: ServedProcess, id: string): Promise<void> {
    while (startCount([worker], id) === 0) await sleep(20);
  }

  async function expectDone(client: Client, ids: readonly string[]): Promise<void> {
    for (const id of ids) {
      const { item } = await client.finished(id);
      expect(item.status, item.error).to.equal(1);
    }
  }

  before(async () => {
    redis = await RedisServer.start();
  });
  beforeEach(() => {
    storage = temporaryDirectory();
  });
  afterEach(async () => {
    await endServed();
    await redis.clear();
  });
  after(() => redis.kill());

  it("runs each accepted task once; every gateway can show, stream and cancel it", async () => {
    const [[near, far], ...workers] = await Promise.all([
      gateways(),
      start("worker", 50),
      start("worker", 50),
    ]);
    await untilWorkers(near, 2);
    await untilWorkers(far, 2);
    const ids: string[] = [];
    for (let i = 0; i < 10; i++) ids.push((await [near, far][i % 2]?.client.submit(oneSecondSong)) as string);
    const events: string[] = [];
    for await (const { event } of far.client.events(ids[8] as string)) events.push(event);
    expect(events.at(-1)).to.equal("done");
    await expectDone(far.client, ids);
    await expectDone(near.client, ids);
    for (const id of ids) expect(startCount(workers, id)).to.equal(1);
    const [song] = (await far.client.query(ids[0] as string)).records as [SongRecord];
    expect((await near.client.download(song)).length).to.be.greaterThan(0);
    expect((await near.client.delete(`/v1/tasks/${ids[0]}?state=succeeded`)).body.data.status).to.equal(
      "deleted",
    );
    expect(readdirSync(join(storage, "api_audio"))).to.have.length(9);
    const { jobs, workers: announced } = (await near.client.get("/v1/stats")).body.data;
    expect(jobs).to.deep.equal({ total: 9, queued: 0, running: 0, succeeded: 9, failed: 0 });
    expect(announced[0].models).to.deep.equal([{ name: "stub", slot: 1, is_loaded: true }]);

    const refused = await near.client.post("/release_task", { ...oneSecondSong, model: "another" });
    expect(refused).to.deep.include({ status: 400 });
    expect(refused.body.detail).to.include("available: stub");
    expect((await near.client.post("/v1/init", {})).status).to.equal(501);
    expect((await near.client.get(`/v1/tasks/${ids[1]}/preview`)).status).to.equal(501);
    const wordless = await near.client.post("/format_input", { prompt: "slow waltz" });
    expect(wordless.status, wordless.body.detail).to.equal(503);
    expect(wordless.body.detail).to.include("No worker of the fleet can write text");
    expect(readFileSync(`/proc/${near.pid}/maps`, "utf8")).to.not.include("libtorch");
    expect((await workers[0]?.client.post("/release_task", oneSecondSong))?.status).to.equal(404);
    expect((await workers[0]?.client.get("/health"))?.status).to.equal(200);
  });

  it("cancels tasks that run on another machine, and survives kill -9 of a worker and of a gateway @slow", async () => {
    const [[near, far], first] = await Promise.all([gateways(), start("worker", ENDLESS_MS)]);
    await untilWorkers(near, 1);
    await untilWorkers(far, 1);
    const cancelled = await near.client.submit(oneSecondSong);
    await untilBegun(first, cancelled);
    expect((await far.client.delete(`/v1/tasks/${cancelled}`)).body.data.status).to.equal("cancelled");
    expect((await near.client.query(cancelled)).item.error).to.equal("Cancelled by user");

    const survivor = await near.client.submit(oneSecondSong);
    await untilBegun(first, survivor);
    const { seed } = (await near.client.get(`/v1/tasks/${survivor}`)).body.data.parameters;
    await first.end("SIGKILL");
    await near.end("SIGKILL");
    const second = await start("worker", 20);
    await expectDone(far.client, [survivor]);
    expect(startCount([second], survivor)).to.equal(1);
    const { songs } = (await far.client.get(`/v1/tasks/${survivor}`)).body.data;
    expect(songs[0].seed).to.equal(seed[0]);
  });

  it("fails a task after it has crashed three workers @slow", async () => {
    const gateway = await start("gateway");
    let id = "";
    for (const death of [1, 2, 3]) {
      const worker = await start("worker", ENDLESS_MS);
      await untilWorkers(gateway, 1);
      if (death === 1) id = await gateway.client.submit(oneSecondSong);
      await untilBegun(worker, id);
      await worker.end("SIGKILL");
    }
    const survivor = await start("worker", 20);
    const { item } = await gateway.client.finished(id);
    expect(item).to.include({ status: 2 });
    expect(item.error).to.include("stopped 3 times");
    expect(startCount([survivor], id)).to.equal(0);
  });

  it("gives each task to a worker with its model", async () => {
    const [gateway, a, b] = await Promise.all([
      start("gateway"),
      start("worker", 20, {}, "model-a"),
      start("worker", 20, {}, "model-b"),
    ]);
    await untilWorkers(gateway, 2);
    const { client } = gateway;
    const models = (await client.get("/v1/models")).body.data.models.map(
      ({ name }: { name: string }) => name,
    );
    expect(models).to.have.members(["model-a", "model-b"]);
    const submit = (model: string) => client.submit({ ...oneSecondSong, model });
    const [forA, forB] = [
      [await submit("model-a"), await submit("model-a")],
      [await submit("model-b"), await submit("model-b")],
    ];
    await expectDone(client, [...forA, ...forB]);
    expect(startedBy(a)).to.deep.equal(forA);
    expect(startedBy(b)).to.deep.equal(forB);
    await b.end("SIGTERM");
    const refused = await client.post("/release_task", { ...oneSecondSong, model: "model-b" });
    expect(refused).to.deep.include({ status: 400 });
    expect(refused.body.detail).to.match(/available: model-a$/);
  });

  it("API keys take turns; tasks over the limit are rejected; no key is stored", async () => {
    const keys = { first: "the-first-key", second: "the-second-key" };
    const settings = { SVC_API_KEY: keys.first, SVC_API_KEYS: keys.second, SVC_QUEUE_MAXSIZE: "4" };
    const [near, far, worker] = await Promise.all([
      start("gateway", 0, settings),
      start("gateway", 0, settings),
      start("worker", ENDLESS_MS),
    ]);
    const header = { Authorization: `Bearer ${keys.first}` };
    const workers = async ({ client }: ServedProcess) =>
      (await client.get("/v1/stats", header)).body.data.workers.length;
    while ((await workers(near)) + (await workers(far)) < 2) await sleep(20);
    const first = () => near.client.post("/release_task", oneSecondSong, header);
    const second = () => far.client.post("/release_task", { ...oneSecondSong, ai_token: keys.second });
    const accepted = async (answer: Promise<{ body: { data: { task_id: string } } }>) =>
      (await answer).body.data.task_id;

    const running = await accepted(first());
    await untilBegun(worker, running);
    const a = [await accepted(first()), await accepted(first())] as const;
    const b = [await accepted(second()), await accepted(second())] as const;
    for (const full of [await first(), await second()]) {
      expect(full.status).to.equal(429);
      expect(Number(full.headers.get("retry-after"))).to.be.at.least(1);
    }
    expect((await far.client.post("/release_task", oneSecondSong)).status).to.equal(401);

    const order = [running, b[0], a[0], b[1], a[1]];
    const seen = await far.client.post("/query_result", { task_id_list: order, ai_token: keys.first });
    const places = seen.body.data.map((item: { queue_position?: number }) => item.queue_position);
    expect(places).to.deep.equal([undefined, 1, 2, 3, 4]);
    for (const id of order) {
      await untilBegun(worker, id);
      expect((await far.client.delete(`/v1/tasks/${id}`, header)).body.data.status).to.equal("cancelled");
    }
    expect(startedBy(worker)).to.deep.equal(order);
    expect(redis.written)
      .to.include(running)
      .and.to.not.match(/the-first-key|the-second-key/);
    expect(near.log + far.log).to.not.match(/the-first-key|the-second-key/);
  });

  it("a fleet can consist of `carillon gateway`, which loads no addon, and `carillon worker`, which serves no songs", async () => {
    const settings = { ...shared(), SVC_INIT_LLM: "false", SVC_API_WORKERS: "4" };
    const [gateway, worker] = await Promise.all([
      ServedProcess.start(temporaryDirectory(), settings, {}, ["gateway"]),
      ServedProcess.start(temporaryDirectory(), settings, {}, ["worker"]),
    ]);
    await untilWorkers(gateway, 1);
    const { client } = gateway;
    const song = await client.makeOne(oneSecondSong);
    expect((await client.download(song)).length).to.be.greaterThan(100_000);
    const loaded = ({ pid }: ServedProcess) => readFileSync(`/proc/${pid}/maps`, "utf8");
    expect(loaded(gateway)).to.not.match(/carillon\.node|libtorch/);
    expect(loaded(worker)).to.match(/carillon\.node/);
    expect(gateway.log).to.include("SVC_API_WORKERS was ignored: one process serves all requests");

    expect((await worker.client.get("/health")).status).to.equal(200);
    expect((await worker.client.get("/metrics")).body).to.include("carillon_");
    for (const path of ["/v1/tasks", "/v1/stats", "/v1/models", "/openapi.json", "/"]) {
      expect((await worker.client.get(path)).status, path).to.equal(404);
    }
  });

  it("survives kill -9 of Redis: no task is lost, and tasks that ran during the outage are recorded @slow", async () => {
    const [gateway, worker] = await Promise.all([start("gateway"), start("worker", 300)]);
    await untilWorkers(gateway, 1);
    const { client } = gateway;
    const done = await client.submit(oneSecondSong);
    await expectDone(client, [done]);
    const ids = [
      await client.submit(oneSecondSong),
      await client.submit(oneSecondSong),
      await client.submit(oneSecondSong),
    ];
    await untilBegun(worker, ids[0] as string);
    await redis.kill();
    const refused = await client.post("/release_task", oneSecondSong);
    expect(refused.status).to.equal(503);
    expect(refused.body.detail).to.include("Redis is unreachable");
    expect((await client.query(done)).item.status).to.equal(1);
    await redis.start();
    // The gateway answers 503 until it has reconnected to Redis.
    while ((await client.get("/v1/stats")).status !== 200) await sleep(50);
    await expectDone(client, ids);
    for (const id of ids) expect(startCount([worker], id)).to.equal(1);
  });

  it("finishes the tasks of a worker on SIGTERM, or requeues those that exceed its grace period @slow", async () => {
    const [gateway, short] = await Promise.all([
      start("gateway"),
      start("worker", 1_000, { SVC_GRACE_SECONDS: "60" }),
    ]);
    await untilWorkers(gateway, 1);
    const finished = await gateway.client.submit(oneSecondSong);
    await untilBegun(short, finished);
    expect(await short.end("SIGTERM")).to.equal(0);
    await expectDone(gateway.client, [finished]);
    const unheld = [
      await gateway.client.post("/release_task", oneSecondSong),
      await gateway.client.get("/v1/lora/status"),
    ];
    for (const { status, headers, body } of unheld) {
      expect(status, body.detail).to.equal(503);
      expect(headers.get("retry-after")).to.equal("10");
    }

    const long = await start("worker", ENDLESS_MS, { SVC_GRACE_SECONDS: "0" });
    await untilWorkers(gateway, 1);
    const returned = await gateway.client.submit(oneSecondSong);
    await untilBegun(long, returned);
    expect(await long.end("SIGTERM")).to.equal(0);
    expect((await gateway.client.query(returned)).item.queue_position).to.equal(1);
    const next = await start("worker", 20);
    await expectDone(gateway.client, [returned]);
    expect(startCount([next], returned)).to.equal(1);
  });

  it("cleans up songs by size and age in one gateway at a time; another gateway takes over after a kill @slow", async () => {
    const small = { SVC_AUDIO_MAX_TOTAL_MB: "4" };
    const [near, far] = await Promise.all([
      start("gateway", 0, small),
      start("gateway", 0, small),
      start("worker"),
    ]);
    await untilWorkers(near, 1);
    await untilWorkers(far, 1);
    /** Makes three songs of 1.9 MB each. */
    const makeThree = async ({ client }: ServedProcess) => {
      for (let count = 0; count < 3; count++) await client.makeOne(shortSong);
    };
    const expired = ({ log }: ServedProcess) => log.split('"task expired"').length - 1;
    /** Expires the lease, and has all gateways try to acquire it. */
    const sweep = async (gateways: readonly ServedProcess[]) => {
      await redis.forget("carillon:lease:clean-up");
      for (const gateway of gateways) gateway.signal("SIGWINCH");
    };
    const untilExpired = async (count: number, ...gateways: ServedProcess[]) => {
      const total = () => gateways.reduce((sum, gateway) => sum + expired(gateway), 0);
      while (total() < count) await sleep(20);
      expect(total()).to.equal(count);
    };

    await makeThree(near);
    await sweep([near, far]);
    await untilExpired(1, near, far);
    const cleaner = expired(near) === 1 ? near : far;
    const successor = cleaner === near ? far : near;
    await cleaner.end("SIGKILL");

    await makeThree(successor);
    await sweep([successor]);
    await untilExpired(3, successor);
    const { tasks } = (await successor.client.get("/v1/tasks")).body.data;
    await successor.client.patch(`/v1/tasks/${tasks[0].task_id}`, { favorite: true });

    // The new gateway has an age limit of a few milliseconds. It cannot remove songs while another gateway
    // holds the lease.
    const strict = await start("gateway", 0, { SVC_AUDIO_MAX_AGE_HOURS: "0.000001" });
    await sweep([strict]);
    await untilExpired(1, strict);
    await untilExpired(5, near, far, strict);
    // A task expires before its files are deleted.
    while (readdirSync(join(storage, "api_audio")).length > 1) await sleep(20);
    expect(readdirSync(join(storage, "api_audio"))).to.have.length(1);
    expect((await successor.client.get("/v1/stats")).body.data.jobs.total).to.equal(1);
  });

  async function ran(args: readonly string[], settings: Record<string, string>) {
    const child = spawnCli(args, settings);
    let stderr = "";
    child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      stderr += text;
    });
    const [exitCode] = await once(child, "close");
    return { stderr, exitCode };
  }

  it("connects to Redis with TLS and a password, and rejects an untrusted certificate @slow", async () => {
    const secured = await RedisServer.startSecured("secret");
    try {
      const settings = { SVC_REDIS_URL: secured.url, NODE_EXTRA_CA_CERTS: secured.certificateFile };
      const [gateway, worker] = await Promise.all([
        start("gateway", 0, settings),
        start("worker", 0, settings),
      ]);
      await untilWorkers(gateway, 1);
      await expectDone(gateway.client, [await gateway.client.submit(oneSecondSong)]);
      expect(gateway.log + worker.log).to.not.include("secret");

      const home = ["gateway", "--home", temporaryDirectory()];
      const untrusting = await ran(home, { ...shared(), SVC_REDIS_URL: secured.url });
      const wrong = secured.url.replace("secret", "wrong-word");
      const refused = await ran(home, { ...shared(), ...settings, SVC_REDIS_URL: wrong });
      for (const { stderr, exitCode } of [untrusting, refused]) {
        expect(exitCode).to.equal(1);
        expect(stderr).to.not.match(/secret|wrong-word/);
      }
      const lastLine = ({ stderr }: { stderr: string }) => stderr.trim().split("\n").at(-1);
      expect(lastLine(untrusting)).to.match(/Redis at \S+ cannot be used: .*self-signed certificate/);
      expect(lastLine(refused)).to.match(/Redis at \S+ cannot be used: .*WRONGPASS/);
    } finally {
      await endServed();
      await secured.kill();
    }
  });

  it("a gateway exits with a one-line error if Redis is unreachable or not configured @slow", async () => {
    await redis.kill();
    const stderrOf = async (settings: Record<string, string>) => {
      const { stderr, exitCode } = await ran(["gateway", "--home", temporaryDirectory()], settings);
      expect(exitCode).to.equal(1);
      return stderr.trim().split("\n").at(-1);
    };
    const url = `redis://:secret@${new URL(redis.url).host}`;
    const unreachable = await stderrOf({ SVC_REDIS_URL: url, SVC_STORAGE: `file://${storage}` });
    await redis.start();
    expect(await stderrOf({ SVC_REDIS_URL: url })).to.include("SVC_STORAGE is empty");
    expect(unreachable).to.match(
      /^carillon: SVC_REDIS_URL: Redis at \S+ cannot be used: connect ECONNREFUSED/,
    );
    expect(unreachable).to.not.include("secret");
    expect(await stderrOf({})).to.include("SVC_ROLE is gateway, which needs SVC_REDIS_URL");
  });
});
