import { expect } from "chai";
import type { TrainingCall, TrainingEvent, TrainingResult } from "../../../src/engine/addon.js";
import { completedLine, failedLine, progressLines, TrainingRun } from "../../../src/music/training/run.js";
import { type RunPlan, trainingStatus } from "../../../src/music/training/status.js";

/** Fake trainer: the test controls its events and its end. */
class ScriptedTrainer {
  call!: TrainingCall;
  resolve!: (result: TrainingResult) => void;
  reject!: (error: Error) => void;

  train = (call: TrainingCall): Promise<TrainingResult> => {
    this.call = call;
    return new Promise((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
    });
  };

  emit(...events: TrainingEvent[]): void {
    for (const event of events) this.call.onEvent(event);
  }
}

const plan: RunPlan = {
  adapterType: "lora",
  tensorDir: "sets/mine",
  outputDirectory: "/data/out",
  config: { lora_rank: 4 },
  epochs: 10,
  gradientCheckpointing: false,
  notices: ["ℹ️ a notice"],
};

const started: TrainingEvent = {
  kind: "started",
  device: "cpu",
  precision: "32-true",
  trainableParameters: 1000,
  totalSteps: 2000,
};

function step(number: number, loss = 1): TrainingEvent {
  return {
    kind: "step",
    epoch: Math.ceil(number / 200),
    step: number,
    loss,
    learningRate: 1e-4,
    gradientNorm: 2,
  };
}

function codedError(code: string, message: string): Error {
  return Object.assign(new Error(message), { code });
}

describe("states and progress of a training run", () => {
  let trainer: ScriptedTrainer;
  let run: TrainingRun;
  const status = (nowMs = Date.now()) => trainingStatus(run.record, nowMs);

  beforeEach(() => {
    trainer = new ScriptedTrainer();
    run = new TrainingRun(plan, trainer.train);
  });

  it("reports that a run starts", () => {
    expect(status()).to.include({
      is_training: true,
      should_stop: false,
      state: "starting",
      status: "ℹ️ a notice",
      training_log: "Starting...\nℹ️ a notice",
      tensor_dir: "sets/mine",
      tensorboard_logdir: "/data/out/logs",
      current_loss: null,
      total_epochs: 10,
      adapter_type: "lora",
    });
    expect(status().config).to.deep.equal({ lora_rank: 4 });
  });

  it("reports steps, rates and the remaining time from the first step on", async () => {
    trainer.emit(started);
    await run.started;
    expect(status().state).to.equal("running");
    trainer.emit(step(1, 3), step(2, 2));
    const tenSecondsOn = (run.record.firstStepAtMs ?? 0) + 10_000;
    expect(status(tenSecondsOn)).to.include({
      current_step: 2,
      current_loss: 2,
      current_epoch: 1,
      learning_rate: 1e-4,
      grad_norm: 2,
      total_steps: 2000,
      steps_per_second: 0.2,
      estimated_time_remaining: 9990,
    });
    expect(status().loss_history).to.deep.equal([
      { step: 1, loss: 3 },
      { step: 2, loss: 2 },
    ]);
  });

  it("the step rate counts only the steps since the run resumed", () => {
    trainer.emit({ kind: "resumed", epoch: 1, step: 100, hasOptimizer: true }, started, step(101));
    const firstMs = run.record.firstStepAtMs ?? 0;
    expect(status(firstMs).steps_per_second).to.equal(0);
    expect(status(firstMs + 2000).steps_per_second).to.equal(0.5);
  });

  it("keeps the last 1000 finite losses and the last 15 log lines", () => {
    trainer.emit(started);
    for (let number = 1; number <= 1200; number++)
      trainer.emit(step(number, number === 1100 ? Number.NaN : number));
    const { loss_history, training_log, status: line } = status();
    expect(loss_history).to.have.length(1000);
    expect(loss_history.at(-1)).to.deep.equal({ step: 1200, loss: 1200 });
    expect(loss_history.some((entry) => entry.step === 1100)).to.equal(false);
    expect(training_log.split("\n")).to.have.length(15);
    expect(line).to.equal("Epoch 6/10, Step 1200, Loss: 1200.0000");
  });

  it("reports null for a loss or norm that is not finite", () => {
    trainer.emit(started, {
      ...step(1, Number.NaN),
      gradientNorm: Number.POSITIVE_INFINITY,
    } as TrainingEvent);
    expect(status()).to.include({ current_loss: null, grad_norm: null });
  });

  it("reports the path of the adapter when the run completes", async () => {
    trainer.emit(started, step(1));
    trainer.resolve({ outcome: "completed", path: "/data/out/final", steps: 1 });
    await run.ended;
    expect(status()).to.include({
      is_training: false,
      state: "completed",
      status: "✅ Training complete! LoRA saved to /data/out/final",
      output_path: "/data/out/final",
      estimated_time_remaining: 0,
      error: null,
      current_step: 1,
    });
  });

  it("a run stops on request, and its status still shows the last step", async () => {
    trainer.emit(started, step(1));
    run.stop();
    expect(status()).to.include({ state: "stopping", should_stop: true, status: "Stopping..." });
    expect(trainer.call.signal.aborted).to.equal(true);
    trainer.resolve({ outcome: "stopped", path: "/data/out/checkpoints/stopped_epoch_1_step_1", steps: 1 });
    await run.ended;
    expect(status()).to.include({ state: "stopped", should_stop: false, current_step: 1, current_loss: 1 });
    expect(status().status).to.equal("⏹️ Training stopped by user");
    run.stop();
    expect(status().state).to.equal("stopped");
  });

  it("reports a run as stopped even if it has no checkpoint", async () => {
    run.stop();
    trainer.reject(codedError("CANCELLED", "cancelled"));
    await run.ended;
    expect(status()).to.include({ state: "stopped", output_path: null, error: null });
    expect(run.failure).to.equal(null);
  });

  it("reports a one-line reason if a run fails while it stops", async () => {
    trainer.emit(started, step(1));
    run.stop();
    trainer.reject(codedError("STORAGE", "no room\nat somewhere"));
    await run.ended;
    expect(status()).to.include({
      state: "failed",
      status: "❌ Training failed: no room",
      error: "no room",
      current_step: 1,
    });
  });
});

describe("log lines for training events", () => {
  const run = { epochs: 10, gradientCheckpointing: false };
  const step = { kind: "step", epoch: 4, loss: 0.41268, learningRate: 1e-4, gradientNorm: 1 } as const;
  const cases: [event: TrainingEvent, lines: string[]][] = [
    [{ kind: "loaded", samples: 3 }, ["📂 Loaded 3 preprocessed samples"]],
    [
      {
        kind: "started",
        device: "cuda:0",
        precision: "bf16-mixed",
        trainableParameters: 44040192,
        totalSteps: 9,
      },
      ["🚀 Starting training (device: cuda, precision: bf16-mixed)...", "🎯 Training 44,040,192 parameters"],
    ],
    [
      { kind: "resumed", epoch: 2, step: 20, hasOptimizer: true },
      ["✅ Resumed from epoch 2, step 20, optimizer ✓, scheduler ✓"],
    ],
    [
      { kind: "resumed", epoch: 2, step: 20, hasOptimizer: false },
      ["✅ Resumed from epoch 2, step 20, scheduler ✓"],
    ],
    [{ ...step, step: 30 }, ["Epoch 4/10, Step 30, Loss: 0.4127"]],
    [{ ...step, step: 31 }, []],
    [{ kind: "epoch", epoch: 4, seconds: 12.34, loss: 0.5 }, ["✅ Epoch 4/10 in 12.3s, Loss: 0.5000"]],
    [{ kind: "checkpoint", epoch: 5, path: "/out" }, ["💾 Checkpoint saved at epoch 5"]],
    [{ kind: "notice", text: "the plan is longer" }, ["ℹ️ the plan is longer"]],
  ];
  for (const [event, lines] of cases) {
    it(`logs the event ${JSON.stringify(event)}`, () => {
      expect(progressLines(event, run)).to.deep.equal(lines);
    });
  }

  it("logs that gradient checkpointing is on", () => {
    expect(
      progressLines({ kind: "loaded", samples: 1 }, { ...run, gradientCheckpointing: true }),
    ).to.deep.equal(["📂 Loaded 1 preprocessed samples", "🧠 Gradient checkpointing enabled for decoder"]);
  });

  it("logs skipped steps and the end of a run", () => {
    expect(
      progressLines({ kind: "skipped", epoch: 1, step: 3, notFinite: 2, parameters: 64 }, run),
    ).to.deep.equal(["⚠️ Non-finite gradients (2/64); skipping optimizer step"]);
    expect(completedLine("lora", "/o/final")).to.equal("✅ Training complete! LoRA saved to /o/final");
    expect(completedLine("lokr", "/o/final")).to.equal("✅ Training complete! LoKr saved to /o/final");
    expect(failedLine("no room")).to.equal("❌ Training failed: no room");
  });
});
