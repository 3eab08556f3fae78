import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { writeAllInOne } from "../engine/comfy-files.js";
import {
  attentionProjections,
  pseudoRandomTensor,
  type Tensor,
  writeLora,
  writeSafetensors,
} from "./adapter-files.js";
import { oneSecondSong, serverForAll } from "./live-server.js";
import { temporaryDirectory } from "./tasks.js";
import { type SampleTensors, writeSample } from "./training/sample-files.js";

const seededSong = { ...oneSecondSong, use_random_seed: false, seed: 11, audio_format: "wav" };

describe("loading of adapters and models in common formats", () => {
  const folder = temporaryDirectory();
  const server = serverForAll();
  const { client } = server;
  let base: Buffer;
  let styled: Buffer;

  before(async () => {
    styled = await songWithAdapter(writeLora(join(folder, "peft")), "lora");
    base = await song();
    expect(styled.equals(base)).to.equal(false);
  });

  async function song(): Promise<Buffer> {
    return client.download(await client.makeOne(seededSong));
  }

  /** Renders the song with only the adapter at `path` loaded, and returns its bytes. */
  async function songWithAdapter(path: string, kind: string): Promise<Buffer> {
    const answer = await client.post("/v1/lora/load", { lora_path: path });
    expect(answer.status, answer.body.detail).to.equal(200);
    expect((await client.get("/v1/lora/status")).body.data.adapter_type).to.equal(kind);
    const bytes = await song();
    await client.post("/v1/lora/unload", {});
    return bytes;
  }

  /** Returns the tensors that `writeLora` writes, named by `keyOf`, and adds an alpha for each module. */
  function loraTensors(
    keyOf: (module: string, part: "A" | "B" | "alpha") => string | null,
  ): Record<string, Tensor> {
    const parts = attentionProjections().flatMap(({ name, out, in: inputs }) => [
      [keyOf(name, "A"), pseudoRandomTensor([4, inputs], 1)],
      [keyOf(name, "B"), pseudoRandomTensor([out, 4], 2)],
      [keyOf(name, "alpha"), { shape: [], values: new Float32Array([8]) }],
    ]);
    return Object.fromEntries(parts.filter(([key]) => key !== null));
  }

  async function refusal(path: string): Promise<string> {
    const { status, body } = await client.post("/v1/lora/load", { lora_path: path });
    expect(status, body.detail).to.equal(400);
    expect(body.detail).to.contain(path);
    return body.detail;
  }

  it("a LoRA makes the same song with the tensor names of kohya and of ComfyUI", async () => {
    const names = { A: "lora_down.weight", B: "lora_up.weight", alpha: "alpha" };
    const spellings: [file: string, keyOf: (module: string, part: "A" | "B" | "alpha") => string][] = [
      ["kohya", (module, part) => `lora_unet_${module.replaceAll(".", "_")}.${names[part]}`],
      ["comfy", (module, part) => `diffusion_model.decoder.${module}.${names[part]}`],
    ];
    for (const [name, keyOf] of spellings) {
      const path = join(folder, `${name}.safetensors`);
      writeSafetensors(path, loraTensors(keyOf));
      expect((await songWithAdapter(path, "lora")).equals(styled), name).to.equal(true);
    }
  });

  it("a LoRA makes the same song if only the metadata of its file or a text in its config has its alpha", async () => {
    const write = (name: string, file: string, metadata: Record<string, string>) => {
      const path = join(folder, name);
      mkdirSync(path, { recursive: true });
      const tensors = loraTensors((module, part) =>
        part === "alpha" ? null : `transformer.${module}.lora_${part}.weight`,
      );
      writeSafetensors(join(path, file), tensors, metadata);
      return path;
    };
    const settings = JSON.stringify({ "transformer.r": 4, "transformer.lora_alpha": 8 });
    const diffusers = write("diffusers", "pytorch_lora_weights.safetensors", {
      lora_adapter_metadata: settings,
    });
    const kohya = write("kohya-metadata", "style.safetensors", { ss_network_alpha: "8" });
    const config = write("text-config", "adapter_model.safetensors", {});
    writeFileSync(
      join(config, "adapter_config.json"),
      JSON.stringify({ peft_type: "lora", lora_alpha: "8" }),
    );
    for (const path of [diffusers, join(diffusers, "pytorch_lora_weights.safetensors"), kohya, config]) {
      expect((await songWithAdapter(path, "lora")).equals(styled), path).to.equal(true);
    }
  });

  it("the server reports settings of an adapter that it ignored, on loading and with each song", async () => {
    const path = writeLora(join(folder, "future"));
    const config = { peft_type: "LORA", r: 4, lora_alpha: 8, future_setting: 1 };
    writeFileSync(join(path, "adapter_config.json"), JSON.stringify(config));
    const warning = "adapter_config.json: the unknown setting future_setting was ignored";
    const { body } = await client.post("/v1/lora/load", { lora_path: path });
    expect(body.data.message).to.contain(warning);
    expect((await client.makeOne(seededSong)).warnings).to.deep.equal([`adapter future: ${warning}`]);
    await client.post("/v1/lora/unload", {});
  });

  it("the server rejects an adapter that needs another base model or changes more than projections", async () => {
    const path = writeLora(join(folder, "changed-base"));
    const write = (setting: object) =>
      writeFileSync(join(path, "adapter_config.json"), JSON.stringify({ peft_type: "LORA", ...setting }));
    write({ lora_alpha: 8, init_lora_weights: "pissa" });
    expect(await refusal(path)).to.contain("init_lora_weights is pissa: the adapter needs the base model");
    write({ lora_alpha: 8, layer_replication: [[0, 2]] });
    expect(await refusal(path)).to.contain("layer_replication is set: it repeats layers of the base model");
    write({ lora_alpha: 8 });
    const whole = "base_model.model.proj_out.weight";
    const tensors = loraTensors((module, part) =>
      part === "alpha" ? null : `base_model.model.${module}.lora_${part}.weight`,
    );
    const saved = { ...tensors, [whole]: pseudoRandomTensor([4, 4], 1) };
    writeSafetensors(join(path, "adapter_model.safetensors"), saved);
    expect(await refusal(path)).to.contain(`tensor '${whole}' is a whole weight (modules_to_save)`);
  });

  it("a .bin file in a PEFT folder makes the same song, whether loaded or named in the request", async () => {
    const path = join(folder, "pickled");
    mkdirSync(path);
    writeFileSync(
      join(path, "adapter_config.json"),
      JSON.stringify({ peft_type: "LORA", r: 4, lora_alpha: 8 }),
    );
    const tensors = loraTensors((module, part) =>
      part === "alpha" ? null : `base_model.model.${module}.lora_${part}.weight`,
    );
    writeSample(join(path, "adapter_model.bin"), tensors as unknown as SampleTensors);
    expect((await songWithAdapter(path, "lora")).equals(styled)).to.equal(true);
    for (const named of [path, join(path, "adapter_model.bin")]) {
      const song = await client.makeOne({ ...seededSong, loras: [{ path: named }] });
      expect((await client.download(song)).equals(styled), named).to.equal(true);
    }
  });

  it("a LoHa adapter and an IA3 adapter change the song", async () => {
    const modules = attentionProjections().map(({ name, ...size }) => ({
      ...size,
      key: `lycoris_${name.replaceAll(".", "_")}`,
    }));
    const loha = modules.flatMap(({ key, out, in: inputs }) => [
      [`${key}.hada_w1_a`, pseudoRandomTensor([out, 2], 1)],
      [`${key}.hada_w1_b`, pseudoRandomTensor([2, inputs], 2)],
      [`${key}.hada_w2_a`, pseudoRandomTensor([out, 2], 3)],
      [`${key}.hada_w2_b`, pseudoRandomTensor([2, inputs], 4)],
    ]);
    const ia3 = modules.flatMap(({ key, out }) => [
      [`${key}.weight`, pseudoRandomTensor([1, out], 1)],
      [`${key}.on_input`, { shape: [], values: new Float32Array([0]) }],
    ]);
    for (const [kind, tensors] of Object.entries({ loha, ia3 })) {
      const path = join(folder, `${kind}.safetensors`);
      writeSafetensors(path, Object.fromEntries(tensors));
      expect((await songWithAdapter(path, kind)).equals(base), kind).to.equal(false);
    }
  });

  it("the server rejects an adapter of another model, and names that model if it is known", async () => {
    const path = join(folder, "foreign.safetensors");
    const part = pseudoRandomTensor([4, 4], 1);
    const files: [module: string, what: string][] = [
      ["lora_unet_input_blocks_4_1_transformer_blocks_9_attn1_to_k", "an adapter of Stable Diffusion XL"],
      ["lora_unet_double_blocks_0_img_attn_qkv", "an adapter of FLUX"],
      ["model.layers.0.made_up", "the adapter was made for another model"],
    ];
    for (const [module, what] of files) {
      writeSafetensors(path, { [`${module}.lora_down.weight`]: part, [`${module}.lora_up.weight`]: part });
      expect(await refusal(path))
        .to.contain(what)
        .and.to.contain("choose an adapter that was trained for this model");
    }
    expect(await refusal(writeAllInOne(join(folder, "model.safetensors"), ["transformer"]))).to.contain(
      "holds a whole model, which cannot be used as an adapter",
    );
  });

  it("the server rejects a pickle without tensors, and files that are not adapters", async () => {
    const pickle = join(folder, "code.bin");
    writeFileSync(pickle, "\x80\x02cos\nsystem\nX\x04\0\0\0true\x85R.", "latin1");
    expect(await refusal(pickle)).to.contain("a bare pickle");
    const gguf = join(folder, "style.gguf");
    writeFileSync(gguf, "GGUF");
    expect(await refusal(gguf)).to.contain("a GGUF file");
  });

  it("the server rejects a file that is not a supported model, and says what the file contains", async () => {
    const init = async (model: string) => {
      const { status, body } = await client.post("/v1/init", { model });
      expect(status, body.detail).to.equal(400);
      return body.detail as string;
    };
    const flux = join(folder, "flux.safetensors");
    writeSafetensors(flux, { "double_blocks.0.img_attn.qkv.weight": pseudoRandomTensor([4, 4], 1) });
    expect(await init(flux))
      .to.contain(`${flux} contains FLUX`)
      .and.to.contain("Supported: an ACE-Step 1.5 model");
    const adapter = join(folder, "kohya.safetensors");
    expect(await init(adapter)).to.contain("contains an adapter, which POST /v1/lora/load takes");
    const cut = join(folder, "cut.safetensors");
    writeFileSync(cut, Buffer.alloc(4));
    expect(await init(cut)).to.contain("it is not a safetensors file, or is truncated");
    expect(await init(join(folder, "absent.safetensors"))).to.contain("was not found");
    expect((await song()).equals(base)).to.equal(true);
  });
});
