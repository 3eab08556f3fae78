import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { Checkpoints, EMBEDDED_MODEL } from "../../src/engine/checkpoints.js";
import { Engine } from "../../src/engine/engine.js";
import { attentionProjections } from "../music/adapter-files.js";
import { temporaryDirectory } from "../music/tasks.js";
import { sampleTensors, writeSample } from "../music/training/sample-files.js";
import { engineOptions, trainingRequest } from "./embedded.js";

const python = process.env.CARILLON_PEER_PYTHON ?? "python3";
const program = fileURLToPath(new URL("peft_check.py", import.meta.url));

describe("use of a trained LoRA in PEFT", function () {
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
    const { status, stdout, stderr } = spawnSync(python, [program, model, join(path, "adapter")], {
      encoding: "utf8",
    });
    expect(status, stderr).to.equal(0);
    const { modules, warnings, largestChange, largestDifference } = JSON.parse(stdout);
    expect(modules).to.equal(attentionProjections().length);
    expect(warnings).to.deep.equal([]);
    expect(largestChange).to.be.above(1e-4);
    expect(largestDifference).to.be.below(1e-6);
  });
});
