import type { ChildProcess } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { readdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { FakeHub } from "../models/hub-server.js";
import { mainRepository } from "../models/repositories.js";
import { temporaryDirectory } from "../music/tasks.js";
import { canMountDisks, type ProcessLimits, spawnCli } from "./served-process.js";

const WEIGHTS = "model.safetensors";
const WEIGHTS_BYTES = 3_000_000;
/** The test server stops sending after this many bytes. */
const CUT_BYTES = 1_000_000;

describe("carillon models", () => {
  let server: FakeHub;
  let checkpoints: string;

  before(async () => {
    server = await FakeHub.start();
  });

  beforeEach(() => {
    server.reset();
    checkpoints = temporaryDirectory();
  });

  function start(args: readonly string[], limits: ProcessLimits = {}): ChildProcess {
    return spawnCli(args, { SVC_CHECKPOINTS: checkpoints, HF_ENDPOINT: server.url }, limits);
  }

  async function end(child: ChildProcess): Promise<{ code: number | null; stdout: string; stderr: string }> {
    const [stdout, stderr, [code]] = await Promise.all([
      text(child.stdout as NodeJS.ReadableStream),
      text(child.stderr as NodeJS.ReadableStream),
      once(child, "exit") as Promise<[number | null]>,
    ]);
    return { code, stdout, stderr };
  }

  function serveModel(): void {
    const weights = randomBytes(WEIGHTS_BYTES);
    server.repositories["someone/small"] = { "config.json": Buffer.from("{}"), [WEIGHTS]: weights };
  }

  const incomplete = (root = checkpoints) => join(root, ".incomplete", "someone--small", WEIGHTS);

  /** Resolves when the download has reached the point where the test server stops sending. */
  async function hanging(root?: string): Promise<void> {
    while (statSync(incomplete(root), { throwIfNoEntry: false })?.size !== CUT_BYTES) await sleep(20);
  }

  it("pulls the default model, which then makes a song", async () => {
    const repository = mainRepository();
    server.repositories["ACE-Step/Ace-Step1.5"] = repository;
    const before = await end(start(["models", "list"]));
    expect(before.stdout).to.include("acestep-v15-turbo (not installed)").and.include("carillon-nano");
    const pulled = await end(start(["models", "pull", "acestep-v15-turbo"]));
    expect(pulled.code, pulled.stderr).to.equal(0);
    expect(pulled.stdout).to.include(join(checkpoints, "acestep-v15-turbo"));
    const name = join("acestep-v15-turbo", WEIGHTS);
    const megabytes = ((repository[name]?.length ?? 0) / 1e6).toFixed(1);
    expect(pulled.stderr).to.include(`${name} (${megabytes} MB)`);
    expect(pulled.stderr).to.not.include("Warning");

    const out = join(temporaryDirectory(), "song.wav");
    const options = ["--duration", "10", "--steps", "1", "--out", out];
    const { code, stderr } = await end(start(["generate", "a short song", ...options]));
    expect(code, stderr).to.equal(0);
    expect(stderr).to.include("acestep-v15-turbo");
    const again = await end(start(["models", "pull", "acestep-v15-turbo"]));
    expect(again.code).to.equal(0);
    expect(again.stderr).to.include("already");
  });

  it("an interrupted download can be resumed after Ctrl-C @slow", async () => {
    serveModel();
    server.cuts[WEIGHTS] = { afterBytes: CUT_BYTES, hangs: true };
    const child = start(["models", "pull", "someone/small"]);
    hanging().then(() => child.kill("SIGINT"));
    const { code, stderr } = await end(child);
    expect(code, stderr).to.equal(130);
    expect(stderr).to.include("run the same command again to resume");
    expect(readdirSync(checkpoints)).to.deep.equal([".incomplete"]);

    delete server.cuts[WEIGHTS];
    server.downloads.length = 0;
    expect(await end(start(["models", "pull", "someone/small"]))).to.include({ code: 0 });
    expect(server.downloads).to.deep.equal([{ path: WEIGHTS, fromByte: CUT_BYTES }]);
  });

  it("reports errors without a stack trace", async () => {
    const { code, stderr } = await end(start(["models", "pull", "acestep"]));
    expect(code).to.equal(1);
    expect(stderr).to.include("no public model acestep").and.include("acestep-v15-turbo");
    expect(stderr).to.not.include("    at ");
  });

  describe("downloads to a small disk", () => {
    before(function () {
      // Skipped without permission to mount a disk, because only a real disk fills up realistically.
      if (!canMountDisks()) this.skip();
    });

    it("does not start a download that does not fit", async () => {
      serveModel();
      const disk = { directory: checkpoints, sizeKiB: 2048 };
      const { code, stderr } = await end(start(["models", "pull", "someone/small"], { disk }));
      expect(code).to.equal(1);
      expect(stderr).to.include("The download needs 3.0 MB").and.include("SVC_CHECKPOINTS");
      expect(server.downloads).to.deep.equal([]);
    });

    it("reports a disk that fills up during a download", async () => {
      serveModel();
      server.cuts[WEIGHTS] = { afterBytes: CUT_BYTES, hangs: true };
      const child = start(["models", "pull", "someone/small"], {
        disk: { directory: checkpoints, sizeKiB: 4096 },
      });
      const seen = `/proc/${child.pid}/root${checkpoints}`;
      await hanging(seen);
      writeFileSync(join(seen, "other"), Buffer.alloc(2_800_000));
      server.resume();
      const { code, stderr } = await end(child);
      expect(code).to.equal(1);
      expect(stderr).to.include("The disk is full at").and.include("to resume");
    });
  });
});
