import { spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { Checkpoints, EMBEDDED_MODEL } from "../../src/engine/checkpoints.js";
import { Engine } from "../../src/engine/engine.js";
import { attentionProjections } from "../music/adapter-files.js";
import { temporaryDirectory } from "../music/tasks.js";
import { sampleTensors, writeSample } from "../music/training/sample-files.js";
import { engineOptions, trainingRequest } from "./embedded.js";
import { renderOne, requestOf } from "./plain-song.js";

const python = process.env.CARILLON_PEER_PYTHON ?? "python3";

/** Runs a Python program of this folder and returns its output. */
function run(program: string, args: string[]): string {
  const path = fileURLToPath(new URL(program, import.meta.url));
  const { status, stdout, stderr } = spawnSync(python, [path, ...args], { encoding: "utf8" });
  expect(status, stderr).to.equal(0);
  return stdout;
}

describe("exchange of adapters with PEFT", function () {
  this.timeout(300_000); // a cold import of torch and peft takes long
  const directory = temporaryDirectory();

  before(function () {
    // Skip without peft, because installing it for one test would take minutes.
    if (spawnSync(python, ["-c", "import peft, safetensors"]).status !== 0) this.skip();
  });

  it("PEFT loads a trained LoRA without a warning, and the LoRA changes the weights by alpha / rank * B * A", async () => {
    const sample = join(directory, "sample.pt");
    writeSample(sample, sampleTensors(1));
    const engine = new Engine(engineOptions, () => {});
    const request = trainingRequest([sample], join(directory, "run"));
    const { path } = await engine.trainer.train(request, {
      signal: new AbortController().signal,
      onEvent: () => {},
    });
    await engine.close();

    const { path: model } = new Checkpoints("absent").renderer(EMBEDDED_MODEL).model;
    const output = run("peft_check.py", [model, join(path, "adapter")]);
    const { modules, warnings, largestChange, largestDifference } = JSON.parse(output);
    expect(modules).to.equal(attentionProjections().length);
    expect(warnings).to.deep.equal([]);
    expect(largestChange).to.be.above(1e-4);
    expect(largestDifference).to.be.below(1e-6);
  });

  it("an adapter of PEFT makes the same song as its tensors with the scales that PEFT uses", async () => {
    const { path: model } = new Checkpoints("absent").renderer(EMBEDDED_MODEL).model;
    const folder = join(directory, "cases");
    run("peft_adapters.py", [model, folder]);
    const engine = new Engine(engineOptions, () => {});
    const song = async (path: string) => {
      const adapter = { name: "peft", path, digest: path, scale: 1, doraEpsilon: "float32" as const };
      const { latents, warnings } = await renderOne(
        engine,
        { ...requestOf(0.4), adapters: [adapter] },
        { signal: new AbortController().signal, onProgress: () => {} },
      );
      expect(warnings).to.deep.equal([]);
      return latents.values;
    };
    for (const name of readdirSync(folder)) {
      const made = await song(join(folder, name, "peft"));
      expect(made, name).to.deep.equal(await song(join(folder, name, "reference.safetensors")));
    }
    await engine.close();
  });
});
