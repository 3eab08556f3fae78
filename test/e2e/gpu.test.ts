/** Tests of the service on simulated CUDA devices (native/test/fake_cuda). */
import { once } from "node:events";
import { chmodSync, existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { shortSong } from "../music/live-server.js";
import { temporaryDirectory } from "../music/tasks.js";
import { endServed, ServedProcess, spawnCli } from "./served-process.js";

const library = fileURLToPath(new URL("../../build/native/test/fake_cuda/libtorch_cuda.so", import.meta.url));
const gpu = { LD_PRELOAD: library, SVC_DEVICE: "auto" };

describe("songs on a machine with GPUs", () => {
  const directory = temporaryDirectory();
  const song = join(directory, "song.wav");
  const report = join(directory, "report.txt");

  before(function () {
    // The fake CUDA library is not built for a libtorch with CUDA support, which cannot load a second CUDA library.
    if (!existsSync(library)) this.skip();
  });
  afterEach(endServed);

  async function generate(settings: Record<string, string>, ...args: string[]) {
    const child = spawnCli(
      ["generate", "slow waltz", "--duration", "10", "--steps", "2", "--out", song, ...args],
      {
        ...gpu,
        ...{ SVC_HOME: directory, FAKE_CUDA_REPORT: report },
        ...settings,
      },
    );
    const [stderr, [code]] = await Promise.all([
      text(child.stderr as NodeJS.ReadableStream),
      once(child, "exit"),
    ]);
    // Ignore Node's warning: a thread's stack has no room for the thread-local variables of the preloaded libtorch.
    const lines = stderr.split("\n").filter((line) => !line.includes("pthread_create"));
    return {
      code,
      stderr: lines.join("\n").trim(),
      report: existsSync(report) ? readFileSync(report, "utf8") : "",
    };
  }

  /** Settings of a machine with two GPUs; the second has more free memory. */
  function machineOfTwo(): Record<string, string> {
    const tool = join(directory, "nvidia-smi");
    const rows = ["0, GPU-aaaa, 900, 24576, Test GPU", "1, GPU-bbbb, 20000, 24576, Test GPU"];
    writeFileSync(tool, `#!/bin/sh\nprintf '${rows.join("\\n")}\\n'\n`);
    chmodSync(tool, 0o755);
    return { FAKE_CUDA_DEVICES: "2", PATH: `${directory}:${process.env.PATH}` };
  }

  it("computes on its own CUDA streams, and disables cuDNN's attention @slow", async () => {
    const { code, report } = await generate({}, "--thinking");
    expect(code).to.equal(0);
    expect(statSync(song).size).to.be.above(10 * 48_000 * 2);
    expect(report).to.match(/^\d{4,} launches, 0 on the shared stream/);
    expect(report).to.contain("flash_attention").and.not.contain("execution plan built");
  });

  it("SVC_USE_FLASH_ATTENTION=false disables flash attention @slow", async () => {
    const { code, report } = await generate({ SVC_USE_FLASH_ATTENTION: "false" });
    expect(code).to.equal(0);
    expect(report).to.contain("efficient_attention").and.not.contain("flash_attention");
  });

  it("uses only the GPU with the most free memory", async () => {
    const { code, report } = await generate({ ...machineOfTwo(), SVC_INIT_LLM: "false" });
    expect(code).to.equal(0);
    expect(report).to.match(/device 0: at most 0\.0 MB\ndevice 1: at most [1-9]/);
  });

  it("puts language model and renderer on separate GPUs if there are two", async () => {
    const { report } = await generate(machineOfTwo(), "--thinking");
    expect(report).to.match(/device 0: at most [1-9].*\ndevice 1: at most [1-9]/);
  });

  it("selects and numbers the GPUs as in CUDA_VISIBLE_DEVICES @slow", async () => {
    const { report } = await generate({
      ...machineOfTwo(),
      SVC_INIT_LLM: "false",
      CUDA_VISIBLE_DEVICES: "GPU-bbbb,0",
    });
    expect(report).to.match(/device 0: at most [1-9].*\ndevice 1: at most 0\.0/);
  });

  it("warns if libtorch does not detect the GPU, and makes the song on the CPU", async () => {
    const { code, stderr } = await generate({ ...machineOfTwo(), LD_PRELOAD: "", SVC_INIT_LLM: "false" });
    expect(stderr).to.match(/^THE GPU IS NOT USED: libtorch \S+ does not detect Test GPU/);
    expect(code).to.equal(0);
  });

  it("retries once after running out of memory @slow", async () => {
    const { code, stderr } = await generate({ FAKE_CUDA_OOM_AT: "1500" });
    expect(stderr).to.match(/not enough memory.*Tried to allocate.*cuda:0 has .* GB free.*retrying/);
    expect(code).to.equal(0);
  });

  it("reports a missing GPU in one line", async () => {
    const { code, stderr } = await generate({ SVC_DEVICE: "cuda:7" });
    expect(code).to.equal(1);
    expect(stderr.split("\n").at(-1)).to.match(/cuda:7.*the number of GPUs is 1/);
  });

  it("renders the songs of each slot on the slot's GPU @slow", async () => {
    const nano = fileURLToPath(new URL("../../models/carillon-nano", import.meta.url));
    const server = await ServedProcess.start(directory, {
      ...{ ...gpu, FAKE_CUDA_REPORT: report, FAKE_CUDA_DEVICES: "2", SVC_DEVICE: "cuda:0,cuda:1" },
      ...{ SVC_CONFIG_PATH2: nano, SVC_QUEUE_WORKERS: "2", SVC_INIT_LLM: "false" },
    });
    const models = [undefined, nano];
    await Promise.all(models.map((model) => server.client.make({ ...shortSong, model })));
    expect(await server.end("SIGTERM")).to.equal(0);
    expect(readFileSync(report, "utf8")).to.match(
      /0 on the shared stream.*\ndevice 0: at most [1-9].*\ndevice 1: at most [1-9]/,
    );
  });

  it("exits when the GPU is lost, and makes the song after a restart @slow", async () => {
    const settings = { ...gpu, SVC_DEVICE: "cuda" };
    const broken = await ServedProcess.start(directory, { ...settings, FAKE_CUDA_FAULT_AT: "1200" });
    const id = await broken.client.submit({ ...shortSong, inference_steps: 4 });
    expect(await broken.ended()).to.equal(1);
    expect(broken.log).to.contain("the GPU failed, so the server stops");
    const mended = await ServedProcess.start(directory, settings);
    expect((await mended.client.finished(id)).item.status).to.equal(1);
    await mended.end("SIGTERM");
  });
});
