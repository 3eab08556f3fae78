import { expect } from "chai";
import type { TrainingEvent } from "../../../src/engine/addon.js";
import { Run } from "../../../src/music/background-work.js";
import {
  applyEvent,
  newProgress,
  type TrainingRun,
  trainingStatus,
} from "../../../src/music/training/status.js";

const plan = {
  adapter_type: "lora",
  tensor_dir: "sets/mine",
  tensorboard_logdir: "/data/out/logs",
  config: { lora_rank: 4 },
  total_epochs: 10,
} as const;

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

describe("states and progress of a training run", () => {
  let run: TrainingRun;
  let stop: () => void;
  let resolve: () => void;
  let reject: (error: Error) => void;
  const status = (nowMs = Date.now()) => trainingStatus(run, nowMs);
  const emit = (...events: TrainingEvent[]) => {
    for (const event of events) applyEvent(run.progress, event);
  };

  beforeEach(() => {
    const stopping = new AbortController();
    stop = () => stopping.abort();
    const ended = new Promise<void>((...settle) => {
      [resolve, reject] = settle;
    });
    run = new Run(newProgress(plan, false, ["a notice"]), () => ended, stopping.signal);
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
    emit(started);
    expect(status().state).to.equal("running");
    emit(step(1, 3), step(2, 2));
    const tenSecondsOn = (run.progress.firstStepAtMs ?? 0) + 10_000;
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
    emit({ kind: "resumed", epoch: 1, step: 100, hasOptimizer: true }, started, step(101));
    const firstMs = run.progress.firstStepAtMs ?? 0;
    expect(status(firstMs).steps_per_second).to.equal(0);
    expect(status(firstMs + 2000).steps_per_second).to.equal(0.5);
  });

  it("keeps the last 1000 finite losses and the last 15 log lines", () => {
    emit(started);
    for (let number = 1; number <= 1200; number++) emit(step(number, number === 1100 ? Number.NaN : number));
    const { loss_history, training_log, status: line } = status();
    expect(loss_history).to.have.length(1000);
    expect(loss_history.at(-1)).to.deep.equal({ step: 1200, loss: 1200 });
    expect(loss_history.some((entry) => entry.step === 1100)).to.equal(false);
    expect(training_log.split("\n")).to.have.length(15);
    expect(line).to.equal("Epoch 6/10, Step 1200, Loss: 1200.0000");
  });

  it("reports null for a loss or norm that is not finite", () => {
    emit(started, {
      ...step(1, Number.NaN),
      gradientNorm: Number.POSITIVE_INFINITY,
    } as TrainingEvent);
    expect(status()).to.include({ current_loss: null, grad_norm: null });
  });

  it("reports the path of the adapter when the run completes", async () => {
    emit(started, step(1));
    run.progress.fields.output_path = "/data/out/final";
    resolve();
    await run.finished;
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
    emit(started, step(1));
    stop();
    expect(status()).to.include({ state: "stopping", should_stop: true, status: "Stopping..." });
    reject(run.signal.reason);
    await run.finished.catch(() => {});
    expect(status()).to.include({ state: "stopped", should_stop: false, current_step: 1, current_loss: 1 });
    expect(status()).to.include({ status: "⏹️ Training stopped by user", output_path: null, error: null });
  });

  it("reports a one-line reason if a run fails while it stops", async () => {
    emit(started, step(1));
    stop();
    reject(Object.assign(new Error("no room\nat somewhere"), { code: "STORAGE" }));
    await run.finished.catch(() => {});
    expect(status()).to.include({
      state: "failed",
      status: "❌ Training failed: no room",
      error: "no room",
      current_step: 1,
    });
  });
});

describe("log lines for training events", () => {
  /** Lines that the events add to the log of a run. */
  function linesOf(event: TrainingEvent, gradientCheckpointing = false): string[] {
    const progress = newProgress(plan, gradientCheckpointing, []);
    applyEvent(progress, event);
    return progress.lines.slice(1);
  }
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
      expect(linesOf(event)).to.deep.equal(lines);
    });
  }

  it("logs that gradient checkpointing is on", () => {
    expect(linesOf({ kind: "loaded", samples: 1 }, true)).to.deep.equal([
      "📂 Loaded 1 preprocessed samples",
      "🧠 Gradient checkpointing enabled for decoder",
    ]);
  });

  it("logs skipped steps", () => {
    expect(linesOf({ kind: "skipped", epoch: 1, step: 3, notFinite: 2, parameters: 64 })).to.deep.equal([
      "⚠️ Non-finite gradients (2/64); skipping optimizer step",
    ]);
  });
});
