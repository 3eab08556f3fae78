import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { Checkpoints } from "../../../src/engine/checkpoints.js";
import { createEngine, loadConfig } from "../../../src/index.js";
import { Adapters } from "../../../src/music/models/adapters.js";
import { OwnAdapterRecord } from "../../../src/music/models/loaded-adapters.js";
import type { RequestedAdapters } from "../../../src/music/song/requested-adapters.js";
import {
  attentionProjections,
  type Projection,
  pseudoRandomTensor,
  writeLokr,
  writeLora,
  writeSafetensors,
} from "../adapter-files.js";
import { type LiveServer, oneSecondSong, serverForAll, shortSong, startLiveServer } from "../live-server.js";
import { temporaryDirectory } from "../tasks.js";

const seededSong = { ...oneSecondSong, use_random_seed: false, seed: 11, audio_format: "wav" };

const nothingLoaded = {
  lora_loaded: false,
  use_lora: false,
  lora_scale: 1,
  adapter_type: null,
  scales: {},
  active_adapter: null,
  adapters: [],
  enabled_adapters: [],
  paths: {},
  synthetic_default_mode: false,
};

describe("loading and switching of adapters", () => {
  const folder = temporaryDirectory();
  const style = writeLora(join(folder, "style"));
  const other = writeLora(join(folder, "other"), { seed: 5 });
  const dora = writeLora(join(folder, "dora"), { seed: 9, dora: true });
  const lokr = writeLokr(join(folder, "kron.safetensors"));
  const empty = temporaryDirectory();
  const server = serverForAll();
  const { client } = server;
  let base: Buffer;

  before(async () => {
    base = await song();
  });

  afterEach(() => client.post("/v1/lora/unload", {}));

  /** Makes the same song on each call, with the active adapters. Returns the bytes of the song. */
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

  it("lists no adapters at first", async () => {
    expect(await status()).to.deep.equal(nothingLoaded);
  });

  it("an adapter changes songs until it is unloaded; later songs have the same bytes as before", async () => {
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
      enabled_adapters: ["style"],
      paths: { style },
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

  it("scales and disables an adapter; at scale 0 or disabled, songs equal those of the base model", async () => {
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
    expect(await status()).to.deep.include({ lora_loaded: true, use_lora: false, enabled_adapters: [] });
    expect((await song()).equals(base)).to.equal(true);
    expect(await change("toggle", { use_lora: "true" })).to.include({ use_lora: true });
    expect((await song()).equals(styled)).to.equal(true);
  });

  it("combines all loaded adapters, independent of loading order", async () => {
    const load = async (...paths: string[]) => {
      await change("unload", {});
      for (const lora_path of paths) await change("load", { lora_path });
      await change("scale", { scale: -0.5, adapter_name: "other" });
      return song();
    };
    const together = await load(other, dora, lokr);
    expect(await status()).to.deep.include({
      active_adapter: "kron.safetensors",
      adapter_type: "lokr",
      adapters: ["other", "dora", "kron.safetensors"],
      enabled_adapters: ["other", "dora", "kron.safetensors"],
      scales: { other: -0.5, dora: 1, "kron.safetensors": 1 },
      lora_scale: 1,
    });
    expect((await load(lokr, other, dora)).equals(together)).to.equal(true);
    const record = await client.makeOne(seededSong);
    expect(record.generation_info).to.include("LoRA: dora at 1, kron.safetensors at 1, other at -0.5");
    await change("unload", {});
    await change("load", { lora_path: dora });
    expect((await song()).equals(together)).to.equal(false);
    const again = await client.post("/v1/lora/load", { lora_path: dora });
    expect(again.status).to.equal(400);
    expect(again.body.detail).to.match(/^❌ .*"dora" is already loaded/);
  });

  it("scales, toggles and unloads the named adapter, and reports if nothing changed", async () => {
    await change("load", { lora_path: style });
    const alone = await song();
    expect((await change("load", { lora_path: other })).message).to.match(/; also active: style$/);
    const both = await song();
    expect(both.equals(alone)).to.equal(false);

    const off = { use_lora: false, adapter_name: "other" };
    expect(await change("toggle", off)).to.deep.equal({ message: "✅ LoRA other disabled", use_lora: false });
    expect((await change("toggle", off)).message).to.equal(
      "⚠️ Nothing changed: LoRA other is already disabled",
    );
    expect((await song()).equals(alone)).to.equal(true);
    expect(await status()).to.deep.include({ use_lora: true, enabled_adapters: ["style"] });
    await change("toggle", { use_lora: true });
    expect((await song()).equals(both)).to.equal(true);

    const softer = { scale: 0.25, adapter_name: "style" };
    expect((await change("scale", softer)).message).to.equal("✅ LoRA scale (style): 0.25");
    expect((await change("scale", softer)).message).to.equal(
      "⚠️ Nothing changed: LoRA scale is already (style): 0.25",
    );
    expect(await status()).to.deep.include({ scales: { style: 0.25, other: 1 } });
    await change("scale", { scale: 1, adapter_name: "style" });

    expect((await change("unload", { adapter_name: "other" })).message).to.equal(
      "✅ LoRA other unloaded, still loaded: style",
    );
    expect((await song()).equals(alone)).to.equal(true);
    const unknown: [verb: string, body: object][] = [
      ["unload", { adapter_name: "x" }],
      ["toggle", { adapter_name: "x", use_lora: false }],
      ["scale", { adapter_name: "x", scale: 1 }],
    ];
    for (const [verb, body] of unknown) {
      const answer = await client.post(`/v1/lora/${verb}`, body);
      expect(answer.status).to.equal(400);
      expect(answer.body.detail).to.match(/^❌ .*No adapter is named "x"; loaded: style\.$/);
    }
    expect(await status()).to.deep.include({ adapters: ["style"], scales: { style: 1 } });
  });

  describe("adapters that a request lists in loras", () => {
    const under = async (loras: unknown) => {
      const record = await client.makeOne({ ...seededSong, loras });
      return { bytes: await client.download(record), info: record.generation_info };
    };

    it("adapters in a request replace the loaded adapters for its task only", async () => {
      await change("load", { lora_path: style });
      const loaded = await song();
      const own = await under([{ path: other, scale: 0.5 }]);
      expect(own.info).to.include("LoRA: other at 0.5");
      expect(own.bytes.equals(base) || own.bytes.equals(loaded)).to.equal(false);
      expect((await song()).equals(loaded)).to.equal(true);
      expect((await under([])).bytes.equals(base)).to.equal(true);
      expect((await under([{ path: other, scale: 0 }])).bytes.equals(base)).to.equal(true);
      expect((await under([{ name: "style" }])).bytes.equals(loaded)).to.equal(true);

      const pair = [{ path: other, scale: 0.5 }, { name: "style" }];
      const blended = await under(pair);
      expect(blended.info).to.include("LoRA: other at 0.5, style at 1");
      expect((await under(JSON.stringify([...pair].reverse()))).bytes.equals(blended.bytes)).to.equal(true);
      const row = (await client.get("/v1/tasks?limit=1")).body.data.tasks[0];
      await change("unload", {});
      expect((await client.download(await client.makeOne(row.parameters))).equals(blended.bytes)).to.equal(
        true,
      );
    });

    const refused: [what: string, loras: unknown, mentions: string][] = [
      ["an unknown adapter name", [{ name: "x" }], 'No adapter is named "x"; loaded: none'],
      ["a path to nothing", [{ path: join(folder, "absent") }], "there is no such file or folder"],
      ["a path out of the root", [{ path: "../../.." }], "Rejected unsafe path"],
      ["a folder without an adapter", [{ path: empty }], "no adapter found"],
      [
        "neither path nor name",
        [{ scale: 1 }],
        "loras [0] must have a path, or the name of a loaded adapter",
      ],
      ["a scale out of range", [{ path: style, scale: 2.5 }], "loras [0] scale must be from -2 to 2"],
      ["a text in place of an object", ["style"], 'loras [0] must be an object with "path" or "name"'],
      ["an unknown field", [{ path: style, weight: 1 }], 'loras [0] Unrecognized key: "weight"'],
      ["one adapter twice", [{ path: style }, { path: style }], "loras [1] names the same adapter"],
      ["too many", Array(9).fill({ path: style }), "loras must hold at most 8 adapters, got 9"],
      ["text that is not JSON", "style", "loras must be a list"],
    ];
    for (const [what, loras, mentions] of refused) {
      it(`answers 400 to a request whose loras have ${what}`, async () => {
        const { status: code, body } = await client.post("/release_task", { ...seededSong, loras });
        expect(code).to.equal(400);
        expect(body.detail).to.include(mentions);
      });
    }

    it("names the adapter if its alpha makes values that are not finite", async () => {
      const path = writeLora(join(folder, "absurd"), { alpha: 1e30 });
      const { item } = await client.finished(await client.submit({ ...seededSong, loras: [{ path }] }));
      expect(item.error).to.match(
        /not finite; LoRA absurd at 1: a scale, or an alpha in the files, may be too large$/,
      );
      expect((await song()).equals(base)).to.equal(true);
    });

    it("an adapter of another model in a request fails its task, but not the next one", async () => {
      const { item } = await client.finished(
        await client.submit({ ...seededSong, loras: [{ path: foreign() }] }),
      );
      expect(item.status).to.equal(2);
      expect(item.error).to.include("made for another model");
      expect((await song()).equals(base)).to.equal(true);
    });
  });

  it("a waiting task keeps the adapters that were loaded when it was submitted", async () => {
    await change("load", { lora_path: style });
    const styled = await song();
    const long = await client.submit({ ...shortSong, inference_steps: 8 });
    const waiting = await client.submit(seededSong);
    await change("unload", {});
    await client.finished(long);
    const { records } = await client.finished(waiting);
    expect((await client.download(records[0] as (typeof records)[0])).equals(styled)).to.equal(true);
    expect((await song()).equals(base)).to.equal(true);
  });

  it("refuses a song whose loaded adapter is gone, until the adapter is unloaded", async () => {
    const lora_path = writeLora(join(folder, "moved"));
    await change("load", { lora_path });
    renameSync(lora_path, join(folder, "elsewhere"));
    for (const loras of [undefined, [{ name: "moved" }]]) {
      const { status, body } = await client.post("/release_task", { ...seededSong, loras });
      expect(status).to.equal(400);
      expect(body.detail)
        .to.match(/^The loaded adapter "moved" is gone: .*\/moved: there is no such file or folder\. /)
        .and.include('POST /v1/lora/unload {"adapter_name": "moved"}');
    }
    // An analysis uses no adapters.
    const analysis = await client.post("/release_task", { analysis_only: true, prompt: "a waltz" });
    expect(analysis.status, analysis.body.detail).to.equal(200);
    await change("toggle", { use_lora: false, adapter_name: "moved" });
    expect((await song()).equals(base)).to.equal(true);
    await change("unload", { adapter_name: "moved" });
    expect((await song()).equals(base)).to.equal(true);
  });

  it("applies dora_epsilon to a LoKr with DoRA", async () => {
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

  it("loading an adapter does not change a song that is being rendered", async () => {
    const slowSong = { ...shortSong, use_random_seed: false, seed: 11, inference_steps: 8 };
    const alone = await client.download(await client.makeOne(slowSong));
    let loading: Promise<unknown> | undefined;
    const { item, records } = await client.finished(await client.submit(slowSong), (event) => {
      if (event.event === "progress" && event.data.stage.startsWith("Generating music"))
        loading ??= change("load", { lora_path: style });
    });
    expect(loading, "the song reported that it renders").to.not.equal(undefined);
    await loading;
    expect(item.status).to.equal(1);
    const [record] = records as [(typeof records)[0]];
    expect(record.generation_info).to.not.include("LoRA");
    expect((await client.download(record)).equals(alone)).to.equal(true);
  });

  it("reports how many tensors of an adapter do not match the model", async () => {
    const { name, out, in: inputs } = attentionProjections()[0] as Projection;
    const path = join(folder, "mixed.safetensors");
    writeSafetensors(path, {
      [`${name}.lora_A`]: pseudoRandomTensor([2, inputs], 1),
      [`${name}.lora_B`]: pseudoRandomTensor([out, 2], 2),
      unknown: pseudoRandomTensor([1], 1),
    });
    expect((await change("load", { lora_path: path })).message).to.include(
      "(1 modules, 1 tensors do not match",
    );
  });

  it("reports that no adapter is loaded", async () => {
    expect(await change("unload", {})).to.deep.equal({ message: "⚠️ No LoRA adapter loaded." });
    expect(await change("toggle", { use_lora: false })).to.deep.equal({
      message: "⚠️ Nothing changed: no LoRA adapter is loaded",
      use_lora: false,
    });
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
    ["a path out of the root", "load", () => ({ lora_path: "../../.." }), "Rejected unsafe path"],
    ["a folder without an adapter", "load", () => ({ lora_path: empty }), "no adapter found"],
    ["a folder without its config", "load", () => ({ lora_path: bare() }), "there is no adapter_config.json"],
    ["an adapter of another model", "load", () => ({ lora_path: foreign() }), "made for another model"],
    ["a damaged file", "load", () => ({ lora_path: damaged() }), "damaged.safetensors"],
    [
      "an unknown dora_epsilon",
      "load",
      () => ({ lora_path: style, dora_epsilon: "float16" }),
      "dora_epsilon must be one of float32, bfloat16",
    ],
    ["a toggle without a value", "toggle", () => ({}), "use_lora must be true or false"],
    ["a scale without a value", "scale", () => ({}), "scale must be a number"],
    ["a scale above 2", "scale", () => ({ scale: 2.1 }), "scale must be from -2 to 2"],
    ["a scale below -2", "scale", () => ({ scale: -2.1 }), "scale must be from -2 to 2"],
    ["a scale that is not a number", "scale", () => ({ scale: "NaN" }), "scale must be"],
    ["an unknown adapter name", "scale", () => ({ scale: 1, adapter_name: "x" }), 'No adapter is named "x"'],
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
    it(`answers 400 to ${what} and changes nothing`, async () => {
      const answer = await client.post(`/v1/lora/${verb}`, body());
      expect(answer.status).to.equal(400);
      expect(answer.body.detail).to.include(mentions).and.not.include("\n");
      expect(await status()).to.deep.equal(nothingLoaded);
    });
  }

  it("loads an adapter from the output folder of training under the name of its style", async () => {
    const final = join(folder, "guitar style", "final");
    mkdirSync(final, { recursive: true });
    renameSync(writeLora(join(folder, "trained")), join(final, "adapter"));
    expect(await change("load", { lora_path: final })).to.include({ adapter_name: "guitar style" });
  });
});

describe("adapters when the model of slot 1 changes", () => {
  let server: LiveServer;

  before(async () => {
    const checkpoints = temporaryDirectory();
    const { path: directory } = new Checkpoints(checkpoints).renderer("carillon-nano").model;
    for (const name of ["acestep-v15-turbo", "acestep-v15-other"]) {
      symlinkSync(directory, join(checkpoints, name));
    }
    server = await startLiveServer(temporaryDirectory(), {
      SVC_CHECKPOINTS: checkpoints,
      SVC_OFFLOAD_DIT_TO_CPU: "true",
    });
  });

  after(() => server.close());

  it("keeps adapters of a model that is offloaded between songs, and drops them at a model switch", async () => {
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

describe("adapter requests on a public server", () => {
  const root = temporaryDirectory();
  const server = serverForAll({
    SVC_API_HOST: "0.0.0.0",
    SVC_ALLOW_NO_KEY: "true",
    SVC_TRAINING_ROOT: root,
  });

  it("on a server that other machines can reach, loads adapters only from SVC_TRAINING_ROOT", async () => {
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
    expect((await server.client.get("/v1/lora/status")).body.data.paths).to.deep.equal({ style: "style" });
  });
});

describe("adapter requests before the model of slot 1 is loaded", () => {
  const path = writeLora(join(temporaryDirectory(), "style"));
  let adapters: Adapters;

  before(() => {
    const engine = createEngine(loadConfig({ SVC_DEVICE: "cpu" }));
    after(() => engine.close());
    adapters = new Adapters(new OwnAdapterRecord(engine), engine.catalog, {
      resolve: async (path) => path,
    } as RequestedAdapters);
  });

  const calls: [verb: string, call: () => unknown][] = [
    ["status", () => adapters.status()],
    ["load", () => adapters.load({ path, name: null, doraEpsilon: "float32" })],
    ["unload", () => adapters.unload({ name: null })],
    ["toggle", () => adapters.toggle({ enabled: false, name: null })],
    ["scale", () => adapters.scale({ scale: 0.5, name: null })],
  ];
  for (const [verb, call] of calls) {
    it(`answers 500 to ${verb} if no model is loaded in slot 1`, async () => {
      const failure = await (async () => call())().catch((error: unknown) => error);
      expect(failure).to.include({ status: 500, detail: "Model not initialized" });
    });
  }
});
