import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import type { AdapterFiles, JobAdapter, NativeAdapter, NativeRenderer } from "../../src/engine/addon.js";
import { Checkpoints } from "../../src/engine/checkpoints.js";
import { Engine } from "../../src/engine/engine.js";
import { loadAddon } from "../../src/engine/native.js";
import type { EngineOptions, SongAdapter } from "../../src/engine/types.js";
import { failureOf } from "../failures.js";
import { writeLokr, writeLora } from "../music/adapter-files.js";
import { temporaryDirectory } from "../music/tasks.js";
import { engineOptions, testDevice } from "./embedded.js";
import { plainJob, plainRequest, renderOne, requestOf } from "./plain-song.js";

const codeOf = async (promise: Promise<unknown>) => (await failureOf(promise)).code;

function songAdapter(name: string, path: string, scale = 1): SongAdapter {
  return { name, path, scale, digest: path, doraEpsilon: "float32" };
}

const shortSong = { ...requestOf(0.4), denoise: { ...plainRequest.denoise, inferenceSteps: 1 } };

describe("loading of adapters through the addon", () => {
  const folder = temporaryDirectory();
  const renderers: NativeRenderer[] = [];

  async function loadRenderer(): Promise<NativeRenderer> {
    const { model, vae, textEncoder } = new Checkpoints("").renderer("carillon-nano");
    const renderer = await loadAddon().loadRenderer(
      {
        ...{ model, vae, textEncoder },
        ...{ device: testDevice, dtype: "auto", quantization: "none", offload: false, offloadModel: false },
      },
      {},
    );
    renderers.push(renderer);
    return renderer;
  }

  function files(path: string): AdapterFiles {
    return { path, doraEpsilon: "float32" };
  }

  after(() => Promise.all(renderers.map((renderer) => renderer.close())));

  it("loaded adapters report the contents of their files", async () => {
    const renderer = await loadRenderer();
    const lora = await renderer.loadAdapter(files(writeLora(join(folder, "style"))), {});
    expect(lora.info.kind).to.equal("lora");
    expect(lora.info.moduleCount).to.be.above(0);
    expect(lora.info.unmatchedTensors).to.deep.equal([]);
    const lokr = await renderer.loadAdapter(files(writeLokr(join(folder, "kron.safetensors"))), {});
    expect(lokr.info).to.deep.equal({ ...lora.info, kind: "lokr" });
  });

  it("adapters work only with the renderer that loaded them, while it is open", async () => {
    const [first, second] = [await loadRenderer(), await loadRenderer()];
    const adapter = await first.loadAdapter(files(writeLora(join(folder, "mine"))), {});
    const jobUnder = (adapters: JobAdapter[]) => ({ ...plainJob, adapters });
    await first.render(jobUnder([{ adapter, scale: 1 }]), {});
    expect(await codeOf(second.render(jobUnder([{ adapter, scale: 1 }]), {}))).to.equal("BAD_ARGUMENT");
    const impostor = { info: adapter.info } as NativeAdapter;
    expect(() => first.render(jobUnder([{ adapter: impostor, scale: 1 }]), {})).to.throw(
      TypeError,
      "NativeAdapter",
    );
    await first.close();
    expect(await codeOf(first.render(jobUnder([{ adapter, scale: 1 }]), {}))).to.equal("BAD_ARGUMENT");
  });

  it("adapters are rejected with BAD_CHECKPOINT if damaged or made for another model", async () => {
    const renderer = await loadRenderer();
    const foreign = writeLora(join(folder, "foreign"), { inputs: 48 });
    const halved = { path: foreign, doraEpsilon: "float16" } as unknown as AdapterFiles;
    expect(() => renderer.loadAdapter(halved, {})).to.throw(TypeError, "doraEpsilon must be one of float32");
    expect(await codeOf(renderer.loadAdapter(files(foreign), {}))).to.equal("BAD_CHECKPOINT");
    expect(await codeOf(renderer.loadAdapter(files(join(folder, "absent")), {}))).to.equal("BAD_CHECKPOINT");
  });
});

describe("songs of the base model beside adapters", () => {
  const folder = temporaryDirectory();
  const kinds = {
    LoRA: writeLora(join(folder, "lora")),
    "DoRA of a LoRA": writeLora(join(folder, "dora"), { dora: true }),
    LoKr: writeLokr(join(folder, "kron.safetensors")),
    "DoRA of a LoKr": writeLokr(join(folder, "kron-dora.safetensors"), { dora: true }),
  };
  const foreign = writeLora(join(folder, "foreign"), { inputs: 48 });
  const stored: Partial<EngineOptions> = {};
  const cases: [kind: keyof typeof kinds, weights: string, options: Partial<EngineOptions>][] = [
    ["LoRA", "as stored", stored],
    ["DoRA of a LoRA", "as stored", stored],
    ["LoKr", "as stored", stored],
    ["DoRA of a LoKr", "as stored", stored],
    ["LoRA", "in bfloat16", { dtype: "bfloat16" }],
    ["DoRA of a LoRA", "in 8 bits", { quantization: "int8" }],
    ["LoKr", "in 4 bits", { quantization: "int4" }],
    ["DoRA of a LoKr", "that leave the device", { offload: true }],
  ];

  for (const [kind, weights, options] of cases) {
    it(`a ${kind} changes only songs that use it, and none at scale 0; model weights ${weights}`, async () => {
      const engine = new Engine({ ...engineOptions, ...options }, () => {});
      const song = async (adapters?: SongAdapter[]) => {
        const { audio } = await renderOne(engine, { ...shortSong, adapters });
        return Buffer.from(audio.buffer);
      };
      try {
        const base = await song();
        const style = songAdapter("style", kinds[kind]);
        await engine.renderer.inspectAdapter(style);
        expect((await song([])).equals(base), "inspected").to.equal(true);
        const styled = await song([style]);
        expect(styled.equals(base), "under it").to.equal(false);
        expect(await codeOf(engine.renderer.inspectAdapter(songAdapter("x", foreign)))).to.equal(
          "BAD_CHECKPOINT",
        );
        expect((await song([{ ...style, scale: 0 }])).equals(base), "at scale 0").to.equal(true);
        expect((await song([style])).equals(styled), "again").to.equal(true);
        expect((await song()).equals(base), "after it").to.equal(true);
      } finally {
        await engine.close();
      }
    });
  }

  it("a song has the same adapters after its model was unloaded while idle", async () => {
    const engine = new Engine({ ...engineOptions, idleSeconds: 0.2 }, () => {});
    const style = songAdapter("style", kinds.LoRA);
    const song = async () => (await renderOne(engine, { ...shortSong, adapters: [style] })).audio;
    try {
      const styled = await song();
      while (engine.catalog.slots()[0]?.isLoaded) await sleep(20);
      expect(await song()).to.deep.equal(styled);
    } finally {
      await engine.close();
    }
  });
});

describe("several adapters in one song", () => {
  const folder = temporaryDirectory();
  const plain = songAdapter("plain", writeLora(join(folder, "plain")));
  const dora = songAdapter("dora", writeLora(join(folder, "dora"), { seed: 5, dora: true }), -0.5);
  const kron = songAdapter("kron", writeLokr(join(folder, "kron.safetensors")), 0.3);
  let engine: Engine;

  before(() => {
    engine = new Engine(engineOptions, () => {});
  });
  after(() => engine.close());

  const song = async (...adapters: SongAdapter[]) => {
    const { audio, adapters: acting } = await renderOne(engine, { ...shortSong, adapters });
    return { bytes: Buffer.from(audio.buffer).toString("base64"), acting };
  };

  it("several adapters act together at their scales, with the same result in any order", async () => {
    const together = await song(plain, dora, kron);
    expect(together.acting).to.deep.equal([
      { name: "dora", scale: -0.5 },
      { name: "kron", scale: 0.3 },
      { name: "plain", scale: 1 },
    ]);
    expect(await song(kron, dora, plain)).to.deep.equal(together);
    expect(await song(dora, kron, plain)).to.deep.equal(together);
    const without = await song(plain, kron);
    expect(without.acting.map(({ name }) => name)).to.deep.equal(["kron", "plain"]);
    expect(without.bytes).to.not.equal(together.bytes);
    expect((await song(plain)).bytes).to.not.equal(without.bytes);
  });
});
