/** Progress of a training run, and the response of GET /v1/training/status. Clients search the log for fixed words. */
import type { z } from "zod";
import type { TrainingEvent } from "../../engine/addon.js";
import type { AdapterDesign } from "../../engine/training-parameters.js";
import type { Run } from "../background-work.js";
import type { trainingStatus as statusSchema } from "../openapi/answers.js";
import type { InterruptedRun } from "./interrupted-run.js";

const MAX_LOSSES = 1000;
const MAX_LINES = 15;
/** Optimizer steps between two progress lines. */
const STEPS_PER_LINE = 10;
const STARTING_LINE = "Starting...";
const STOPPING_LINE = "Stopping...";
const STOPPED_LINE = "⏹️ Training stopped by user";
const ADAPTER_NAMES: Readonly<Record<AdapterDesign["kind"], string>> = { lora: "LoRA", lokr: "LoKr" };

export type TrainingStatus = z.output<typeof statusSchema>;

/** What a run was asked to do, with the field names of the status. */
type Plan = Pick<TrainingStatus, "tensor_dir" | "config" | "total_epochs" | "tensorboard_logdir"> & {
  adapter_type: AdapterDesign["kind"];
};

/** Losses, rates and norms are null before the first step and if they are not finite. */
const NOTHING_DONE = {
  /** 0 if unknown. */
  total_steps: 0,
  /** Counted from 1; 0 before the first step. */
  current_epoch: 0,
  /** Includes the steps of the checkpoint that the run resumed from. */
  current_step: 0,
  current_loss: null as number | null,
  learning_rate: null as number | null,
  grad_norm: null as number | null,
  loss_history: [] as TrainingStatus["loss_history"],
  /** Path of the trained adapter, or of the checkpoint if the run was stopped. */
  output_path: null as string | null,
};

export interface TrainingProgress {
  /** Fields of the status. */
  fields: Plan & typeof NOTHING_DONE;
  gradientCheckpointing: boolean;
  /** Latest log lines, newest last. */
  lines: string[];
  /** Time of the first step; null before that step. */
  firstStepAtMs: number | null;
  /** Number of steps of the checkpoint that the run resumed from. */
  resumedSteps: number;
}

export type TrainingRun = Run<TrainingProgress, void>;

export function newProgress(plan: Plan, gradientCheckpointing: boolean, notices: string[]): TrainingProgress {
  return {
    fields: { ...plan, ...NOTHING_DONE, loss_history: [] },
    gradientCheckpointing,
    lines: [STARTING_LINE, ...notices.map(noticeLine)],
    firstStepAtMs: null,
    resumedSteps: 0,
  };
}

/** Updates the progress by an event of the engine. */
export function applyEvent(progress: TrainingProgress, event: TrainingEvent): void {
  const { fields } = progress;
  switch (event.kind) {
    case "started":
      fields.total_steps = event.totalSteps;
      progress.firstStepAtMs = Date.now();
      break;
    case "resumed":
      progress.resumedSteps = event.step;
      fields.current_step = event.step;
      fields.current_epoch = event.epoch;
      break;
    case "step":
      fields.current_epoch = event.epoch;
      fields.current_step = event.step;
      fields.current_loss = finiteOrNull(event.loss);
      fields.learning_rate = event.learningRate;
      fields.grad_norm = finiteOrNull(event.gradientNorm);
      if (fields.current_loss !== null) {
        fields.loss_history.push({ step: event.step, loss: fields.current_loss });
        if (fields.loss_history.length > MAX_LOSSES) fields.loss_history.shift();
      }
      break;
    case "epoch":
      fields.current_epoch = event.epoch;
      break;
  }
  progress.lines = [...progress.lines, ...progressLines(event, progress)].slice(-MAX_LINES);
}

const NO_PLAN = { tensor_dir: "", config: {}, total_epochs: 0, tensorboard_logdir: null, adapter_type: null };

/**
 * @param run undefined: no run since the process started
 * @param interrupted run of an earlier process that it did not end
 */
export function trainingStatus(
  run: TrainingRun | undefined,
  nowMs: number,
  interrupted: InterruptedRun | null = null,
): TrainingStatus {
  const fields = run?.progress.fields ?? { ...NO_PLAN, ...NOTHING_DONE };
  const lines = run === undefined ? [] : logOf(run);
  const state = run === undefined ? "idle" : stateOf(run);
  const isTraining = run?.state === "running";
  const stepsPerSecond = run === undefined ? 0 : rateOf(run, nowMs);
  const stepsLeft = fields.total_steps - fields.current_step;
  return {
    ...fields,
    is_training: isTraining,
    should_stop: state === "stopping",
    state,
    status: lines.at(-1) ?? "Idle",
    training_log: lines.join("\n"),
    tensorboard_url: null,
    start_time: run === undefined ? null : run.startedAtMs / 1000,
    steps_per_second: stepsPerSecond,
    estimated_time_remaining: isTraining && stepsPerSecond > 0 ? stepsLeft / stepsPerSecond : 0,
    error: (state === "failed" && run?.failure?.detail) || null,
    run_id: run?.id ?? null,
    interrupted,
  };
}

/**
 * A run is first starting, then running; after a stop request it is stopping. It ends as completed (`final/` was
 * written), stopped or failed.
 */
function stateOf({ state, signal, progress }: TrainingRun): TrainingStatus["state"] {
  if (state === "cancelled") return "stopped";
  if (state !== "running") return state;
  if (signal.aborted) return "stopping";
  return progress.firstStepAtMs === null ? "starting" : "running";
}

function logOf({ state, signal, failure, progress }: TrainingRun): string[] {
  const { adapter_type, output_path } = progress.fields;
  const endLines = {
    running: [],
    completed: [`✅ Training complete! ${ADAPTER_NAMES[adapter_type]} saved to ${output_path}`],
    cancelled: [STOPPED_LINE],
    failed: [`❌ Training failed: ${failure?.detail}`],
  };
  return [...progress.lines, ...(signal.aborted ? [STOPPING_LINE] : []), ...endLines[state]].slice(
    -MAX_LINES,
  );
}

function rateOf({ progress, endedAtMs }: TrainingRun, nowMs: number): number {
  if (progress.firstStepAtMs === null) return 0;
  const seconds = ((endedAtMs ?? nowMs) - progress.firstStepAtMs) / 1000;
  return seconds > 0 ? (progress.fields.current_step - progress.resumedSteps) / seconds : 0;
}

function finiteOrNull(value: number): number | null {
  return Number.isFinite(value) ? value : null;
}

/** Returns the log lines of an event. Most events of kind "step" give no line. */
function progressLines(event: TrainingEvent, { fields, gradientCheckpointing }: TrainingProgress): string[] {
  switch (event.kind) {
    case "loaded":
      return [
        `📂 Loaded ${event.samples} preprocessed samples`,
        ...(gradientCheckpointing ? ["🧠 Gradient checkpointing enabled for decoder"] : []),
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
        ? [`Epoch ${event.epoch}/${fields.total_epochs}, Step ${event.step}, Loss: ${event.loss.toFixed(4)}`]
        : [];
    case "skipped":
      return [`⚠️ Non-finite gradients (${event.notFinite}/${event.parameters}); skipping optimizer step`];
    case "epoch": {
      const seconds = event.seconds.toFixed(1);
      return [
        `✅ Epoch ${event.epoch}/${fields.total_epochs} in ${seconds}s, Loss: ${event.loss.toFixed(4)}`,
      ];
    }
    case "checkpoint":
      return [`💾 Checkpoint saved at epoch ${event.epoch}`];
    case "notice":
      return [noticeLine(event.text)];
  }
}

function noticeLine(text: string): string {
  return `ℹ️ ${text}`;
}
