import { mkdirSync, readFileSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { Checkpoints } from "../../src/engine/checkpoints.js";
import { Engine } from "../../src/engine/engine.js";
import { EngineError } from "../../src/engine/errors.js";
import { configOf, readModelFile } from "../../src/engine/model-files.js";
import { thrownBy } from "../failures.js";
import { temporaryDirectory } from "../music/tasks.js";
import {
  type StoredTensors,
  writeAllInOne,
  writeSilence,
  writeSplit,
  writeTensors,
  writeTokenizer,
} from "./comfy-files.js";
import { engineOptions } from "./embedded.js";
import { plainPlan, plainRequest, planOne, renderOne } from "./plain-song.js";

/** Writes a sparse safetensors file with tensors of the given shapes. */
function writeShapes(path: string, shapes: Record<string, number[]>, dtype = "BF16"): string {
  const tensors = Object.entries(shapes).map(
    ([name, shape]) => [name, { dtype, shape, bytes: Buffer.alloc(0) }] as const,
  );
  return writeTensors(path, Object.fromEntries(tensors) as StoredTensors);
}

function layers(count: number, of: (index: number) => Record<string, number[]>): Record<string, number[]> {
  return Object.assign({}, ...Array.from({ length: count }, (_, index) => of(index)));
}

function attention(width: number, heads: number, module: string): Record<string, number[]> {
  return {
    [`${module}.q_proj.weight`]: [128 * heads, width],
    [`${module}.k_proj.weight`]: [1024, width],
    [`${module}.q_norm.weight`]: [128],
  };
}

/** Tensor shapes of a published DiT. The loader infers the sizes of the model from them. */
function ditShapes({
  hidden,
  inner,
  heads,
  depth,
}: {
  hidden: number;
  inner: number;
  heads: number;
  depth: number;
}) {
  return {
    "decoder.proj_in.1.weight": [hidden, 192, 2],
    "decoder.proj_out.1.weight": [hidden, 64, 2],
    "decoder.scale_shift_table": [1, 2, hidden],
    ...layers(depth, (index) => ({
      ...attention(hidden, heads, `decoder.layers.${index}.self_attn`),
      ...attention(hidden, heads, `decoder.layers.${index}.cross_attn`),
      [`decoder.layers.${index}.mlp.gate_proj.weight`]: [inner, hidden],
    })),
    "encoder.text_projector.weight": [2048, 1024],
    "encoder.timbre_encoder.embed_tokens.weight": [2048, 64],
    ...layers(8, (index) => ({
      ...attention(2048, 16, `encoder.lyric_encoder.layers.${index}.self_attn`),
      [`encoder.lyric_encoder.layers.${index}.mlp.gate_proj.weight`]: [6144, 2048],
    })),
    ...layers(4, (index) => attention(2048, 16, `encoder.timbre_encoder.layers.${index}.self_attn`)),
    ...layers(2, (index) => attention(2048, 16, `tokenizer.attention_pooler.layers.${index}.self_attn`)),
    "tokenizer.quantizer.project_in.weight": [6, 2048],
    "detokenizer.special_tokens": [1, 5, 2048],
  };
}

const qwen3Shapes = (vocabulary: number, width: number, heads: number, depth: number) => ({
  "embed_tokens.weight": [vocabulary, width],
  ...layers(depth, (index) => ({
    ...attention(width, heads, `layers.${index}.self_attn`),
    [`layers.${index}.mlp.gate_proj.weight`]: [3 * width, width],
  })),
});

const RATIOS = [2, 4, 4, 6, 10];

/** Tensor shapes of an autoencoder under ComfyUI's names. */
function vaeShapes(ratios = RATIOS): Record<string, number[]> {
  const widths = [128, 128, 256, 512, 1024, 2048];
  return {
    "encoder.layers.0.weight_v": [128, 2, 7],
    "decoder.layers.0.weight_v": [2048, 64, 7],
    ...layers(5, (index) => ({
      [`decoder.layers.${index + 1}.layers.0.alpha`]: [widths[5 - index] as number],
      [`decoder.layers.${index + 1}.layers.1.weight_v`]: [
        widths[5 - index] as number,
        widths[4 - index] as number,
        2 * (ratios[4 - index] as number),
      ],
    })),
    "decoder.layers.6.alpha": [128],
    "decoder.layers.7.weight_v": [2, 128, 7],
  };
}

function prefixed(prefix: string, shapes: Record<string, number[]>): Record<string, number[]> {
  return Object.fromEntries(Object.entries(shapes).map(([name, shape]) => [prefix + name, shape]));
}

const SMALL = { hidden: 2048, inner: 6144, heads: 16, depth: 24 };
const LARGE = { hidden: 2560, inner: 9728, heads: 32, depth: 32 };

describe("loading of ComfyUI files", () => {
  const folder = temporaryDirectory();
  let files = 0;
  const path = (name = `file-${files++}.safetensors`) => join(folder, name);

  function refusal(action: () => unknown): EngineError {
    const error = thrownBy(action);
    expect(error).to.be.instanceOf(EngineError);
    return error as EngineError;
  }

  describe("ComfyUI files without metadata", () => {
    it("the model sizes of the 2B and XL families are inferred from tensor shapes", () => {
      const shared = {
        model_type: "acestep",
        num_key_value_heads: 8,
        head_dim: 128,
        in_channels: 192,
        patch_size: 2,
        audio_acoustic_hidden_dim: 64,
        text_hidden_dim: 1024,
        timbre_hidden_dim: 64,
        num_lyric_encoder_hidden_layers: 8,
        num_timbre_encoder_hidden_layers: 4,
        num_attention_pooler_hidden_layers: 2,
        pool_window_size: 5,
        fsq_dim: 2048,
        fsq_input_levels: [8, 8, 8, 5, 5, 5],
      };
      const small = readModelFile(writeShapes(path("acestep_v1.5_turbo.safetensors"), ditShapes(SMALL)));
      expect(configOf(small.transformer as never)).to.deep.equal({
        ...shared,
        is_turbo: true,
        hidden_size: 2048,
        intermediate_size: 6144,
        num_hidden_layers: 24,
        num_attention_heads: 16,
      });
      const large = readModelFile(
        writeShapes(path("acestep_v1.5_xl_sft_bf16.safetensors"), ditShapes(LARGE)),
      );
      expect(configOf(large.transformer as never)).to.deep.equal({
        ...shared,
        is_turbo: false,
        hidden_size: 2560,
        intermediate_size: 9728,
        num_hidden_layers: 32,
        num_attention_heads: 32,
        encoder_hidden_size: 2048,
        encoder_intermediate_size: 6144,
        encoder_num_attention_heads: 16,
        encoder_num_key_value_heads: 8,
      });
    });

    it("the parts of a model are detected from tensor names, and the sizes of each part from shapes", () => {
      const models = readModelFile(
        writeShapes(path("ace_step_1.5_turbo_aio.safetensors"), {
          ...prefixed("model.diffusion_model.", ditShapes(SMALL)),
          ...prefixed("vae.", vaeShapes()),
          ...prefixed("text_encoders.qwen3_06b.transformer.model.", qwen3Shapes(151_669, 1024, 16, 28)),
          "text_encoders.qwen3_06b.logit_scale": [],
          ...prefixed("text_encoders.qwen3_2b.transformer.model.", qwen3Shapes(217_204, 2048, 16, 28)),
        }),
      );
      expect(Object.keys(models).sort()).to.deep.equal([
        "language_model",
        "text_encoder",
        "transformer",
        "vae",
      ]);
      expect(models.transformer?.prefix).to.equal("model.diffusion_model.");
      expect(models.language_model?.prefix).to.equal("text_encoders.qwen3_2b.transformer.");
      expect(configOf(models.vae as never)).to.deep.equal({
        sampling_rate: 48_000,
        audio_channels: 2,
        encoder_hidden_size: 128,
        decoder_channels: 128,
        decoder_input_channels: 64,
        downsampling_ratios: RATIOS,
        channel_multiples: [1, 2, 4, 8, 16],
      });
      expect(configOf(models.text_encoder as never)).to.deep.equal({
        model_type: "qwen3",
        vocab_size: 151_669,
        hidden_size: 1024,
        intermediate_size: 3072,
        num_hidden_layers: 28,
        num_attention_heads: 16,
        num_key_value_heads: 8,
        head_dim: 128,
        attention_bias: false,
      });
      expect(configOf(models.language_model as never)).to.include({ vocab_size: 217_204, hidden_size: 2048 });
    });
  });

  describe("unusable ComfyUI files", () => {
    const said = (file: string) => {
      const error = refusal(() => readModelFile(file));
      expect(error.code).to.equal("UNSUPPORTED_MODEL");
      expect(error.message).to.contain(file).and.to.contain("Supported: an ACE-Step 1.5 model");
      return error.fault;
    };

    for (const [what, shapes] of [
      ["FLUX", { "double_blocks.0.img_attn.qkv.weight": [8, 8] }],
      ["Stable Diffusion", { "model.diffusion_model.input_blocks.0.0.weight": [4] }],
      ["ACE-Step 1 (3.5B)", { "genre_embedder.weight": [4, 4] }],
      ["Wan", { "blocks.0.cross_attn.k.weight": [4, 4] }],
      ["an adapter, which POST /v1/lora/load takes", { "diffusion_model.layers.0.q.lora_A.weight": [4, 4] }],
      ["the autoencoder of another audio model", vaeShapes([2, 4, 4, 8, 8])],
      ["a language model of another make", prefixed("model.", qwen3Shapes(151_936, 1024, 16, 2))],
      ["no known model (its first tensor is 'weight')", { weight: [4] }],
    ] as const) {
      it(`an unsupported file is rejected with an error that names its content: ${what}`, () => {
        expect(said(writeShapes(path(), shapes as unknown as Record<string, number[]>))).to.contain(
          `contains ${what}`,
        );
      });
    }

    it("an unsupported weight type is rejected with an error that names it", () => {
      const scaled = { ...ditShapes(SMALL), "decoder.layers.0.mlp.gate_proj.weight_scale": [] };
      expect(said(writeShapes(path(), scaled, "F8_E4M3"))).to.contain("has scaled fp8 weights (F8_E4M3)");
      const comfy = { ...ditShapes(SMALL), "decoder.layers.0.mlp.gate_proj.comfy_quant": [] };
      expect(said(writeShapes(path(), comfy, "I8"))).to.contain("has quantized weights of ComfyUI");
    });

    it("a single GGUF file is rejected with an error that names its architecture or says where to put it", () => {
      const gguf = (architecture: string) => {
        const text = (value: string) => {
          const length = Buffer.alloc(8);
          length.writeBigUInt64LE(BigInt(value.length));
          return Buffer.concat([length, Buffer.from(value)]);
        };
        const head = Buffer.from("GGUF\x03\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0", "latin1");
        const type = Buffer.from([8, 0, 0, 0]);
        const file = path(`${architecture}.gguf`);
        writeFileSync(
          file,
          Buffer.concat([head, text("general.architecture"), type, text(architecture), head]),
        );
        return file;
      };
      expect(said(gguf("llama"))).to.contain("is a GGUF file of the architecture llama");
      expect(said(gguf("acestep-dit"))).to.contain(
        "put it into a folder beside the config.json of its model",
      );
    });

    it("a damaged file is rejected with an error that describes the damage", () => {
      const damaged = (name: string, change: (file: string) => void) => {
        const file = writeAllInOne(path(name), ["vae"]);
        change(file);
        return said(file);
      };
      expect(damaged("a.safetensors", (file) => truncateSync(file, 1_000_000))).to.contain("it is truncated");
      expect(damaged("b.safetensors", (file) => truncateSync(file, 100))).to.contain("or is truncated");
      expect(damaged("c.safetensors", (file) => truncateSync(file, 0))).to.contain(
        "it is not a safetensors file",
      );
      expect(damaged("d.safetensors", (file) => writeFileSync(file, "\x02\0\0\0\0\0\0\0[]"))).to.contain(
        "not an object",
      );
      const huge = Buffer.alloc(64);
      huge.writeBigUInt64LE(2n ** 63n);
      expect(damaged("e.safetensors", (file) => writeFileSync(file, huge))).to.contain(
        "it is not a safetensors file",
      );
      const half = ditShapes(SMALL) as Record<string, number[]>;
      delete half["decoder.scale_shift_table"];
      expect(said(writeShapes(path(), half))).to.contain("there is no tensor 'decoder.scale_shift_table'");
    });
  });

  it("a randomly damaged file is read, or rejected with an EngineError", () => {
    const file = writeShapes(path("fuzzed.safetensors"), vaeShapes());
    const whole = readFileSync(file);
    for (let round = 0; round < 300; round++) {
      const bytes = Buffer.from(whole);
      // Each round changes other bytes, but every run of the test makes the same changes.
      for (let change = 0; change <= round % 4; change++) {
        bytes[(round * 7919 + change * 104_729) % bytes.length] = (round * 31 + change * 17) % 256;
      }
      writeFileSync(file, bytes.subarray(0, round % 5 === 0 ? (round * 13) % bytes.length : bytes.length));
      try {
        readModelFile(file);
      } catch (error) {
        expect(error).to.include({ name: "EngineError", code: "UNSUPPORTED_MODEL" });
      }
    }
  });

  it("a file with only a VAE is rejected as a rendering model", () => {
    const { vae } = writeSplit(join(folder, "parts"));
    const error = refusal(() => new Checkpoints(join(folder, "absent")).renderer(vae));
    expect(error.message).to.contain(
      `${vae} has the VAE of an ACE-Step 1.5 model, but no diffusion transformer`,
    );
  });

  it("a model without a tokenizer is rejected with an error that says where to put the tokenizer", () => {
    const root = join(folder, "without-tokenizer");
    writeAllInOne(join(root, "nano_aio.safetensors"));
    const error = refusal(() => new Checkpoints(root).renderer("nano_aio"));
    expect(error).to.include({ code: "MODEL_NOT_FOUND" });
    expect(error.message)
      .to.contain(join(root, "Qwen3-Embedding-0.6B"))
      .and.to.contain("put the tokenizer.json of Qwen3-Embedding-0.6B into one of these folders");
  });

  describe("songs from ComfyUI files and from the original layout", function () {
    this.timeout(300_000);
    let expected: Buffer;
    const root = join(folder, "ComfyUI", "models");

    async function song(model: string, checkpointsDirectory: string, languageModel = "carillon-nano/lm") {
      const engine = new Engine(
        { ...engineOptions, checkpointsDirectory, slotModels: [model, null, null], languageModel },
        () => {},
      );
      try {
        const { audio: planar } = await renderOne(engine, plainRequest);
        const listed = { models: engine.catalog.models(), languageModels: engine.catalog.languageModels() };
        return {
          bytes: Buffer.from(planar.buffer.slice(planar.byteOffset, planar.byteOffset + planar.byteLength)),
          ...listed,
        };
      } finally {
        await engine.close();
      }
    }

    before(async () => {
      expected = (await song("carillon-nano", "absent")).bytes;
      writeSplit(root);
      for (const part of ["text_encoder", "language_model"] as const) {
        writeTokenizer(
          join(root, part === "text_encoder" ? "Qwen3-Embedding-0.6B" : "acestep-5Hz-lm-0.6B"),
          part,
        );
      }
      writeAllInOne(join(root, "checkpoints", "nano_turbo_aio.safetensors"));
      for (const place of ["checkpoints", "diffusion_models"]) writeSilence(join(root, place));
    });

    it("a model in one file is listed, loaded by name, and makes the same song as in the original layout", async () => {
      const { bytes, models, languageModels } = await song("nano_turbo_aio", root);
      expect(bytes.equals(expected)).to.equal(true);
      expect(models.map(({ name }) => name)).to.deep.equal(["nano_turbo_aio", "nano_turbo", "carillon-nano"]);
      expect(models[0]).to.include({ isDefault: true, isLoaded: true, isTurbo: true });
      expect(models[0]?.supportedTasks).to.include("lego");
      expect(languageModels.map(({ name }) => name)).to.deep.equal([
        "acestep-5Hz-lm-0.6B",
        "nano_turbo_aio/lm",
        "nano_lm",
        "carillon-nano/lm",
      ]);
    });

    it("a model in one file is loaded by path, and makes the same song as in the original layout", async () => {
      const { bytes, models } = await song(join(root, "checkpoints", "nano_turbo_aio.safetensors"), "absent");
      expect(bytes.equals(expected)).to.equal(true);
      expect(models[0]).to.include({ name: "nano_turbo_aio", isLoaded: true });
    });

    it("a model with a file per part is loaded by name or path, and makes the same song", async () => {
      for (const [name, directory] of [
        ["nano_turbo", root],
        ["nano_turbo.safetensors", root],
        ["diffusion_models/nano_turbo.safetensors", root],
        [join(root, "diffusion_models", "nano_turbo.safetensors"), "absent"],
      ] as const) {
        const { bytes, models } = await song(name, directory);
        expect(bytes.equals(expected), name).to.equal(true);
        expect(models[0]).to.include({ name: "nano_turbo", isLoaded: true });
      }
    });

    it("a separate DiT file whose tensor names have a prefix makes the same song", async () => {
      const other = join(folder, "prefixed");
      writeSplit(other, "model.diffusion_model.");
      writeTokenizer(join(other, "text_encoders", "nano_text"), "text_encoder");
      writeSilence(join(other, "diffusion_models"));
      expect((await song("nano_turbo", other)).bytes.equals(expected)).to.equal(true);
    });

    it("a language model makes the same plan from its own file and from a file with all parts", async () => {
      const engine = new Engine({ ...engineOptions, checkpointsDirectory: root }, () => {});
      const plans = [];
      for (const languageModel of ["carillon-nano/lm", "nano_turbo_aio/lm", "nano_lm"]) {
        expect(await engine.loader.loadLanguageModel(languageModel)).to.equal(languageModel);
        plans.push(await planOne(engine, { ...plainPlan, languageModel }, {}));
      }
      await engine.close();
      expect(plans[1]?.audioCodes).to.deep.equal(plans[0]?.audioCodes);
      expect(plans[2]?.audioCodes).to.deep.equal(plans[0]?.audioCodes);
    });

    it("a model without the silence table makes a song of the same length", async () => {
      const other = join(folder, "without-silence");
      writeAllInOne(join(other, "nano.safetensors"));
      mkdirSync(join(other, "nano"), { recursive: true });
      writeTokenizer(join(other, "nano"), "text_encoder");
      const { bytes } = await song("nano", other);
      expect(bytes.length).to.equal(expected.length);
    });
  });
});
