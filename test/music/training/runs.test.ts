import { cpSync, existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { parseLoraTraining } from "../../../src/music/request/training-bodies.js";
import type { TrainingStatus } from "../../../src/music/training/status.js";
import { oneSecondSong } from "../live-server.js";
import { type SampleTensor, sampleTensors, writeSafetensorsSample, writeSample } from "./sample-files.js";
import {
  type Kind,
  longRun,
  shortRun,
  startTrainingServer,
  type Trainer,
  type TrainingServer,
} from "./trainer.js";

/** The fastest LoKr configuration. */
const shortLokr = { ...shortRun, lokr_linear_dim: 4, lokr_linear_alpha: 8, lokr_factor: 4 };

/** A request that makes the same song every time. */
const sameSong = { ...oneSecondSong, audio_format: "wav", seed: 7, use_random_seed: false };

describe("training runs", () => {
  let server: TrainingServer;
  let trainer: Trainer;

  before(async () => {
    server = await startTrainingServer();
    trainer = server.trainer;
  });

  after(() => server.close());

  /** Trains to the end and returns the weights. */
  async function trained(name: string, change: object = {}, kind: Kind = "start"): Promise<Buffer> {
    const base = kind === "start" ? shortRun : shortLokr;
    await trainer.complete({ ...base, output_dir: name, ...change }, kind);
    return trainer.weights(name);
  }

  let plainRun: Promise<unknown> | undefined;

  /** Makes the run `plain` once. Returns the path of its checkpoint of an epoch. */
  async function plainCheckpoint(epoch: number): Promise<string> {
    plainRun ??= trained("plain");
    await plainRun;
    const name = trainer.checkpoints("plain").find((each) => each.startsWith(`epoch_${epoch}_`));
    return `plain/checkpoints/${name}`;
  }

  async function song(parameters: object = {}): Promise<Buffer> {
    return server.client.download(await server.client.makeOne({ ...sameSong, ...parameters }));
  }

  describe("training runs without interruption", () => {
    it("a run trains a LoRA, with the expected answer, files and status", async () => {
      const { status, body } = await trainer.start({
        ...shortRun,
        train_epochs: 5,
        lora_output_dir: "lora",
        use_fp8: true,
        epochs: 5000,
      });
      expect(status).to.equal(200);
      const config = { lora_rank: 4, lora_alpha: 8, learning_rate: 0.01, epochs: 5 };
      const { run_id, ...answer } = body.data;
      expect(answer).to.deep.equal({
        message: "Training started",
        tensor_dir: "set",
        output_dir: "lora",
        config,
        fp8_enabled: true,
        warnings: [
          'unknown fields were ignored: "epochs" (did you mean train_epochs?)',
          "use_fp8 was ignored: frozen weights keep the precision of the model",
        ],
      });
      const ended = await trainer.untilEnded();
      expect(ended).to.deep.include({
        state: "completed",
        is_training: false,
        should_stop: false,
        config,
        tensor_dir: "set",
        tensorboard_logdir: trainer.path("lora/logs"),
        current_step: 10,
        total_steps: 10,
        current_epoch: 5,
        total_epochs: 5,
        estimated_time_remaining: 0,
        error: null,
        run_id,
        adapter_type: "lora",
        output_path: trainer.path("lora/final"),
        status: `✅ Training complete! LoRA saved to ${trainer.path("lora/final")}`,
      });
      expectFinishedNumbers(ended);
      expect(ended.training_log).to.match(/ℹ️ unknown fields were ignored: "epochs"/);
      expect(ended.training_log).to.match(/ℹ️ use_fp8 was ignored: frozen weights/);
      expect(ended.training_log).to.match(/✅ Epoch 5\/5 in \d+\.\ds, Loss: \d+\.\d{4}/);
      expect(trainer.checkpoints("lora").map((name) => name.replace(/_loss_\d+\.\d{4}$/, ""))).to.deep.equal([
        "epoch_2",
        "epoch_4",
      ]);
      for (const file of ["adapter_config.json", "adapter_model.safetensors"]) {
        expect(existsSync(trainer.path("lora/final/adapter", file))).to.equal(true);
      }
    });

    it("a run trains a LoKr, with the expected answer, files and status", async () => {
      const { status, body } = await trainer.start({ ...shortLokr, output_dir: "lokr" }, "start_lokr");
      expect(status).to.equal(200);
      const config = {
        adapter_type: "lokr",
        lokr_linear_dim: 4,
        lokr_linear_alpha: 8,
        lokr_factor: 4,
        lokr_decompose_both: false,
        lokr_use_tucker: false,
        lokr_use_scalar: false,
        lokr_weight_decompose: true,
        learning_rate: 0.01,
        epochs: 4,
      };
      const { run_id, ...answer } = body.data;
      expect(answer).to.deep.equal({
        message: "LoKR training started",
        tensor_dir: "set",
        output_dir: "lokr",
        config,
        warnings: ['unknown fields were ignored: "lora_rank", "lora_alpha"'],
      });
      const ended = await trainer.untilEnded();
      expect(ended).to.deep.include({
        state: "completed",
        adapter_type: "lokr",
        run_id,
        config,
        status: `✅ Training complete! LoKr saved to ${trainer.path("lokr/final")}`,
      });
      expectFinishedNumbers(ended);
      expect(existsSync(trainer.path("lokr/final/lokr_weights.safetensors"))).to.equal(true);
      const info = JSON.parse(readFileSync(trainer.path("lokr/final/training_info.json"), "utf8"));
      expect(info).to.include({ tensor_dir: "set", num_samples: 2 });
      expect(info.training_config).to.include({ epochs: 4, learning_rate: 0.01 });
    });

    it("a run logs its progress in order, and records the loss of every step", async () => {
      const { training_log, loss_history, current_loss } = await trainer.complete({
        ...shortRun,
        output_dir: "told",
        train_epochs: 2,
        gradient_checkpointing: true,
      });
      expect(loss_history.map(({ step }) => step)).to.deep.equal([1, 2, 3, 4]);
      expect(loss_history.at(-1)?.loss).to.equal(current_loss);
      const lines = training_log.split("\n");
      const patterns = [
        /^Starting\.\.\.$/,
        /^ℹ️ .*songs can be made meanwhile/,
        /^📂 Loaded 2 preprocessed samples$/,
        /^🧠 Gradient checkpointing enabled for decoder$/,
        /^🚀 Starting training \(device: cpu, precision: (32-true|bf16-mixed)\)\.\.\.$/,
        /^🎯 Training [\d,]+ parameters$/,
        /^✅ Epoch 1\/2 in /,
        /^✅ Epoch 2\/2 in /,
        /^💾 Checkpoint saved at epoch 2$/,
        /^✅ Training complete! LoRA saved to /,
      ];
      expect(lines, lines.join("\n")).to.have.length(patterns.length);
      for (const [index, pattern] of patterns.entries()) expect(lines[index]).to.match(pattern);
    });

    it("safetensors and .pt samples make the same adapter @slow", async () => {
      for (const seed of [1, 2]) {
        writeSafetensorsSample(trainer.path(`same/sample${seed}.safetensors`), sampleTensors(seed));
      }
      const ofPickles = await trained("of-pickles");
      expect((await trained("of-safetensors", { tensor_dir: "same" })).equals(ofPickles)).to.equal(true);
    });

    it("a run trains on the padding of conditions unless trim_condition removes it @slow", async () => {
      for (const seed of [1, 2]) {
        const tensors = sampleTensors(seed);
        const states = tensors.encoder_hidden_states as SampleTensor;
        const mask = tensors.encoder_attention_mask as SampleTensor;
        const width = states.shape[1] as number;
        writeSample(trainer.path(`padded/sample${seed}.pt`), {
          ...tensors,
          encoder_attention_mask: { ...mask, values: mask.values.map((real, i) => (i < 4 ? real : 0)) },
        });
        writeSample(trainer.path(`cut/sample${seed}.pt`), {
          ...tensors,
          encoder_hidden_states: { shape: [4, width], values: states.values.slice(0, 4 * width) },
          encoder_attention_mask: { shape: [4], values: mask.values.slice(0, 4) },
        });
      }
      const cut = await trained("cut-run", { tensor_dir: "cut" });
      const padded = await trained("padded-run", { tensor_dir: "padded" });
      const trimmed = await trained("trimmed-run", { tensor_dir: "padded", trim_condition: true });
      expect(padded.equals(cut)).to.equal(false);
      expect(trimmed.equals(cut)).to.equal(true);
    });
  });

  describe("training runs with changed parameters", () => {
    const cases: [kind: Kind, change: object][] = [
      ["start", { lora_rank: 8 }],
      ["start", { lora_alpha: 16 }],
      ["start", { lora_dropout: 0.5 }],
      ["start", { learning_rate: 0.02 }],
      ["start", { train_epochs: 3 }],
      ["start", { train_batch_size: 2 }],
      ["start", { gradient_accumulation: 2 }],
      ["start", { training_shift: 1 }],
      ["start", { training_seed: 43 }],
      ["start", { timestep_sampling: "logit_normal" }],
      ["start", { cfg_ratio: 0.9 }],
      ["start_lokr", { lokr_linear_dim: 2 }],
      ["start_lokr", { lokr_linear_alpha: 16 }],
      ["start_lokr", { lokr_factor: 2 }],
      ["start_lokr", { lokr_decompose_both: true, lokr_linear_dim: 1 }],
      ["start_lokr", { lokr_use_scalar: true }],
      ["start_lokr", { lokr_weight_decompose: false }],
      ["start_lokr", { learning_rate: 0.02 }],
      ["start_lokr", { training_seed: 43 }],
    ];
    const base = new Map<Kind, Buffer>();

    before(async () => {
      for (const kind of ["start", "start_lokr"] as const)
        base.set(kind, await trained(`base-${kind}`, {}, kind));
    });

    for (const [kind, change] of cases) {
      it(`${kind} makes a different adapter with ${JSON.stringify(change)} @slow`, async () => {
        const weights = await trained(`changed-${JSON.stringify(change).replace(/\W/g, "")}`, change, kind);
        expect(weights.equals(base.get(kind) as Buffer)).to.equal(false);
      });
    }

    for (const kind of ["start", "start_lokr"] as const) {
      it(`${kind} makes the same adapter with gradient checkpointing and more checkpoints @slow`, async () => {
        const change = { gradient_checkpointing: true, save_every_n_epochs: 1 };
        const weights = await trained(`same-${kind}`, change, kind);
        expect(weights.equals(base.get(kind) as Buffer)).to.equal(true);
        expect(trainer.checkpoints(`same-${kind}`)).to.have.length(4);
      });
    }
  });

  describe("stopped and resumed training runs", () => {
    it("a stopped run ends within a step and leaves a checkpoint; another run can start", async () => {
      await trainer.start({ ...longRun, output_dir: "stopped" });
      await trainer.until((status) => status.current_step >= 3);
      expect(await trainer.stop()).to.equal("Stopping training...");
      const { current_step: before } = await trainer.status();
      const ended = await trainer.untilEnded();
      expect(ended).to.include({ state: "stopped", status: "⏹️ Training stopped by user", error: null });
      expect(ended.current_step - before).to.be.at.most(1);
      expect(ended.loss_history).to.not.deep.equal([]);
      expect(existsSync(trainer.path("stopped/final"))).to.equal(false);
      const [checkpoint, ...others] = trainer.checkpoints("stopped");
      expect(others).to.deep.equal([]);
      expect(checkpoint).to.match(/^stopped_epoch_\d+_step_\d+$/);
      expect(ended.output_path).to.equal(trainer.path("stopped/checkpoints", checkpoint as string));
      expect(await trainer.stop()).to.equal("No training in progress");
      expect((await trainer.status()).status).to.equal("⏹️ Training stopped by user");
      await trainer.complete({ ...shortRun, train_epochs: 1, output_dir: "after-stop" });
    });

    it("a run that is stopped during its initial checks makes no step", async () => {
      const { training } = server.service.local;
      const starting = training.startLora(parseLoraTraining({ ...longRun, output_dir: "at-once" }));
      expect(training.stop()).to.deep.equal({ message: "Stopping training..." });
      const { run_id } = await starting;
      expect(await trainer.untilEnded()).to.include({
        run_id,
        state: "stopped",
        current_step: 0,
        error: null,
      });
      expect(existsSync(trainer.path("at-once/final"))).to.equal(false);
    });

    it("if a run fails its checks after a stop request, the request does not stop the next run @slow", async () => {
      const { training } = server.service.local;
      const starting = training.startLora(parseLoraTraining({ ...shortRun, tensor_dir: "absent" }));
      training.stop();
      expect(await starting.catch((error: unknown) => error)).to.have.property("status", 400);
      expect(training.stop()).to.deep.equal({ message: "No training in progress" });
      await trainer.complete({ ...shortRun, output_dir: "after-refusal" });
    });

    for (const kind of ["start", "start_lokr"] as const) {
      it(`${kind}: a run that was stopped and resumed makes the same bits as an uninterrupted one @slow`, async () => {
        const plan = { ...shortLokr, lora_dropout: 0.1, gradient_accumulation: 2, train_epochs: 20 };
        const whole = await trained(`whole-${kind}`, plan, kind);
        await trainer.start({ ...plan, output_dir: `halted-${kind}` }, kind);
        await trainer.until(({ current_step, is_training }) => current_step >= 3 || !is_training);
        await trainer.stop();
        const { state, output_path, current_step } = await trainer.untilEnded();
        expect(state).to.equal("stopped");
        await trainer.complete({ ...plan, output_dir: `resumed-${kind}`, resume_from: output_path }, kind);
        const resumed = await trainer.status();
        expect(resumed.loss_history[0]?.step).to.equal(current_step + 1);
        expect(trainer.weights(`resumed-${kind}`).equals(whole)).to.equal(true);
      });
    }

    it("a run resumes from the checkpoint of an epoch", async () => {
      const plan = { ...shortRun, train_epochs: 2, save_every_n_epochs: 1 };
      const whole = await trained("whole-epochs", plan);
      const checkpoint = trainer.checkpoints("whole-epochs").find((name) => name.startsWith("epoch_1_"));
      const resumed = await trained("resumed-epochs", {
        ...plan,
        resume_from: `whole-epochs/checkpoints/${checkpoint}`,
      });
      expect((await trainer.status()).training_log).to.match(
        /✅ Resumed from epoch 1, step 2, optimizer ✓, scheduler ✓/,
      );
      expect(resumed.equals(whole)).to.equal(true);
    });

    it("without training state, a run resumes at the epoch in the folder name and logs what is missing", async () => {
      const from = trainer.path(await plainCheckpoint(2));
      cpSync(join(from, "adapter"), trainer.path("epoch_2_elsewhere"), { recursive: true });
      const { loss_history, training_log } = await trainer.complete({
        ...shortRun,
        output_dir: "from-alone",
        resume_from: "epoch_2_elsewhere",
      });
      expect(loss_history[0]?.step).to.equal(5);
      expect(training_log).to.match(/ℹ️ .*epoch_2_elsewhere contains an adapter without a training state/);
      expect(training_log).to.match(/✅ Resumed from epoch 2, step 4, scheduler ✓/);
      const answer = await trainer.start({ ...shortRun, lora_rank: 8, resume_from: "epoch_2_elsewhere" });
      expect(answer.status).to.equal(400);
      expect(answer.body.detail).to.include("rank, factor");
    });

    it("a run can resume with another dropout @slow", async () => {
      await trained("dropout", { lora_dropout: 0.1 });
      const checkpoint = trainer.checkpoints("dropout").find((name) => name.startsWith("epoch_2_"));
      const resume_from = `dropout/checkpoints/${checkpoint}`;
      await trained("more-dropout", { lora_dropout: 0.3, resume_from });
      expect((await trainer.status()).loss_history[0]?.step).to.equal(5);
    });

    it("resuming is rejected if the checkpoint already has all requested epochs", async () => {
      const resume_from = await plainCheckpoint(4);
      const answer = await trainer.start({ ...shortRun, output_dir: "no-epochs", resume_from });
      expect(answer.status).to.equal(400);
      expect(answer.body.detail).to.include("4 finished epochs").and.include("train_epochs is 4");
      expect(existsSync(trainer.path("no-epochs/final"))).to.equal(false);
    });

    it("resuming is rejected if the checkpoint's adapter has another rank or kind", async () => {
      const resume_from = await plainCheckpoint(2);
      for (const [change, kind] of [
        [{ lora_rank: 8 }, "start"],
        [{}, "start_lokr"],
      ] as const) {
        const answer = await trainer.start(
          { ...shortLokr, ...change, output_dir: "misfit", resume_from },
          kind,
        );
        expect(answer.status).to.equal(400);
        expect(answer.body.detail).to.be.a("string").and.not.equal("Internal server error");
        expect((await trainer.status()).is_training).to.equal(false);
      }
      const empty = await trainer.start({ ...shortRun, resume_from: "set" });
      expect(empty.status).to.equal(400);
    });
  });

  describe("training starts during another run", () => {
    it("while a run is in progress, a second start of either kind is rejected", async () => {
      await trainer.start({ ...longRun, output_dir: "one" }, "start_lokr");
      for (const kind of ["start", "start_lokr"] as const) {
        const second = await trainer.start({ ...shortRun, output_dir: "two" }, kind);
        expect(second.status).to.equal(400);
        expect(second.body).to.deep.equal({
          detail: "Training already in progress",
          error: "Training already in progress",
        });
      }
      expect((await trainer.status()).adapter_type).to.equal("lokr");
      await trainer.stop();
      await trainer.untilEnded();
      expect(existsSync(trainer.path("two"))).to.equal(false);
    });

    it("of several simultaneous training starts, exactly one is accepted", async () => {
      const starts = Array.from({ length: 5 }, (_, index) =>
        trainer.start({ ...longRun, output_dir: `race-${index}` }, index % 2 === 0 ? "start" : "start_lokr"),
      );
      const statuses = (await Promise.all(starts)).map(({ status }) => status);
      expect(statuses.sort()).to.deep.equal([200, 400, 400, 400, 400]);
      await trainer.stop();
      await trainer.untilEnded();
    });
  });

  describe("failed training runs", () => {
    it("a run fails with a reason if the loss is not finite, and the server keeps working", async () => {
      const { status } = await trainer.start({
        ...shortRun,
        output_dir: "wild",
        learning_rate: 1e30,
        train_epochs: 20,
      });
      expect(status).to.equal(200);
      const ended = await trainer.untilEnded();
      expect(ended.state).to.equal("failed");
      expect(ended.error).to.match(/finite/);
      expect(ended.status).to.equal(`❌ Training failed: ${ended.error}`);
      expect(existsSync(trainer.path("wild/final"))).to.equal(false);
      await song();
      await trainer.complete({ ...shortRun, train_epochs: 1, output_dir: "after-wild" });
    });
  });

  describe("training runs while songs are made", () => {
    it("a run does not change songs that are made meanwhile", async () => {
      const before = await song();
      await trainer.start({ ...longRun, output_dir: "beside" });
      await trainer.until((status) => status.current_step >= 1);
      expect((await song()).equals(before)).to.equal(true);
      expect((await trainer.status()).state).to.equal("running");
      await trainer.stop();
      await trainer.untilEnded();
      await trained("beside-whole", { train_epochs: 1 });
      expect((await song()).equals(before)).to.equal(true);
    });

    const exports: [kind: Kind, names: string[]][] = [
      ["start", ["exported-start", "exported-start/adapter", "heard-start/final"]],
      ["start_lokr", ["exported-start_lokr", "heard-start_lokr/final"]],
    ];
    for (const [kind, names] of exports) {
      it(`${kind} makes an adapter that can be exported, loaded and unloaded @slow`, async () => {
        const plan = { ...shortLokr, train_epochs: 20, learning_rate: 0.05 };
        await trained(`heard-${kind}`, plan, kind);
        const paths = { export_path: `exported-${kind}`, lora_output_dir: `heard-${kind}` };
        const { body } = await server.client.post("/v1/training/export", paths);
        expect(body.data).to.deep.equal({
          message: "LoRA exported successfully",
          export_path: trainer.path(`exported-${kind}`),
          source: trainer.path(`heard-${kind}/final`),
        });
        const before = await song();
        for (const lora_path of names.map((name) => trainer.path(name))) {
          const loaded = await server.client.post("/v1/lora/load", { lora_path });
          expect(loaded.status, JSON.stringify(loaded.body)).to.equal(200);
          expect((await song()).equals(before)).to.equal(false);
          expect((await server.client.post("/v1/lora/unload", {})).status).to.equal(200);
          expect((await song()).equals(before)).to.equal(true);
        }
      });
    }
  });
});

function expectFinishedNumbers(status: TrainingStatus): void {
  expect(status.current_loss).to.be.a("number").above(0);
  expect(status.learning_rate).to.be.a("number").above(0);
  expect(status.grad_norm).to.be.a("number");
  expect(status.steps_per_second).to.be.above(0);
  expect(status.start_time).to.be.closeTo(Date.now() / 1000, 600);
}
