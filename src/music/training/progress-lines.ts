/** The lines that tell of a run's progress; clients match on their words (reference/training.md 9.5). */
import type { AdapterDesign, TrainingEvent } from "../../engine/addon.js";

/** Optimiser steps from one line to the next. */
const STEPS_PER_LINE = 10;

const ADAPTER_NAMES: Readonly<Record<AdapterDesign["kind"], string>> = { lora: "LoRA", lokr: "LoKr" };

export const IDLE_LINE = "Idle";
export const STARTING_LINE = "Starting...";
export const STOPPING_LINE = "Stopping...";
export const STOPPED_LINE = "⏹️ Training stopped by user";

/** What an event says; steps between two lines say nothing. */
export function linesOf(
  event: TrainingEvent,
  run: { epochs: number; gradientCheckpointing: boolean },
): string[] {
  switch (event.kind) {
    case "loaded":
      return [
        `📂 Loaded ${event.samples} preprocessed samples`,
        ...(run.gradientCheckpointing ? ["🧠 Gradient checkpointing enabled for decoder"] : []),
      ];
    case "started": {
      const [device] = event.device.split(":", 1);
      return [
        `🚀 Starting training (device: ${device}, precision: ${event.precision})...`,
        `🎯 Training ${event.trainableParameters.toLocaleString("en-US")} parameters`,
      ];
    }
    case "resumed": {
      const optimizer = event.hasOptimizer ? ", optimizer ✓" : "";
      return [`✅ Resumed from epoch ${event.epoch}, step ${event.step}${optimizer}, scheduler ✓`];
    }
    case "step":
      return event.step % STEPS_PER_LINE === 0
        ? [`Epoch ${event.epoch}/${run.epochs}, Step ${event.step}, Loss: ${event.loss.toFixed(4)}`]
        : [];
    case "skipped":
      return [`⚠️ Non-finite gradients (${event.notFinite}/${event.parameters}); skipping optimizer step`];
    case "epoch": {
      const seconds = event.seconds.toFixed(1);
      return [`✅ Epoch ${event.epoch}/${run.epochs} in ${seconds}s, Loss: ${event.loss.toFixed(4)}`];
    }
    case "checkpoint":
      return [`💾 Checkpoint saved at epoch ${event.epoch}`];
    case "notice":
      return [noticeLine(event.text)];
  }
}

export function noticeLine(text: string): string {
  return `ℹ️ ${text}`;
}

export function completedLine(kind: AdapterDesign["kind"], path: string): string {
  return `✅ Training complete! ${ADAPTER_NAMES[kind]} saved to ${path}`;
}

export function failedLine(reason: string): string {
  return `❌ Training failed: ${reason}`;
}
