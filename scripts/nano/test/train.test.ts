import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect } from "chai";
import { Engine } from "../../../src/engine/engine.js";
import type { RenderRequest } from "../../../src/engine/types.js";
import { engineOptions } from "../../../test/engine/embedded.js";
import { plainSong } from "../../../test/engine/plain-song.js";
import { testPython } from "./python-tests.js";

const root = fileURLToPath(new URL("../../..", import.meta.url));
const seconds = 10;

const request: RenderRequest = {
  ...plainSong,
  metadata: { bpm: 90, keyScale: "C major", timeSignature: "4", durationSeconds: seconds },
  seeds: [1],
  denoise: { ...plainSong.denoise, inferenceSteps: 8 },
  guidance: { ...plainSong.guidance, guidanceScale: 1 },
};

describe("training carillon-nano", () => {
  it("passes its own tests, which are in Python", function () {
    this.timeout(1_200_000);
    testPython("training");
  });

  it("goes from an empty folder to a checkpoint that the engine renders with", async function () {
    this.timeout(1_200_000);
    const directory = await mkdtemp(join(tmpdir(), "carillon-train-"));
    const [data, work] = [join(directory, "data"), join(directory, "work")];
    const out = join(directory, "checkpoints", "trained");
    const recipe = ["--import", "tsx", join(root, "scripts/nano/train.ts"), "--size", "smoke"];
    recipe.push("--data", data, "--work", work, "--out", out, "--pieces", "7", "--duration", "6");
    recipe.push("--", "--device", "cpu", "--steps", "3");
    const { stdout } = await promisify(execFile)(process.execPath, recipe, { cwd: root });
    for (const stage of ["decoder", "tokenizer", "words", "dit", "guidance", "lm"]) {
      expect(stdout, stage).to.match(new RegExp(`"stage": "${stage}", "kind": "held out", "step": 3, .*\\d`));
    }

    const engine = new Engine(
      {
        ...engineOptions,
        checkpointsDirectory: join(directory, "checkpoints"),
        slotModels: ["trained", null, null],
        languageModel: join(out, "lm"),
      },
      (message) => expect(message).to.not.contain("nothing reads"),
    );
    try {
      const { audio, samplesPerChannel } = await engine.render(request, {});
      expect(samplesPerChannel).to.equal(seconds * 48_000);
      expect(audio[0]?.some((sample) => sample !== 0)).to.equal(true);
      expect(await engine.loadLanguageModel(null)).to.equal("lm");
    } finally {
      await engine.close();
      await rm(directory, { recursive: true });
    }
  });
});
