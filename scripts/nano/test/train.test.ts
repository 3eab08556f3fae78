import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect } from "chai";
import { Engine } from "../../../src/engine/engine.js";
import type { RenderRequest } from "../../../src/engine/types.js";
import { engineOptions } from "../../../test/engine/embedded.js";
import { plainRequest, renderOne, withSong } from "../../../test/engine/plain-song.js";
import { testPython } from "../python.js";
import { readStatus } from "../supervisor.js";

const root = fileURLToPath(new URL("../../..", import.meta.url));
const seconds = 10;

const request: RenderRequest = {
  ...withSong(plainRequest, {
    metadata: { bpm: 90, keyScale: "C major", timeSignature: "4", durationSeconds: seconds },
    seed: 1,
  }),
  denoise: { ...plainRequest.denoise, inferenceSteps: 8 },
  guidance: { ...plainRequest.guidance, guidanceScale: 1 },
};

describe("the training recipe of carillon-nano", () => {
  let directory: string;
  let cache: string;

  before(async () => {
    directory = await mkdtemp(join(tmpdir(), "carillon-train-"));
    cache = join(directory, "cache");
  });

  after(() => rm(directory, { recursive: true }));

  const command = (...more: string[]): string[] => {
    const script = join(root, "scripts/nano/train.ts");
    return ["--import", "tsx", script, "--cache", cache, ...more];
  };
  const smoke = "--smoke --shards 1 --code-shards 1 --evaluate-hours 0".split(" ");
  const run = promisify(execFile);

  it("passes the Python tests of scripts/nano/training", function () {
    this.timeout(1_200_000);
    testPython("training");
  });

  it("refuses a second run while the first is active, and stops the first on --stop", async function () {
    this.timeout(1_200_000);
    const training = spawn(process.execPath, command(...smoke), { stdio: "ignore" });
    const ended = once(training, "exit");
    while ((readStatus(cache)?.step ?? 0) < 2) await delay(50);
    const refusal = await run(process.execPath, command(...smoke)).catch((error: Error) => error);
    expect(String(refusal)).to.contain(`process ${training.pid}`);
    const { stdout } = await run(process.execPath, command("--stop"));
    // The recipe may pass from stage `render` to `pack.py` while the second command starts.
    expect(stdout).to.match(/stopped: (render|pack\.py)/);
    expect((await ended)[0]).to.equal(0);
    expect(readStatus(cache)?.state).to.equal("stopped");
  });

  it("rejects a cache if the data set in the cache was made with other options", async function () {
    this.timeout(1_200_000);
    const refusal = await run(process.execPath, command()).catch((error: Error) => error);
    expect(String(refusal)).to.contain("delete the folder to start again");
  });

  it("resumes, and ends with a checkpoint that the engine can load", async function () {
    this.timeout(1_200_000);
    const rendered = join(cache, "shard-0000", "piece-000000", "mix.wav");
    const before = statSync(rendered).mtimeMs;
    const training = spawn(process.execPath, command(...smoke), { stdio: ["ignore", "pipe", "inherit"] });
    const ended = once(training, "exit");
    training.stdout.resume();
    while (readStatus(cache)?.stage !== "pack.py") await delay(10);
    expect(statSync(rendered).mtimeMs).to.equal(before);
    expect((await ended)[0]).to.equal(0);
    expect(readStatus(cache)?.state).to.equal("finished");
    expect(readdirSync(join(cache, "data")).sort()).to.deep.equal([
      "shard-0000.pt",
      "shard-0001.pt",
      "training.json",
    ]);
    for (const stage of ["decoder", "dit", "guidance", "lm"]) {
      const lines = readFileSync(join(cache, "work", `${stage}.log`), "utf8");
      expect(lines, stage).to.match(
        new RegExp(`"stage": "${stage}", "kind": "held out", "step": 1, .*"loss": \\d`),
      );
    }
    await expectToRender(join(cache, "checkpoint"));
  });

  async function expectToRender(checkpoint: string): Promise<void> {
    const engine = new Engine(
      {
        ...engineOptions,
        checkpointsDirectory: cache,
        slotModels: ["checkpoint", null, null],
        languageModel: join(checkpoint, "lm"),
      },
      (message) => expect(message).to.not.contain("unused tensors"),
    );
    try {
      const { audio, samplesPerChannel } = await renderOne(engine, request);
      expect(samplesPerChannel).to.equal(seconds * 48_000);
      expect(audio.some((sample) => sample !== 0)).to.equal(true);
      expect(await engine.loader.loadLanguageModel(null)).to.equal("lm");
    } finally {
      await engine.close();
    }
  }
});
