import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { defaultIdleSeconds, listGpus, readGpus } from "../../src/libtorch/gpus.js";
import { temporaryDirectory } from "../music/tasks.js";

const MEBIBYTE = 2 ** 20;

describe("detection of GPUs", () => {
  const { PATH, CUDA_VISIBLE_DEVICES } = process.env;

  /** Puts a fake nvidia-smi on the PATH. It prints `rows`. */
  function simulateNvidiaSmi(rows: readonly string[], visible?: string): void {
    const directory = temporaryDirectory();
    const tool = join(directory, "nvidia-smi");
    writeFileSync(tool, `#!/bin/sh\nprintf '${rows.join("\\n")}\\n'\n`);
    chmodSync(tool, 0o755);
    process.env.PATH = `${directory}:${PATH}`;
    if (visible === undefined) delete process.env.CUDA_VISIBLE_DEVICES;
    else process.env.CUDA_VISIBLE_DEVICES = visible;
  }

  afterEach(() => {
    process.env.PATH = PATH;
    if (CUDA_VISIBLE_DEVICES === undefined) delete process.env.CUDA_VISIBLE_DEVICES;
    else process.env.CUDA_VISIBLE_DEVICES = CUDA_VISIBLE_DEVICES;
  });

  it("GPUs are numbered as in CUDA, and listed with their current free memory", async () => {
    simulateNvidiaSmi(
      ["0, GPU-aaaa, 900, 24576, Test GPU", "1, GPU-bbbb, 20000, 24576, Test GPU, large"],
      "GPU-b,0",
    );
    const [first, second] = listGpus();
    expect(first).to.deep.equal({
      device: "cuda:0",
      name: "Test GPU, large",
      freeBytes: 20000 * MEBIBYTE,
      totalBytes: 24576 * MEBIBYTE,
    });
    expect(second).to.include({ device: "cuda:1", freeBytes: 900 * MEBIBYTE });
    simulateNvidiaSmi(["0, GPU-aaaa, 400, 24576, Test GPU"]);
    expect(await readGpus()).to.deep.equal([
      { device: "cuda:0", name: "Test GPU", freeBytes: 400 * MEBIBYTE, totalBytes: 24576 * MEBIBYTE },
    ]);
  });

  it("by default, idle models are unloaded after 600 seconds on small GPUs, and never on large ones", () => {
    const card = (gib: number) => ({
      ...{ device: "cuda:0", name: "card", freeBytes: 0 },
      totalBytes: gib * 1024 * MEBIBYTE,
    });
    expect([undefined, card(80), card(24), card(8)].map(defaultIdleSeconds)).to.deep.equal([0, 0, 600, 600]);
  });

  it("no GPUs are listed if nvidia-smi is missing", () => {
    process.env.PATH = temporaryDirectory();
    expect(listGpus()).to.deep.equal([]);
  });
});
