import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import type { ModelSource } from "../../src/engine/addon.js";
import { Checkpoints, fingerprintOf } from "../../src/engine/checkpoints.js";
import { thrownBy } from "../failures.js";
import { temporaryDirectory } from "../music/tasks.js";

describe("models in the checkpoint directory", () => {
  let root: string;
  let checkpoints: Checkpoints;

  beforeEach(() => {
    root = temporaryDirectory();
    checkpoints = new Checkpoints(root);
  });

  async function write(path: string, content: object = {}): Promise<void> {
    await mkdir(join(root, path, ".."), { recursive: true });
    await writeFile(join(root, path), JSON.stringify(content));
  }

  function folder(path: string): ModelSource {
    return { path, prefix: "", config: null };
  }

  function refusal(action: () => unknown): string {
    const error = thrownBy(action);
    expect(error).to.include({ name: "EngineError", code: "MODEL_NOT_FOUND" });
    return error.message;
  }

  it("computes a fingerprint of configuration and weights, independent of the location", async () => {
    const weights = Buffer.alloc(3 * 2 ** 20);
    const make = async (name: string, config: object, change: (weights: Buffer) => void = () => {}) => {
      await write(`${name}/config.json`, config);
      const own = Buffer.from(weights);
      change(own);
      await writeFile(join(root, name, "model.safetensors"), own);
      return fingerprintOf(join(root, name));
    };
    const first = await make("a", {});
    expect(await make("b", {})).to.equal(first);
    const others = [
      await make("c", { is_turbo: true }),
      await make("d", {}, (own) => own.writeUInt8(1, 0)),
      await make("e", {}, (own) => own.writeUInt8(1, own.length - 1)),
    ];
    expect(new Set([first, ...others]).size).to.equal(4);
  });

  it("finds the parts of a published model in sibling folders", async () => {
    await write("acestep-v15-turbo/config.json", { is_turbo: true });
    await write("vae/config.json");
    await write("Qwen3-Embedding-0.6B/config.json");
    const textEncoder = join(root, "Qwen3-Embedding-0.6B");
    const expected = {
      name: "acestep-v15-turbo",
      model: folder(join(root, "acestep-v15-turbo")),
      vae: folder(join(root, "vae")),
      textEncoder: folder(textEncoder),
      tokenizerDirectory: textEncoder,
    };
    expect(checkpoints.renderer("acestep-v15-turbo")).to.deep.equal(expected);
    expect(checkpoints.usesEmbedded("acestep-v15-turbo")).to.equal(false);
    const path = join(root, "acestep-v15-turbo");
    expect(new Checkpoints("/nowhere").renderer(path)).to.deep.equal(expected);
  });

  it("prefers parts inside the model's folder", async () => {
    for (const part of ["vae", "text_encoder", "tokenizer", "transformer"]) {
      await write(`mine/${part}/config.json`, { is_turbo: false });
    }
    await write("mine/tokenizer/tokenizer.json");
    await write("vae/config.json");
    expect(checkpoints.renderer("mine")).to.deep.equal({
      name: "mine",
      model: folder(join(root, "mine")),
      vae: folder(join(root, "mine", "vae")),
      textEncoder: folder(join(root, "mine", "text_encoder")),
      tokenizerDirectory: join(root, "mine", "tokenizer"),
    });
  });

  it("lists renderers and language models, including the built-in ones", async () => {
    await write("acestep-v15-turbo/config.json", { is_turbo: true });
    await write("acestep-v15-base/config.json", { is_turbo: false });
    await write("in-diffusers-layout/transformer/config.json", { is_turbo: true });
    await write("vae/config.json");
    await write("acestep-5Hz-lm-1.7B/config.json", { model_type: "qwen3" });
    await mkdir(join(root, "empty"));
    await mkdir(join(root, "damaged"));
    await writeFile(join(root, "damaged", "config.json"), "{");
    expect(checkpoints.rendererNames()).to.deep.equal([
      "acestep-v15-base",
      "acestep-v15-turbo",
      "in-diffusers-layout",
      "carillon-nano",
    ]);
    expect(checkpoints.languageModelNames()).to.deep.equal(["acestep-5Hz-lm-1.7B", "carillon-nano/lm"]);
    expect(checkpoints.rendererNames().map((name) => checkpoints.isTurbo(name))).to.deep.equal([
      false,
      true,
      true,
      true,
    ]);
  });

  it("uses the built-in model in place of a missing default model, but of no other", () => {
    expect(checkpoints.configured("acestep-v15-turbo")).to.equal("carillon-nano");
    expect(checkpoints.usesEmbedded("acestep-v15-turbo")).to.equal(true);
    expect(checkpoints.configured("acestep-5Hz-lm-0.6B")).to.equal("carillon-nano/lm");
    expect(checkpoints.configured("acestep-v15-base")).to.equal("acestep-v15-base");
    expect(refusal(() => checkpoints.renderer("acestep-v15-turbo"))).to.contain("acestep-v15-turbo");
    expect(checkpoints.languageModel("carillon-nano/lm").model.path).to.match(/carillon-nano.lm$/);

    const message = refusal(() => checkpoints.renderer("acestep-v15-base"));
    expect(message).to.contain("acestep-v15-base").and.to.contain(join(root, "acestep-v15-base"));
    expect(refusal(() => checkpoints.languageModel("acestep-5Hz-lm-4B"))).to.contain("acestep-5Hz-lm-4B");
  });

  it("uses the folder's name for a model that is configured by path", async () => {
    const elsewhere = join(root, "elsewhere");
    for (const name of ["mine", "elsewhere/mine", "elsewhere/other", "further/other"]) {
      await write(`${name}/config.json`, { is_turbo: true });
      await write(`${name}/vae/config.json`);
      await write(`${name}/text_encoder/config.json`);
    }
    await write("elsewhere/lm/config.json");
    const paths = ["elsewhere/mine", "elsewhere/other", "further/other", "elsewhere/lm"];
    const [mine, other, further, lm] = paths.map((path) => join(root, path)) as [
      string,
      string,
      string,
      string,
    ];
    const configured = new Checkpoints(root, [mine, other, further, lm]);

    expect(configured.configured(other)).to.equal("other");
    expect(configured.renderer("other")).to.deep.include({ name: "other", model: folder(other) });
    expect(configured.renderer(other)).to.deep.include({ name: "other", model: folder(other) });
    expect(configured.languageModel("lm")).to.deep.equal({
      name: "lm",
      model: folder(lm),
      tokenizerDirectory: lm,
    });
    expect(configured.languageModelNames()).to.deep.equal(["lm", "carillon-nano/lm"]);
    // The path of a model is its name if another model has the same folder name.
    expect(configured.renderer(mine)).to.deep.include({ name: mine, model: folder(mine) });
    expect(configured.renderer("mine").model.path).to.equal(join(root, "mine"));
    expect(configured.renderer(further)).to.deep.include({ name: further, model: folder(further) });
    expect(configured.rendererNames()).to.deep.equal([mine, "other", further, "mine", "carillon-nano"]);
    expect(new Checkpoints(elsewhere, ["other"]).renderer("other").name).to.equal("other");
  });

  it("prefers a configured folder to the built-in model of the same name", async () => {
    const own = join(temporaryDirectory(), "carillon-nano");
    for (const part of ["", "vae", "text_encoder"]) {
      await mkdir(join(own, part), { recursive: true });
      await writeFile(join(own, part, "config.json"), "{}");
    }
    const configured = new Checkpoints(root, [own]);
    expect(configured.renderer(configured.configured(own))).to.deep.include({
      name: own,
      model: folder(own),
    });
    expect(configured.renderer("carillon-nano").model.path).to.not.equal(own);
  });

  it("reports which part of a model is missing", async () => {
    await write("lonely/config.json", { is_turbo: true });
    const message = refusal(() => checkpoints.renderer("lonely"));
    expect(message)
      .to.contain(join(root, "lonely", "text_encoder"))
      .and.to.contain("Qwen3-Embedding-0.6B");
  });

  it("lists nothing without a checkpoint directory", () => {
    expect(new Checkpoints(join(root, "absent")).rendererNames()).to.deep.equal(["carillon-nano"]);
  });
});
