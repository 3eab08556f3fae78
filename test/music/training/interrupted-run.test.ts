import { mkdirSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { PermittedRoot } from "../../../src/music/storage/permitted-root.js";
import { RunRecord } from "../../../src/music/training/interrupted-run.js";
import { temporaryDirectory } from "../tasks.js";

describe("record of the training run in progress", () => {
  const root = temporaryDirectory();
  const damages: Error[] = [];
  const record = new RunRecord(new PermittedRoot(root), (error) => damages.push(error));
  const request = { adapter_type: "lora", output_dir: "reels", parameters: { train_epochs: 9 } } as const;

  function writeRun(epoch: number, step: number, date = new Date(Date.now() + 1000)): void {
    const checkpoint = join(root, `reels/checkpoints/epoch_${epoch}_loss_0.1000`);
    const log = join(root, "reels/logs/metrics.jsonl");
    mkdirSync(checkpoint, { recursive: true });
    mkdirSync(join(log, ".."), { recursive: true });
    writeFileSync(log, `{"epoch": 1, "step": 1}\n{"epoch": 2, "step": ${step}}\n{"epoch": 2, "st`);
    for (const path of [checkpoint, log]) utimesSync(path, date, date);
  }

  afterEach(() => record.remove());

  it("knows no interrupted run without a record", async () => {
    expect(await record.interrupted()).to.equal(null);
  });

  it("reports and removes a damaged record once, instead of failing for ever", async () => {
    for (const text of ['{"adapter_type": "lo', '{"adapter_type": "lora"}']) {
      writeFileSync(join(root, ".run-in-progress.json"), text);
      expect(await record.interrupted()).to.equal(null);
      expect(await record.interrupted()).to.equal(null);
    }
    expect(damages).to.have.length(2);
  });

  it("resumes from no checkpoint of an earlier run with the same name", async () => {
    writeRun(8, 80, new Date(Date.now() - 60_000));
    await record.write(request);
    expect(await record.interrupted()).to.deep.equal({ ...request, current_step: 0, resume_from: null });
    writeRun(2, 20);
    expect(await record.interrupted()).to.include({
      current_step: 20,
      resume_from: "reels/checkpoints/epoch_2_loss_0.1000",
    });
  });

  it("resumes from the checkpoint of the request if the run saved none itself", async () => {
    writeRun(2, 20, new Date(Date.now() - 60_000));
    const resume_from = "other/checkpoints/epoch_1";
    const parameters = { ...request.parameters, resume_from };
    await record.write({ ...request, output_dir: "waltzes", parameters });
    expect(await record.interrupted()).to.deep.include({ parameters: request.parameters, resume_from });
  });
});
