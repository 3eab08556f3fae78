import { cp, readFile, rm, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import type { Quantization } from "../../src/engine/addon.js";
import { Checkpoints } from "../../src/engine/checkpoints.js";
import { Engine } from "../../src/engine/engine.js";
import type { Plan } from "../../src/engine/types.js";
import { failureOf } from "../failures.js";
import { temporaryDirectory } from "../music/tasks.js";
import { engineOptions } from "./embedded.js";
import { writeGguf } from "./gguf.js";
import { plainPlan, plainRequest, planOne, renderOne, requestOf } from "./plain-song.js";

describe("songs and plans with quantized weights", () => {
  const directory = temporaryDirectory();
  const engines: Engine[] = [];

  function engineWith(quantization: Quantization, languageModel = "acestep-5Hz-lm-0.6B"): Engine {
    const engine = new Engine(
      {
        ...engineOptions,
        checkpointsDirectory: directory,
        languageModel,
        dtype: "float32",
        quantization,
      },
      () => {},
    );
    engines.push(engine);
    return engine;
  }

  const planOf = (engine: Engine): Promise<Plan> =>
    planOne(engine, { ...plainPlan, metadata: { ...plainPlan.metadata, durationSeconds: 4 }, seed: 1 }, {});

  after(() => Promise.all(engines.map((engine) => engine.close())));

  it("8-bit weights change a song slightly; 4-bit weights change it more", async () => {
    const songOf = async (quantization: Quantization): Promise<Float32Array> =>
      (await renderOne(engineWith(quantization), requestOf(2))).audio;
    const whole = await songOf("none");
    const likeness = [correlation(whole, await songOf("int8")), correlation(whole, await songOf("int4"))];
    expect(likeness[0]).to.be.within(0.99, 0.9999999);
    expect(likeness[1]).to.be.within(0.9, likeness[0] as number);
  });

  it("a .gguf file gives the same plan as weights that the engine quantizes", async () => {
    const { path: nano } = new Checkpoints(directory).languageModel("carillon-nano/lm").model;
    const copy = join(directory, "acestep-5Hz-lm-gguf");
    await cp(nano, copy, { recursive: true });
    await writeGguf(join(copy, "model.gguf"), await readFile(join(nano, "model.safetensors")));
    await rm(join(copy, "model.safetensors"));

    const made = await planOf(engineWith("int8"));
    const read = await planOf(engineWith("none", "acestep-5Hz-lm-gguf"));
    expect(read.audioCodes).to.deep.equal(made.audioCodes);
    expect(read.metadata).to.deep.equal(made.metadata);
  });

  it("a .gguf file that is damaged or of another model is rejected", async () => {
    const copy = join(directory, "acestep-5Hz-lm-gguf");
    const { path: renderer } = new Checkpoints(directory).renderer("carillon-nano").model;
    const refusal = async (): Promise<string> => {
      const { code, message } = await failureOf(planOf(engineWith("none", "acestep-5Hz-lm-gguf")));
      return `${code}: ${message}`;
    };
    await truncate(join(copy, "model.gguf"), 100_000);
    expect(await refusal()).to.match(/^BAD_CHECKPOINT: .*model\.gguf: .*truncated/);
    await writeGguf(
      join(copy, "model.gguf"),
      await readFile(join(renderer, "vae/diffusion_pytorch_model.safetensors")),
    );
    expect(await refusal()).to.match(/^BAD_CHECKPOINT: .*gguf: tensor '[\w.]+' is missing/);
    await writeFile(join(copy, "model.gguf"), "no model");
    expect(await refusal()).to.match(/^BAD_CHECKPOINT: .*not a GGUF file/);
  });

  it("bit widths other than 4 and 8 are rejected", async () => {
    const wrong = engineWith("int5" as Quantization);
    expect(await failureOf(renderOne(wrong, plainRequest))).to.include({ code: "BAD_ARGUMENT" });
  });
});

function correlation(a: Float32Array, b: Float32Array): number {
  const sum = (product: (i: number) => number): number => a.reduce((total, _, i) => total + product(i), 0);
  const at = (samples: Float32Array, i: number): number => samples[i] as number;
  const power = sum((i) => at(a, i) ** 2) * sum((i) => at(b, i) ** 2);
  return sum((i) => at(a, i) * at(b, i)) / Math.sqrt(power);
}
