import { cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { expect } from "chai";
import { pseudoRandomTensor, type Tensor, writeLokr, writeLora, writeSafetensors } from "../adapter-files.js";
import { oneSecondSong } from "../live-server.js";
import { startTrainingServer, type Trainer, type TrainingServer } from "./trainer.js";

const RANK = 4;
const ALPHA = 8;
const WEIGHTS = "adapter_model.safetensors";
const CONFIG = "adapter_config.json";
const SINGLE_FILE = "comfy_lora.safetensors";

/** A request that makes the same song every time. */
const sameSong = { ...oneSecondSong, audio_format: "wav", seed: 7, use_random_seed: false };

describe("export of adapters for other programs", () => {
  let server: TrainingServer;
  let trainer: Trainer;
  let base: Buffer;
  let styled: Buffer;

  before(async () => {
    server = await startTrainingServer();
    trainer = server.trainer;
    writeLora(trainer.path("out/final/adapter"));
    base = await song();
    styled = await songWithAdapter("out/final");
    expect(styled.equals(base)).to.equal(false);
  });

  after(() => server.close());

  async function song(): Promise<Buffer> {
    return server.client.download(await server.client.makeOne(sameSong));
  }

  async function songWithAdapter(path: string): Promise<Buffer> {
    const loaded = await server.client.post("/v1/lora/load", { lora_path: trainer.path(path) });
    expect(loaded.status, loaded.body.detail).to.equal(200);
    const bytes = await song();
    await server.client.post("/v1/lora/unload", {});
    return bytes;
  }

  /**
   * Makes a song from an adapter's weights file alone, as programs do that ignore the adapter's
   * configuration.
   */
  async function songOfWeightsFile(path: string): Promise<Buffer> {
    const alone = trainer.path("alone", path.replaceAll("/", "-"));
    mkdirSync(trainer.path("alone"), { recursive: true });
    cpSync(trainer.path(path), alone);
    return songWithAdapter(join("alone", path.replaceAll("/", "-")));
  }

  function exportTo(export_path: string, form: object = {}, lora_output_dir = "out") {
    return server.client.post("/v1/training/export", { export_path, lora_output_dir, ...form });
  }

  const configOf = (folder: string) => JSON.parse(readFileSync(trainer.path(folder, CONFIG), "utf8"));

  it("an adapter exported without options makes another song without its configuration", async () => {
    expect((await exportTo("plain")).status).to.equal(200);
    expect((await songOfWeightsFile(`plain/${WEIGHTS}`)).equals(styled)).to.equal(false);
  });

  it("an adapter exported with fold_alpha makes the same song without its configuration", async () => {
    const { status, body } = await exportTo("folded", { fold_alpha: true });
    expect(status, body.detail).to.equal(200);
    expect(body.data).to.deep.equal({
      message: "LoRA exported successfully",
      export_path: trainer.path("folded"),
      source: trainer.path("out/final"),
    });
    for (const folder of ["folded", "folded/adapter"]) {
      const { lora_alpha, ...others } = configOf(folder);
      const { lora_alpha: _, ...original } = configOf("out/final/adapter");
      expect(lora_alpha).to.equal(RANK);
      expect(others).to.deep.equal(original);
    }
    const weights = (folder: string) => readFileSync(trainer.path(folder, WEIGHTS));
    expect(weights("folded/adapter").equals(weights("folded"))).to.equal(true);
    expect((await songOfWeightsFile(`folded/${WEIGHTS}`)).equals(styled)).to.equal(true);
    expect((await songWithAdapter("folded")).equals(styled)).to.equal(true);
  });

  it("comfy_single_file exports an adapter as one file that contains alpha", async () => {
    const { status, body } = await exportTo("single", { comfySingleFile: "true" });
    expect(status, body.detail).to.equal(200);
    expect(readdirSync(trainer.path("single"))).to.deep.equal([SINGLE_FILE]);
    expect((await songOfWeightsFile(`single/${SINGLE_FILE}`)).equals(styled)).to.equal(true);
    const original = tensorsOf(trainer.path("out/final/adapter", WEIGHTS));
    const tensors = tensorsOf(trainer.path("single", SINGLE_FILE));
    for (const [name, tensor] of original) {
      expect(isDeepStrictEqual(tensors.get(name), tensor), name).to.equal(true);
      const alpha = tensors.get(name.replace(/lora_[AB]\.weight$/, "alpha"));
      expect(alpha).to.deep.equal({ shape: [], values: Float32Array.of(ALPHA) });
    }
    expect(tensors.size).to.equal(1.5 * original.size);
  });

  it("fold_alpha scales lora_B by alpha / rank, even in a single file", async () => {
    cpSync(trainer.path("out/final/adapter"), trainer.path("odd/final"), { recursive: true });
    writeFileSync(
      trainer.path("odd/final", CONFIG),
      JSON.stringify({ ...configOf("odd/final"), lora_alpha: 6 }),
    );
    const { status, body } = await exportTo("both", { fold_alpha: true, comfy_single_file: true }, "odd");
    expect(status, body.detail).to.equal(200);
    const tensors = tensorsOf(trainer.path("both", SINGLE_FILE));
    for (const [name, { shape, values }] of tensorsOf(trainer.path("odd/final", WEIGHTS))) {
      const isB = name.includes("lora_B");
      const expected = { shape, values: isB ? values.map((value) => 1.5 * value) : values };
      expect(isDeepStrictEqual(tensors.get(name), expected), name).to.equal(true);
      if (isB) expect(tensors.get(name.replace("lora_B.weight", "alpha"))?.values[0]).to.equal(RANK);
    }
  });

  it("an export replaces an earlier one in another format", async () => {
    for (const [form, name] of [
      [{ comfy_single_file: true }, SINGLE_FILE],
      [{ fold_alpha: true }, WEIGHTS],
      [{ comfy_single_file: true }, SINGLE_FILE],
    ] as const) {
      expect((await exportTo("again", form)).status).to.equal(200);
      expect(readdirSync(trainer.path("again"))).to.include(name);
    }
    expect(readdirSync(trainer.path("again"))).to.deep.equal([SINGLE_FILE]);
  });

  const module = "base_model.model.layers.0.self_attn.q_proj";
  const matrices = {
    [`${module}.lora_A.weight`]: pseudoRandomTensor([RANK, 8], 1),
    [`${module}.lora_B.weight`]: pseudoRandomTensor([8, RANK], 2),
  };
  const config = { peft_type: "LORA", r: RANK, lora_alpha: ALPHA };
  const refusals: [what: string, write: (folder: string) => void, mentions: string][] = [
    ["a LoKr", (folder) => writeLokr(join(folder, "lokr_weights.safetensors")), "a LoKr is already one file"],
    ["use_rslora", writePeft({ ...config, use_rslora: true }), "use_rslora"],
    [
      "a separate alpha for one module",
      writePeft({ ...config, alpha_pattern: { q_proj: 1 } }),
      "alpha_pattern",
    ],
    [
      "a rank other than the configured one",
      writePeft({ ...config, r: 2 }),
      "q_proj.lora_A.weight does not have the rank",
    ],
    [
      "DoRA tensors",
      writePeft(config, { ...matrices, [`${module}.lora_magnitude_vector`]: pseudoRandomTensor([8], 3) }),
      "lora_magnitude_vector",
    ],
  ];

  function writePeft(
    peftConfig: object,
    tensors: Record<string, Tensor> = matrices,
  ): (folder: string) => void {
    return (folder) => {
      writeSafetensors(join(folder, WEIGHTS), tensors);
      writeFileSync(join(folder, CONFIG), JSON.stringify(peftConfig));
    };
  }

  for (const [index, [what, write, mentions]] of refusals.entries()) {
    it(`fold_alpha and comfy_single_file are rejected with 400 for ${what}`, async () => {
      const outputDir = `refused-${index}`;
      mkdirSync(trainer.path(outputDir, "final"), { recursive: true });
      write(trainer.path(outputDir, "final"));
      const before = readdirSync(trainer.root);
      for (const form of [{ fold_alpha: true }, { comfy_single_file: true }]) {
        const { status, body } = await exportTo("unwritten", form, outputDir);
        expect(body.detail).to.include(mentions).and.not.include("\n");
        expect(status).to.equal(400);
      }
      expect(readdirSync(trainer.root)).to.deep.equal(before);
      expect((await exportTo(`copy-${index}`, {}, outputDir)).status).to.equal(200);
    });
  }
});

interface ReadTensor {
  shape: number[];
  values: Float32Array;
}

/**
 * Reads the tensors of a float32 safetensors file. Fails if there is a gap between tensors or after the last
 * one.
 */
function tensorsOf(path: string): Map<string, ReadTensor> {
  const bytes = readFileSync(path);
  const begin = 8 + Number(bytes.readBigUInt64LE());
  const { __metadata__, ...header } = JSON.parse(bytes.toString("utf8", 8, begin));
  let next = begin;
  const tensors = Object.entries<{ shape: number[]; data_offsets: [number, number] }>(header)
    .sort(([, a], [, b]) => a.data_offsets[0] - b.data_offsets[0])
    .map(([name, { shape, data_offsets }]): [string, ReadTensor] => {
      expect(begin + data_offsets[0], name).to.equal(next);
      const from = next;
      next = begin + data_offsets[1];
      return [name, { shape, values: new Float32Array(new Uint8Array(bytes.subarray(from, next)).buffer) }];
    });
  expect(next).to.equal(bytes.length);
  return new Map(tensors);
}
