import { existsSync, mkdirSync, readdirSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { attentionProjections } from "../music/adapter-files.js";
import { temporaryDirectory } from "../music/tasks.js";
import { writeSampleSet } from "../music/training/sample-files.js";
import { longRun, shortRun, Trainer } from "../music/training/trainer.js";
import { endServed, ServedProcess } from "./served-process.js";

describe("training runs of a server process", () => {
  let directory: string;
  let root: string;
  let settings: Record<string, string>;

  beforeEach(() => {
    directory = temporaryDirectory();
    root = realpathSync(temporaryDirectory());
    settings = { SVC_TRAINING_ROOT: root };
    mkdirSync(join(root, "set"));
    writeSampleSet(join(root, "set"), 2);
  });
  afterEach(endServed);

  /** Size in KiB of a run's adapter in float32. */
  function adapterKiB({ lora_rank }: { lora_rank: number }): number {
    return (
      attentionProjections().reduce((sum, shape) => sum + (shape.in + shape.out) * lora_rank * 4, 0) / 1024
    );
  }

  const checkpoints = () => readdirSync(join(root, "out/checkpoints"));

  it("on SIGTERM, a run writes a checkpoint; a new server can resume from this checkpoint @slow", async () => {
    const first = await ServedProcess.start(directory, settings);
    const trainer = new Trainer(first.client, root);
    await trainer.start({ ...longRun, output_dir: "out" });
    await trainer.until((status) => status.current_step >= 2);
    expect(await first.end("SIGTERM")).to.equal(0);
    const [checkpoint, ...others] = checkpoints();
    expect(others).to.deep.equal([]);
    expect(checkpoint).to.match(/^stopped_/);

    const second = await ServedProcess.start(directory, settings);
    const next = new Trainer(second.client, root);
    const { state, interrupted } = await next.status();
    expect(state).to.equal("idle");
    const resume_from = `out/checkpoints/${checkpoint}`;
    expect(interrupted).to.deep.include({ adapter_type: "lora", output_dir: "out", resume_from });
    expect(interrupted?.parameters).to.deep.include(longRun);
    const resume = { ...interrupted?.parameters, lora_output_dir: "next", resume_from };
    expect((await next.start(resume)).status).to.equal(200);
    const { loss_history } = await next.until((status) => status.loss_history.length > 0);
    expect(loss_history[0]?.step).to.be.above(2);
    expect(await second.end("SIGINT")).to.equal(0);
  });

  it("a run that is killed with kill -9 leaves only complete checkpoints @slow", async () => {
    const first = await ServedProcess.start(directory, settings);
    const trainer = new Trainer(first.client, root);
    await trainer.start({ ...longRun, output_dir: "out", save_every_n_epochs: 1 });
    await trainer.until((status) => status.current_epoch >= 5);
    await first.end("SIGKILL");

    const second = await ServedProcess.start(directory, settings);
    const next = new Trainer(second.client, root);
    const { interrupted } = await next.status();
    expect(interrupted?.current_step).to.be.at.least(8);
    expect(interrupted?.resume_from).to.match(/^out\/checkpoints\/epoch_[4-9]/);
    const epochs = checkpoints().filter((name) => name.startsWith("epoch_"));
    expect(epochs).to.have.length.of.at.least(4);
    for (const name of epochs) {
      const resume_from = `out/checkpoints/${name}`;
      expect((await next.start({ ...longRun, output_dir: "next", resume_from })).status, name).to.equal(200);
      await next.stop();
      await next.untilEnded();
    }
    expect(await second.end("SIGTERM")).to.equal(0);
  });

  it("a disk error fails the run; the server keeps running and keeps complete checkpoints @slow", async () => {
    const large = { ...shortRun, output_dir: "large", lora_rank: 256 };
    const server = await ServedProcess.start(directory, settings, { maxFileKiB: adapterKiB(large) / 2 });
    const trainer = new Trainer(server.client, root);
    const small = { ...shortRun, output_dir: "out", lora_rank: 1 };
    await trainer.complete(small);
    expect((await trainer.start(large)).status).to.equal(200);
    const ended = await trainer.untilEnded();
    expect(ended.state).to.equal("failed");
    expect(ended.error).to.match(/cannot be written|File too large/i);
    expect(ended.status).to.equal(`❌ Training failed: ${ended.error}`);
    expect(readdirSync(join(root, "large"))).to.not.include("final");
    expect(readdirSync(join(root, "large/checkpoints"))).to.deep.equal([]);
    expect(existsSync(join(root, "out/final"))).to.equal(true);
    await trainer.complete({ ...small, output_dir: "again" });
    expect((await server.client.get("/health")).body.data.status).to.equal("ok");
    expect(await server.end("SIGTERM")).to.equal(0);
  });
});
