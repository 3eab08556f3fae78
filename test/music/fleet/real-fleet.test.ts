/** Servers with the real engine that share tasks and adapter states. */
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { writeLora } from "../adapter-files.js";
import { type Client, type LiveServer, oneSecondSong, startLiveServer } from "../live-server.js";
import { temporaryDirectory } from "../tasks.js";
import { RedisServer } from "./redis-server.js";

const seededSong = { ...oneSecondSong, use_random_seed: false, seed: 11, audio_format: "wav" };

describe("a fleet of servers with real engines", () => {
  const folder = temporaryDirectory();
  const style = writeLora(join(folder, "style"));
  const storage = `file://${temporaryDirectory()}`;
  const servers: LiveServer[] = [];
  let redis: RedisServer;
  let gateway: Client;
  let worker: LiveServer;

  /** Starts a gateway, or a server that is both gateway and worker (`all`). */
  async function start(role: "gateway" | "all"): Promise<LiveServer> {
    const settings = {
      SVC_REDIS_URL: redis.url,
      SVC_STORAGE: storage,
      SVC_ROLE: role,
      SVC_INIT_LLM: "false",
    };
    const server = await startLiveServer(temporaryDirectory(), settings);
    servers.push(server);
    return server;
  }

  async function close(server: LiveServer): Promise<void> {
    servers.splice(servers.indexOf(server), 1);
    await server.close();
  }

  async function untilWorkers(count: number): Promise<void> {
    while ((await gateway.get("/v1/stats")).body.data.workers.length !== count) await sleep(20);
  }

  before(async () => {
    redis = await RedisServer.start();
    gateway = (await start("gateway")).client;
    worker = await start("all");
    await untilWorkers(1);
  });
  after(async () => {
    for (const server of servers) await server.close();
    await redis.kill();
  });

  beforeEach(() => change("unload", {}));

  async function song(change: object = {}): Promise<Buffer> {
    return gateway.download(await gateway.makeOne({ ...seededSong, ...change }));
  }

  async function change(verb: string, body: object): Promise<Record<string, unknown>> {
    const answer = await gateway.post(`/v1/lora/${verb}`, body);
    expect(answer.status, answer.body.detail).to.equal(200);
    return answer.body.data;
  }

  it("any worker renders with an adapter that was loaded on any gateway", async () => {
    const base = await song();
    const loaded = await change("load", { lora_path: style });
    expect(loaded.message).to.match(/^✅ LoRA loaded from .*\(\d+ modules\)$/);
    const record = await gateway.makeOne(seededSong);
    expect(record.generation_info).to.include("LoRA: style at 1");
    const styled = await gateway.download(record);
    expect(styled.equals(base)).to.equal(false);
    await change("scale", { scale: 0.5 });
    const shown = {
      lora_loaded: true,
      use_lora: true,
      lora_scale: 0.5,
      adapter_type: "lora",
      active_adapter: "style",
    };
    expect((await gateway.get("/v1/lora/status")).body.data).to.deep.include(shown);
    expect((await worker.client.get("/v1/lora/status")).body.data).to.deep.include(shown);
    expect((await song()).equals(styled)).to.equal(false);
    expect((await worker.client.post("/v1/lora/scale", { scale: 1 })).status).to.equal(200);

    const other = await start("all");
    await close(worker);
    worker = other;
    await untilWorkers(1);
    expect((await song()).equals(styled)).to.equal(true);

    // Tasks that were accepted earlier keep their adapters.
    const ids = [await gateway.submit(seededSong), await gateway.submit(seededSong)];
    await change("unload", {});
    for (const id of ids) {
      const [made] = (await gateway.finished(id)).records as [typeof record];
      expect((await gateway.download(made)).equals(styled)).to.equal(true);
    }
    expect((await song()).equals(base)).to.equal(true);
    expect((await worker.client.get("/v1/lora/status")).body.data.adapters).to.deep.equal([]);
  });

  it("any worker renders with several loaded adapters, or with the adapters named in a request", async () => {
    const base = await song();
    const other = writeLora(join(folder, "other"), { seed: 5, dora: true });
    await change("load", { lora_path: style });
    await change("load", { lora_path: other });
    await change("scale", { scale: -0.5, adapter_name: "other" });
    const record = await gateway.makeOne(seededSong);
    expect(record.generation_info).to.include("LoRA: other at -0.5, style at 1");
    const blended = await gateway.download(record);

    const loras = [{ path: style }, { name: "other", scale: -0.5 }];
    expect((await song({ loras })).equals(blended)).to.equal(true);
    expect((await song({ loras: [] })).equals(base)).to.equal(true);
    const id = await gateway.submit({ ...seededSong, loras });
    await change("unload", { adapter_name: "other" });
    const [made] = (await gateway.finished(id)).records as [typeof record];
    expect((await gateway.download(made)).equals(blended)).to.equal(true);
    const unknown = await gateway.post("/release_task", { ...seededSong, loras: [{ name: "other" }] });
    expect(unknown).to.deep.include({ status: 400 });
    expect(unknown.body.detail).to.include('No adapter is named "other"; loaded: style');
  });

  it("rejects a file that is not an adapter, an adapter of another model, and a name in use", async () => {
    const load = (path: string) => gateway.post("/v1/lora/load", { lora_path: path });
    const absent = await load(join(folder, "absent"));
    expect(absent).to.deep.include({ status: 400 });
    expect(absent.body.detail).to.include("there is no such file or folder");
    const foreign = await load(writeLora(join(folder, "foreign"), { inputs: 3 }));
    expect(foreign).to.deep.include({ status: 400 });
    expect(foreign.body.detail).to.match(/^❌ Failed to load LoRA: /);
    expect((await load(style)).status).to.equal(200);
    expect((await load(style)).body.detail).to.include("is already loaded");
  });

  it("writes captions and lyrics with a worker's language model", async () => {
    const formatted = await gateway.post("/format_input", {
      prompt: "slow waltz in 3/4",
      lyrics: "la la la",
    });
    expect(formatted.status, formatted.body.detail).to.equal(200);
    expect(formatted.body.data.caption).to.be.a("string").and.not.equal("");
    const sample = await gateway.post("/v1/create_sample", { query: "an instrumental at 90 bpm" });
    expect(sample.status, sample.body.detail).to.equal(200);
    expect(sample.body.data.bpm).to.equal(90);
    const long = await gateway.post("/format_input", { prompt: "x", lyrics: "la ".repeat(30_000) });
    expect(long).to.deep.include({ status: 400 });
  });
});
