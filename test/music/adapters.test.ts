import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { Checkpoints } from "../../src/engine/checkpoints.js";
import { createEngine, loadConfig } from "../../src/index.js";
import { Adapters } from "../../src/music/adapters.js";
import { PermittedRoot } from "../../src/music/permitted-root.js";
import {
  attentionProjections,
  type Projection,
  someValues,
  writeLokr,
  writeLora,
  writeSafetensors,
} from "./adapter-files.js";
import { type Client, type LiveServer, shortSong, startLiveServer } from "./live-server.js";
import { temporaryDirectory } from "./tasks.js";

const seededSong = { ...shortSong, use_random_seed: false, seed: 11, audio_format: "wav" };

const nothingLoaded = {
  lora_loaded: false,
  use_lora: false,
  lora_scale: 1,
  adapter_type: null,
  scales: {},
  active_adapter: null,
  adapters: [],
  synthetic_default_mode: false,
};

describe("the adapter endpoints", () => {
  const folder = temporaryDirectory();
  const style = writeLora(join(folder, "style"));
  const other = writeLora(join(folder, "other"), { seed: 5 });
  const lokr = writeLokr(join(folder, "kron.safetensors"));
  const empty = temporaryDirectory();
  let server: LiveServer;
  let client: Client;
  let base: Buffer;

  before(async () => {
    server = await startLiveServer(temporaryDirectory());
    client = server.client;
    base = await song();
  });

  after(() => server.close());

  afterEach(() => client.post("/v1/lora/unload", {}));

  /** The bytes of the same song, under whatever adapter acts. */
  async function song(): Promise<Buffer> {
    return client.download(await client.makeOne(seededSong));
  }

  async function change(verb: string, body: object): Promise<Record<string, unknown>> {
    const answer = await client.post(`/v1/lora/${verb}`, body);
    expect(answer.status, answer.body.detail).to.equal(200);
    return answer.body.data;
  }

  async function status(): Promise<Record<string, unknown>> {
    return (await client.get("/v1/lora/status")).body.data;
  }

  it("knows of nothing at first", async () => {
    expect(await status()).to.deep.equal(nothingLoaded);
  });

  it("renders under an adapter until it is unloaded, then as before to the byte", async () => {
    const loaded = await change("load", { lora_path: style });
    expect(loaded).to.deep.equal({
      message: loaded.message,
      lora_path: style,
      adapter_name: "style",
    });
    expect(loaded.message).to.match(/^✅ LoRA loaded from .*\(\d+ modules\)$/);
    expect(await status()).to.deep.equal({
      ...nothingLoaded,
      lora_loaded: true,
      use_lora: true,
      adapter_type: "lora",
      scales: { style: 1 },
      active_adapter: "style",
      adapters: ["style"],
    });
    const record = await client.makeOne(seededSong);
    expect(record.generation_info).to.include("LoRA: style at 1");
    const styled = await client.download(record);
    expect(styled.equals(base)).to.equal(false);
    expect((await song()).equals(styled)).to.equal(true);

    expect(await change("unload", {})).to.deep.equal({ message: "✅ LoRA unloaded, using base model" });
    expect(await status()).to.deep.equal(nothingLoaded);
    const afterwards = await client.makeOne(seededSong);
    expect(afterwards.generation_info).to.not.include("LoRA");
    expect((await client.download(afterwards)).equals(base)).to.equal(true);
  });

  it("scales and toggles: 0 and off are the base, half is neither, on is as loaded", async () => {
    await change("load", { lora_path: style, adapter_name: "warm" });
    const styled = await song();
    const scaled = await change("scale", { scale: 0.5 });
    expect(scaled).to.deep.equal({ message: scaled.message, scale: 0.5, adapter_name: "warm" });
    expect(scaled.message).to.match(/^✅ .*0\.50$/);
    expect(await status()).to.include({ lora_scale: 0.5, active_adapter: "warm" });
    const half = await song();
    expect(half.equals(styled)).to.equal(false);
    expect(half.equals(base)).to.equal(false);
    await change("scale", { scale: 0, adapter_name: "warm" });
    expect((await song()).equals(base)).to.equal(true);

    expect(await change("toggle", { use_lora: false })).to.deep.equal({
      message: "✅ LoRA disabled",
      use_lora: false,
    });
    await change("scale", { scale: "1.0" });
    expect(await status()).to.include({ lora_loaded: true, use_lora: false, lora_scale: 1 });
    expect((await song()).equals(base)).to.equal(true);
    expect(await change("toggle", { use_lora: "true" })).to.include({ use_lora: true });
    expect((await song()).equals(styled)).to.equal(true);
  });

  it("holds several, of which the newest acts", async () => {
    await change("load", { lora_path: other });
    const otherSong = await song();
    await change("load", { lora_path: `${style}/` });
    await change("scale", { scale: 0.25, adapter_name: "other" });
    expect(await status()).to.deep.include({
      active_adapter: "style",
      adapters: ["other", "style"],
      scales: { other: 0.25, style: 1 },
      lora_scale: 1,
    });
    expect((await song()).equals(otherSong)).to.equal(false);
    const again = await client.post("/v1/lora/load", { lora_path: style });
    expect(again.status).to.equal(400);
    expect(again.body.detail).to.match(/^❌ .*"style" is loaded already/);
  });

  it("takes a LoKr file, but no other adapter beside it", async () => {
    expect((await change("load", { lora_path: lokr, adapter_name: "kron" })).message).to.match(/^✅ LoKr/);
    expect(await status()).to.include({ adapter_type: "lokr", active_adapter: "kron" });
    expect((await song()).equals(base)).to.equal(false);
    for (const second of [lokr, style]) {
      const { status: code, body } = await client.post("/v1/lora/load", { lora_path: second });
      expect(code).to.equal(400);
      expect(body.detail).to.match(/^❌ .*LoKr/);
    }
    expect(await status()).to.deep.include({ adapters: ["kron"] });
  });

  it("has DoRA of a LoKr sound as programs with another epsilon do, where that is asked for", async () => {
    const lora_path = writeLokr(join(folder, "dora.safetensors"), { dora: true });
    await change("load", { lora_path });
    const trained = await song();
    await change("unload", {});
    await change("load", { lora_path, dora_epsilon: "float32" });
    expect((await song()).equals(trained)).to.equal(true);
    await change("unload", {});
    await change("load", { lora_path, dora_epsilon: "bfloat16" });
    expect((await song()).equals(trained)).to.equal(false);
  });

  it("merges nothing into a song that renders", async () => {
    const slowSong = { ...seededSong, inference_steps: 8, batch_size: 1 };
    const alone = await client.download(await client.makeOne(slowSong));
    const rendering = await client.submit(slowSong);
    await client.begun(rendering);
    await change("load", { lora_path: style });
    const { item, records } = await client.finished(rendering);
    expect(item.status).to.equal(1);
    const [record] = records as [(typeof records)[0]];
    const bytes = await client.download(record);
    expect(bytes.equals(alone)).to.equal(!record.generation_info.includes("LoRA"));
  });

  it("says how many tensors fit nothing", async () => {
    const { name, out, in: inputs } = attentionProjections()[0] as Projection;
    const path = join(folder, "mixed.safetensors");
    writeSafetensors(path, {
      [`${name}.lora_A`]: someValues([2, inputs], 1),
      [`${name}.lora_B`]: someValues([out, 2], 2),
      unknown: someValues([1], 1),
    });
    expect((await change("load", { lora_path: path })).message).to.include(
      "(1 modules, 1 tensors fit nothing",
    );
  });

  it("says so where nothing is loaded", async () => {
    expect(await change("unload", {})).to.deep.equal({ message: "⚠️ No LoRA adapter loaded." });
    expect(await change("toggle", { use_lora: false })).to.include({ use_lora: false });
    for (const [verb, body] of [
      ["toggle", { use_lora: true }],
      ["scale", { scale: 0.5 }],
    ] as const) {
      const answer = await client.post(`/v1/lora/${verb}`, body);
      expect(answer.status).to.equal(400);
      expect(answer.body.detail).to.match(/^❌ .*No LoRA adapter loaded/);
    }
  });

  const refusals: [what: string, verb: string, body: () => object, mentions: string][] = [
    ["a load without a path", "load", () => ({}), "lora_path is required"],
    ["a path to nothing", "load", () => ({ lora_path: join(folder, "absent") }), "no such file or folder"],
    ["a path out of the root", "load", () => ({ lora_path: "../.." }), "Rejected unsafe path"],
    ["a folder without an adapter", "load", () => ({ lora_path: empty }), "there is no adapter here"],
    ["a folder without its config", "load", () => ({ lora_path: bare() }), "there is no adapter_config.json"],
    ["an adapter of another model", "load", () => ({ lora_path: foreign() }), "made for another model"],
    ["a damaged file", "load", () => ({ lora_path: damaged() }), "damaged.safetensors"],
    [
      "an epsilon of no type",
      "load",
      () => ({ lora_path: style, dora_epsilon: "float16" }),
      "dora_epsilon must be one of float32, bfloat16",
    ],
    ["a toggle without a value", "toggle", () => ({}), "use_lora must be true or false"],
    ["a scale without a value", "scale", () => ({}), "scale must be a number"],
    ["a scale above 1", "scale", () => ({ scale: 1.5 }), "scale must be from 0 to 1"],
    ["a scale below 0", "scale", () => ({ scale: -0.1 }), "scale must be from 0 to 1"],
    ["a scale that is no number", "scale", () => ({ scale: "NaN" }), "scale must be"],
    [
      "a name that no adapter has",
      "scale",
      () => ({ scale: 1, adapter_name: "x" }),
      'No adapter is named "x"',
    ],
  ];

  function bare(): string {
    const path = writeLora(join(folder, "bare"));
    rmSync(join(path, "adapter_config.json"));
    return path;
  }

  function foreign(): string {
    return writeLora(join(folder, "foreign"), { inputs: 48 });
  }

  function damaged(): string {
    const path = join(folder, "damaged.safetensors");
    writeFileSync(path, "not an adapter");
    return path;
  }

  for (const [what, verb, body, mentions] of refusals) {
    it(`answers 400 to ${what}, and changes nothing`, async () => {
      const answer = await client.post(`/v1/lora/${verb}`, body());
      expect(answer.status).to.equal(400);
      expect(answer.body.detail).to.include(mentions).and.not.include("\n");
      expect(await status()).to.deep.equal(nothingLoaded);
    });
  }

  it("finds a trained adapter in the folder that training leaves", async () => {
    const final = join(folder, "run", "final");
    mkdirSync(final, { recursive: true });
    renameSync(writeLora(join(folder, "trained")), join(final, "adapter"));
    expect(await change("load", { lora_path: final })).to.include({ adapter_name: "final" });
  });
});

describe("adapters and the models of slot 1", () => {
  let server: LiveServer;

  before(async () => {
    const checkpoints = temporaryDirectory();
    const { directory } = new Checkpoints(checkpoints).renderer("carillon-nano");
    for (const name of ["acestep-v15-turbo", "acestep-v15-other"]) {
      symlinkSync(directory, join(checkpoints, name));
    }
    server = await startLiveServer(temporaryDirectory(), {
      SVC_CHECKPOINTS: checkpoints,
      SVC_OFFLOAD_DIT_TO_CPU: "true",
    });
  });

  after(() => server.close());

  it("act on a model that leaves between songs, and go with the model", async () => {
    const { client } = server;
    const song = async () => client.download(await client.makeOne(seededSong));
    const base = await song();
    const lora_path = writeLora(join(temporaryDirectory(), "style"));
    expect((await client.post("/v1/lora/load", { lora_path })).status).to.equal(200);
    const styled = await song();
    expect(styled.equals(base)).to.equal(false);
    expect((await song()).equals(styled)).to.equal(true);
    expect((await client.post("/v1/init", { model: "acestep-v15-other" })).status).to.equal(200);
    expect((await client.get("/v1/lora/status")).body.data).to.deep.equal(nothingLoaded);
    expect((await song()).equals(base)).to.equal(true);
  });
});

describe("adapters of a server that others can reach", () => {
  const root = temporaryDirectory();
  let server: LiveServer;

  before(async () => {
    server = await startLiveServer(temporaryDirectory(), {
      SVC_API_HOST: "0.0.0.0",
      SVC_ALLOW_NO_KEY: "true",
      SVC_TRAINING_ROOT: root,
    });
  });

  after(() => server.close());

  it("are loaded from SVC_TRAINING_ROOT alone", async () => {
    const outside = writeLora(join(temporaryDirectory(), "style"));
    writeLora(join(root, "style"));
    symlinkSync(outside, join(root, "link"));
    for (const path of [outside, "link"]) {
      const refused = await server.client.post("/v1/lora/load", { lora_path: path });
      expect(refused.status).to.equal(400);
      expect(refused.body.detail).to.include("SVC_TRAINING_ROOT");
    }
    const { status, body } = await server.client.post("/v1/lora/load", { lora_path: "style" });
    expect(status, body.detail).to.equal(200);
  });
});

describe("adapters before the model of slot 1 is loaded", () => {
  const path = writeLora(join(temporaryDirectory(), "style"));
  let adapters: Adapters;

  before(() => {
    const engine = createEngine(loadConfig({ SVC_DEVICE: "cpu" }));
    after(() => engine.close());
    adapters = new Adapters(engine, new PermittedRoot("."), true);
  });

  const calls: [verb: string, call: () => unknown][] = [
    ["status", () => adapters.status()],
    ["load", () => adapters.load({ path, name: null, doraEpsilon: "float32" })],
    ["unload", () => adapters.unload()],
    ["toggle", () => adapters.toggle(false)],
    ["scale", () => adapters.scale({ scale: 0.5, name: null })],
  ];
  for (const [verb, call] of calls) {
    it(`answer 500 to ${verb}`, async () => {
      const failure = await (async () => call())().catch((error: unknown) => error);
      expect(failure).to.include({ status: 500, detail: "Model not initialized" });
    });
  }
});
