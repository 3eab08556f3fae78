/** One training run: its state, and how to stop it. Clients search the progress lines for fixed words. */
import type { TrainingCall, TrainingEvent, TrainingResult } from "../../engine/addon.js";
import type { AdapterDesign } from "../../engine/training-parameters.js";
import { isActive, newRunRecord, type RunPlan, type RunRecord } from "./status.js";

const MAX_LOSSES = 1000;
const MAX_LINES = 15;
/** Optimiser steps between two progress lines. */
const STEPS_PER_LINE = 10;

const ADAPTER_NAMES: Readonly<Record<AdapterDesign["kind"], string>> = { lora: "LoRA", lokr: "LoKr" };

const STARTING_LINE = "Starting...";
const STOPPING_LINE = "Stopping...";
const STOPPED_LINE = "⏹️ Training stopped by user";

export class TrainingRun {
  readonly record: RunRecord;
  /** Resolves when the model is ready for the first step, or when the run ends earlier. */
  readonly started: Promise<void>;
  /** Resolves when the run has ended in any state. */
  readonly ended: Promise<void>;
  failure: Error | null = null;
  readonly #stopRequest = new AbortController();
  #onFirstStep!: () => void;

  constructor(plan: RunPlan, train: (call: TrainingCall) => Promise<TrainingResult>) {
    this.record = newRunRecord(plan);
    this.#appendLines(STARTING_LINE, ...plan.notices);
    const firstStep = new Promise<void>((resolve) => {
      this.#onFirstStep = resolve;
    });
    const { signal } = this.#stopRequest;
    this.ended = train({ signal, onEvent: (event) => this.#onEvent(event) }).then(
      (result) => this.#onResult(result),
      (error: Error) => this.#onError(error),
    );
    this.started = Promise.race([firstStep, this.ended]);
  }

  get isActive(): boolean {
    return isActive(this.record.state);
  }

  /** Stops the run before its next micro-batch. The run saves a checkpoint to resume from. */
  stop(): void {
    if (!this.isActive) return;
    this.record.state = "stopping";
    this.#appendLines(STOPPING_LINE);
    this.#stopRequest.abort();
  }

  #onEvent(event: TrainingEvent): void {
    const { record } = this;
    switch (event.kind) {
      case "started":
        record.totalSteps = event.totalSteps;
        record.firstStepAtMs = Date.now();
        if (record.state === "starting") record.state = "running";
        this.#onFirstStep();
        break;
      case "resumed":
        record.resumedSteps = event.step;
        record.step = event.step;
        record.epoch = event.epoch;
        break;
      case "step":
        record.epoch = event.epoch;
        record.step = event.step;
        record.loss = finiteOrNull(event.loss);
        record.learningRate = event.learningRate;
        record.gradientNorm = finiteOrNull(event.gradientNorm);
        if (record.loss !== null) {
          record.lossHistory.push({ step: event.step, loss: record.loss });
          if (record.lossHistory.length > MAX_LOSSES) record.lossHistory.shift();
        }
        break;
      case "epoch":
        record.epoch = event.epoch;
        break;
    }
    this.#appendLines(...progressLines(event, record.plan));
  }

  #onResult({ outcome, path }: TrainingResult): void {
    const { record } = this;
    this.#end(outcome);
    record.outputPath = path;
    this.#appendLines(outcome === "completed" ? completedLine(record.plan.adapterType, path) : STOPPED_LINE);
  }

  #onError(error: Error): void {
    if (this.record.state === "stopping" && (error as { code?: unknown }).code === "CANCELLED") {
      // CANCELLED: the run was stopped before it could save a checkpoint.
      this.#end("stopped");
      this.#appendLines(STOPPED_LINE);
      return;
    }
    this.#end("failed");
    this.failure = error;
    this.record.error = error.message.split("\n", 1)[0] as string;
    this.#appendLines(failedLine(this.record.error));
  }

  #end(state: "completed" | "stopped" | "failed"): void {
    this.record.state = state;
    this.record.endedAtMs = Date.now();
  }

  #appendLines(...lines: readonly string[]): void {
    const { record } = this;
    record.lines = [...record.lines, ...lines].slice(-MAX_LINES);
  }
}

function finiteOrNull(value: number): number | null {
  return Number.isFinite(value) ? value : null;
}

/** Returns the lines that report an event to the user. Most events of kind "step" give no line. */
export function progressLines(
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
