import { expect } from "chai";
import type { TrainingEvent } from "../../../src/engine/addon.js";
import { completedLine, failedLine, linesOf } from "../../../src/music/training/run.js";

describe("progress lines of training", () => {
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
    it(`tell of ${JSON.stringify(event)}`, () => {
      expect(linesOf(event, run)).to.deep.equal(lines);
    });
  }

  it("tell that gradients are computed again", () => {
    expect(linesOf({ kind: "loaded", samples: 1 }, { ...run, gradientCheckpointing: true })).to.deep.equal([
      "📂 Loaded 1 preprocessed samples",
      "🧠 Gradient checkpointing enabled for decoder",
    ]);
  });

  it("tell of skipped steps and of the end", () => {
    expect(linesOf({ kind: "skipped", epoch: 1, step: 3, notFinite: 2, parameters: 64 }, run)).to.deep.equal([
      "⚠️ Non-finite gradients (2/64); skipping optimizer step",
    ]);
    expect(completedLine("lora", "/o/final")).to.equal("✅ Training complete! LoRA saved to /o/final");
    expect(completedLine("lokr", "/o/final")).to.equal("✅ Training complete! LoKr saved to /o/final");
    expect(failedLine("no room")).to.equal("❌ Training failed: no room");
  });
});
