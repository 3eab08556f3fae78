import { cpSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { loadConfig } from "../../../src/config.js";
import { Checkpoints } from "../../../src/engine/checkpoints.js";
import { createEngine } from "../../../src/index.js";
import { listModels } from "../../../src/music/models/models.js";
import {
  type Client,
  type LiveServer,
  oneSecondSong,
  serverForAll,
  shortSong,
  startLiveServer,
} from "../live-server.js";
import { temporaryDirectory } from "../tasks.js";

describe("the service endpoints", () => {
  const server = serverForAll();
  const { client } = server;

  it("GET /health reports ok and the loaded models", async () => {
    const { status, body } = await client.get("/health");
    expect(status).to.equal(200);
    expect(body.data).to.deep.equal({
      status: "ok",
      service: "Carillon",
      version: "1.0",
      models_initialized: true,
      llm_initialized: false,
      loaded_model: "carillon-nano",
      loaded_lm_model: null,
    });
  });

  it("GET /v1/models lists models that a task can select", async () => {
    expect((await client.get("/v1/models")).body.data).to.deep.equal({
      models: [{ name: "carillon-nano", is_default: true }],
      default_model: "carillon-nano",
    });
  });

  it("GET /v1/model_inventory lists installed models", async () => {
    const { data } = (await client.get("/v1/model_inventory")).body;
    expect(data.models).to.deep.include({
      name: "carillon-nano",
      is_default: true,
      is_loaded: true,
      supported_task_types: ["text2music", "cover", "repaint", "lego", "extract", "complete"],
      infer_methods: ["ode", "sde", "heun", "dpm3m", "stork4"],
      sings: false,
    });
    expect(data).to.include.all.keys("default_model", "lm_models", "loaded_lm_model", "llm_initialized");
  });

  it("GET /v1/stats reports zero jobs before the first task", async () => {
    expect((await client.get("/v1/stats")).body.data).to.deep.equal({
      jobs: { total: 0, queued: 0, running: 0, succeeded: 0, failed: 0 },
      queue_size: 0,
      queue_maxsize: 200,
      avg_job_seconds: 5,
    });
  });

  it("POST /create_random_sample returns a simple example by default, and a custom one on request", async () => {
    const bare = await fetch(`${server.url}/create_random_sample`, { method: "POST" });
    expect(((await bare.json()) as { data: object }).data).to.have.property("description");
    const custom = await client.post("/create_random_sample", { sample_type: "custom_mode" });
    expect(custom.body.data).to.include.all.keys("caption", "lyrics", "key_scale", "keyscale");
  });

  it("POST /v1/init accepts a model that is already loaded", async () => {
    const { status, body } = await client.post("/v1/init", { model: "carillon-nano" });
    expect(status).to.equal(200);
    expect(body.data).to.deep.include({
      message: "Model initialization completed",
      slot: 1,
      loaded_model: "carillon-nano",
      loaded_lm_model: null,
      models: [{ name: "carillon-nano", is_default: true, is_loaded: true }],
      llm_initialized: false,
    });
    expect(body.data.lm_models).to.be.an("array");
    const bare = await fetch(`${server.url}/v1/init`, { method: "POST" });
    expect(bare.status).to.equal(200);
  });

  const initRefusals: [what: string, body: object, mentions: string][] = [
    ["a slot that is not configured", { slot: 2 }, "SVC_CONFIG_PATH2"],
    ["slot 0", { slot: 0 }, "slot"],
    ["a slot that is not a number", { slot: "two" }, "slot"],
    ["a fractional slot", { slot: 1.5 }, "slot must be an integer, got 1.5"],
    ["an unknown model", { model: "no-such-model" }, "no-such-model"],
    [
      "a default model that is not installed",
      { model: "acestep-v15-turbo" },
      "acestep-v15-turbo was not found",
    ],
    [
      "a default language model that is not installed",
      { init_llm: true, lm_model_path: "acestep-5Hz-lm-0.6B" },
      "acestep-5Hz-lm-0.6B was not found",
    ],
    ["an unknown language model", { init_llm: true, lm_model_path: "no-such-lm" }, "no-such-lm"],
  ];
  for (const [what, body, mentions] of initRefusals) {
    it(`POST /v1/init answers 400 to ${what}`, async () => {
      const answer = await client.post("/v1/init", body);
      expect(answer.status).to.equal(400);
      expect(answer.body.detail).to.include(mentions);
      expect((await client.get("/health")).body.data.loaded_model).to.equal("carillon-nano");
    });
  }

  it("answers at the alternative paths of other products with this API", async () => {
    const ask = async (path: string, options: RequestInit = {}) => {
      const response = await fetch(server.url + path, options);
      // biome-ignore lint/suspicious/noExplicitAny: read as the clients do
      return { status: response.status, data: ((await response.json()) as any).data };
    };
    const json = { method: "POST", headers: { "Content-Type": "application/json" } };
    const sample = await ask("/create_sample", { ...json, body: JSON.stringify({ query: "a waltz" }) });
    expect(sample.status).to.equal(200);
    expect(sample.data).to.include.keys("caption", "lyrics", "keyscale");
    expect((await ask("/server_stats")).data).to.include.keys("jobs", "queue_size");
    const { data } = await ask("//release_task", { ...json, body: JSON.stringify(oneSecondSong) });
    const removed = await ask(`/cleanup/${data.task_id}`, { method: "DELETE" });
    expect(removed.data).to.include({ task_id: data.task_id });
  });

  it("answers 404 to unknown paths, 405 to wrong methods, 415 to unknown types, 400 to bad JSON", async () => {
    expect((await client.get("/nowhere")).body).to.deep.equal({ detail: "Not Found", error: "Not Found" });
    const wrongMethod = await client.get("/release_task");
    expect(wrongMethod.status).to.equal(405);
    expect(wrongMethod.headers.get("allow")).to.equal("POST");
    expect((await client.post("/release_task", {}, { "Content-Type": "text/xml" })).status).to.equal(415);
    const broken = await fetch(`${server.url}/query_result`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: "{",
    });
    expect(broken.status).to.equal(400);
    expect(await broken.json())
      .to.have.property("detail")
      .that.includes("Malformed JSON");
  });
});

describe("a server that unloads idle models", () => {
  const server = serverForAll({ SVC_MODEL_IDLE_MINUTES: "0.01" });

  const isLoaded = async () => (await server.client.get("/v1/model_inventory")).body.data.slots[0].is_loaded;

  for (const [path, body] of [
    ["/v1/init", {}],
    ["/v1/init", { model: "carillon-nano" }],
    ["/v1/reinitialize", {}],
  ] as const) {
    it(`reloads unloaded models on POST ${path} with ${JSON.stringify(body)}`, async () => {
      while (await isLoaded()) await sleep(50);
      expect((await server.client.get("/health")).body.data.loaded_model).to.equal("carillon-nano");
      const { data } = (await server.client.post(path, body)).body;
      if (path === "/v1/init") expect(data.models[0]).to.include({ name: "carillon-nano", is_loaded: true });
      else expect(data.reloaded).to.deep.equal(["DiT/VAE/Text Encoder"]);
    });
  }
});

describe("a server with several models", () => {
  const names = ["acestep-v15-turbo", "elsewhere/acestep-v15-other"];
  let server: LiveServer;
  let client: Client;
  let listedAtStart: ReturnType<typeof listModels>;

  before(async () => {
    const checkpoints = temporaryDirectory();
    const { path: directory } = new Checkpoints(checkpoints).renderer("carillon-nano").model;
    mkdirSync(join(checkpoints, "elsewhere"));
    for (const name of names) symlinkSync(directory, join(checkpoints, name));
    const settings = {
      SVC_CHECKPOINTS: checkpoints,
      SVC_CONFIG_PATH2: join(checkpoints, "elsewhere", "acestep-v15-other"),
    };
    const unloaded = createEngine(loadConfig(settings));
    listedAtStart = listModels(unloaded.catalog);
    await unloaded.close();
    server = await startLiveServer(temporaryDirectory(), settings);
    client = server.client;
  });

  after(() => server.close());

  it("lists the default model before it is loaded", () => {
    expect(listedAtStart).to.deep.equal({
      models: [{ name: "acestep-v15-turbo", is_default: true }],
      default_model: "acestep-v15-turbo",
    });
  });

  it("lists the default model first; requests select a model by name, with or without vendor prefix", async () => {
    expect((await client.get("/v1/models")).body.data).to.deep.equal({
      models: [
        { name: "acestep-v15-turbo", is_default: true },
        { name: "acestep-v15-other", is_default: false },
      ],
      default_model: "acestep-v15-turbo",
    });
    for (const model of ["acestep-v15-other", "acestep/acestep-v15-other"]) {
      const song = await client.makeOne({ ...oneSecondSong, model });
      expect(song.dit_model).to.equal("acestep-v15-other");
      expect(song.warnings).to.deep.equal([]);
    }
  });

  it("switches the model of a slot without interrupting a song that renders in it", async () => {
    const rendering = await client.submit({ ...shortSong, inference_steps: 4 });
    const { status, body } = await client.post("/v1/init", { model: "acestep-v15-other" });
    expect(status, body.detail).to.equal(200);
    expect(body.data).to.include({ slot: 1, loaded_model: "acestep-v15-other" });
    expect((await client.finished(rendering)).item.status).to.equal(1);
    expect((await client.makeOne(oneSecondSong)).dit_model).to.equal("acestep-v15-other");
  });

  it("keeps the old model if the new one cannot be read", async () => {
    const broken = join(server.service.config.checkpointsDirectory, "acestep-v15-broken");
    cpSync(join(server.service.config.checkpointsDirectory, "acestep-v15-turbo"), broken, {
      recursive: true,
      dereference: true,
    });
    writeFileSync(join(broken, "model.safetensors"), "not a checkpoint");
    const { status, body } = await client.post("/v1/init", { model: "acestep-v15-broken", slot: 2 });
    expect(status).to.equal(500);
    expect(body.detail).to.include("DiT init failed for slot 2").and.include("model.safetensors");
    const song = await client.makeOne({ ...oneSecondSong, model: "acestep-v15-other" });
    expect(song.dit_model).to.equal("acestep-v15-other");
  });
});

describe("a server with an API key", () => {
  const server = serverForAll({ SVC_API_KEY: "k1" });
  const { client } = server;
  const posts = [
    "/release_task",
    "/query_result",
    "/cancel_task",
    "/format_input",
    "/create_random_sample",
    "/v1/create_sample",
    "/v1/chat/completions",
    "/v1/init",
    "/v1/lora/load",
    "/v1/lora/unload",
    "/v1/lora/toggle",
    "/v1/lora/scale",
  ];
  const gets = [
    "/v1/models",
    "/openrouter/v1/models",
    "/v1/model_inventory",
    "/v1/stats",
    "/v1/audio",
    "/v1/lora/status",
    "/v1/lora/available",
  ];

  for (const path of posts) {
    it(`requires the key for POST ${path}`, async () => {
      expect((await client.post(path, {})).status).to.equal(401);
      expect((await client.post(path, { ai_token: "k2" }, { Authorization: "Bearer k1" })).status).to.equal(
        401,
      );
    });
  }

  for (const path of gets) {
    it(`requires the key for GET ${path} before checking parameters`, async () => {
      expect((await client.get(path)).status).to.equal(401);
      expect((await client.get(path, { Authorization: "Bearer k2" })).status).to.equal(401);
      expect((await client.get(path, { Authorization: "Bearer k1" })).status).to.not.equal(401);
    });
  }

  it("accepts the key in body or header, and for audio in the query", async () => {
    expect((await client.post("/query_result", { ai_token: "k1", task_id_list: [] })).status).to.equal(200);
    const header = { Authorization: "Bearer k1" };
    expect((await client.post("/query_result", { task_id_list: [] }, header)).status).to.equal(200);
    expect((await client.get("/v1/audio?path=absent.mp3&ai_token=k1")).status).to.equal(404);
    expect((await client.get("/v1/stats?ai_token=k1")).status).to.equal(401);
  });

  it("answers 400 to audio with a path that is missing or repeated, and names the fault", async () => {
    for (const [query, fault] of [
      ["", "path is missing"],
      ["path=a.mp3&path=b.mp3", "path was sent more than once"],
    ]) {
      const { status, body } = await client.get(`/v1/audio?${query}`, { Authorization: "Bearer k1" });
      expect([status, body.detail]).to.deep.equal([400, fault]);
    }
  });

  it("replaces server directories in errors by the names of their settings", async () => {
    const { checkpointsDirectory } = server.service.config;
    const { status, body } = await client.post("/v1/init", { model: "absent", ai_token: "k1" });
    expect(status).to.equal(400);
    expect(body.detail).to.include("absent was not found").and.include("SVC_CHECKPOINTS/absent");
    expect(body.detail).to.not.include(checkpointsDirectory).and.not.include(process.cwd());
    const outside = { audio_dir: "../elsewhere", ai_token: "k1" };
    const refused = await client.post("/v1/dataset/scan", outside);
    expect(refused.status).to.equal(400);
    expect(refused.body.detail).to.include("SVC_TRAINING_ROOT").and.not.include(process.cwd());
  });

  it("GET /health needs no key, but rejects a wrong key", async () => {
    expect((await client.get("/health")).status).to.equal(200);
    expect((await client.get("/health", { Authorization: "Bearer k2" })).status).to.equal(401);
  });
});

describe("a server whose language model is broken", () => {
  const server = serverForAll({ SVC_LM_MODEL_PATH: "/no/such/lm" });

  it("a request that needs a broken language model gets 500 in one line, without a stack trace", async () => {
    const { status, body } = await server.client.post("/format_input", { prompt: "x" });
    expect(status).to.equal(500);
    expect(body.detail).to.include("LLM init failed").and.include("/no/such/lm").and.not.include("\n");
  });

  it("a broken language model fails a task with thinking, but no task without thinking", async () => {
    const thinking = await server.client.finished(
      await server.client.submit({ ...shortSong, thinking: true }),
    );
    expect(thinking.item.status).to.equal(2);
    expect(thinking.records[0]?.error).to.include("5Hz LM init failed");
    expect(await server.client.make(oneSecondSong)).to.have.length(1);
  });
});
