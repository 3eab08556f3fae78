/** Record of a training run, and the response of GET /v1/training/status. */
import { join } from "node:path";
import { v4 as uuid } from "uuid";
import type { AdapterDesign } from "../../engine/training-parameters.js";

export interface RunPlan {
  adapterType: AdapterDesign["kind"];
  /** Directory of sample files, as sent by the client. */
  tensorDir: string;
  /** Absolute path of the run's output directory. */
  outputDirectory: string;
  /** Parameters of the run, as they appear in the response to the start request. */
  config: object;
  epochs: number;
  gradientCheckpointing: boolean;
  notices: readonly string[];
}

/**
 * idle: no run since the process started. A run is first starting, then running; after a stop request it is
 * stopping. It ends as completed (`final/` was written), stopped or failed, and keeps this state until the
 * next start.
 */
export type RunState = "idle" | "starting" | "running" | "stopping" | "completed" | "stopped" | "failed";

/** State of a run. Losses, rates and norms are null before the first step and if they are not finite. */
export interface RunRecord {
  id: string;
  state: RunState;
  plan: RunPlan;
  /** Number of optimiser steps of the whole run; 0 if unknown. */
  totalSteps: number;
  /** Current epoch, counted from 1; 0 before the first step. */
  epoch: number;
  /** Number of optimiser steps so far, including those of the checkpoint that the run resumed from. */
  step: number;
  /** Number of steps of the checkpoint that the run resumed from. */
  resumedSteps: number;
  loss: number | null;
  learningRate: number | null;
  gradientNorm: number | null;
  /** Latest losses, newest last. */
  lossHistory: { step: number; loss: number }[];
  /** Latest progress lines, newest last. */
  lines: string[];
  error: string | null;
  /** Path of the trained adapter, or of the checkpoint if the run was stopped. */
  outputPath: string | null;
  acceptedAtMs: number;
  /** Time of the first step; null before that step. */
  firstStepAtMs: number | null;
  endedAtMs: number | null;
}

export function newRunRecord(plan: RunPlan): RunRecord {
  return {
    id: uuid(),
    state: "starting",
    plan,
    totalSteps: 0,
    epoch: 0,
    step: 0,
    resumedSteps: 0,
    loss: null,
    learningRate: null,
    gradientNorm: null,
    lossHistory: [],
    lines: [],
    error: null,
    outputPath: null,
    acceptedAtMs: Date.now(),
    firstStepAtMs: null,
    endedAtMs: null,
  };
}

const NO_PLAN = { tensorDir: "", outputDirectory: "", config: {}, epochs: 0, notices: [] };
const NO_RUN: RunRecord = {
  ...newRunRecord({ ...NO_PLAN, adapterType: "lora", gradientCheckpointing: false }),
  state: "idle",
};

/** @param run null: no run since the process started */
export function trainingStatus(run: RunRecord | null, nowMs: number) {
  const record = run ?? NO_RUN;
  const { plan } = record;
  const isTraining = isActive(record.state);
  const stepsPerSecond = rateOf(record, nowMs);
  const stepsLeft = record.totalSteps - record.step;
  return {
    is_training: isTraining,
    should_stop: record.state === "stopping",
    current_step: record.step,
    current_loss: record.loss,
    status: record.lines.at(-1) ?? "Idle",
    config: plan.config,
    tensor_dir: plan.tensorDir,
    loss_history: record.lossHistory,
    tensorboard_url: null,
    tensorboard_logdir: run && join(plan.outputDirectory, "logs"),
    training_log: record.lines.join("\n"),
    start_time: run && run.acceptedAtMs / 1000,
    current_epoch: record.epoch,
    steps_per_second: stepsPerSecond,
    estimated_time_remaining: isTraining && stepsPerSecond > 0 ? stepsLeft / stepsPerSecond : 0,
    error: record.error,
    state: record.state,
    run_id: run?.id ?? null,
    adapter_type: run && plan.adapterType,
    total_steps: record.totalSteps,
    total_epochs: plan.epochs,
    learning_rate: record.learningRate,
    grad_norm: record.gradientNorm,
    output_path: record.outputPath,
  };
}

export type TrainingStatus = ReturnType<typeof trainingStatus>;

export function isActive(state: RunState): boolean {
  return state === "starting" || state === "running" || state === "stopping";
}

function rateOf(record: RunRecord, nowMs: number): number {
  if (record.firstStepAtMs === null) return 0;
  const seconds = ((record.endedAtMs ?? nowMs) - record.firstStepAtMs) / 1000;
  return seconds > 0 ? (record.step - record.resumedSteps) / seconds : 0;
}
