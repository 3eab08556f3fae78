/** What GET /v1/training/status answers (reference/training.md 9.3). */
import { join } from "node:path";
import type { AdapterDesign } from "../../engine/addon.js";
import { IDLE_LINE } from "./progress-lines.js";

/** idle: no run since the process started. The last three stay until the next start (reference/training.md 9.4). */
export type RunState = "idle" | "starting" | "running" | "stopping" | "completed" | "stopped" | "failed";

/** What is known of a run. Losses, rates and norms are null before the first step and where they are not finite. */
export interface RunRecord {
  id: string;
  state: RunState;
  adapterType: AdapterDesign["kind"];
  /** As the client sent it. */
  tensorDir: string;
  /** Absolute. */
  outputDirectory: string;
  /** What the start answered. */
  config: object;
  totalEpochs: number;
  /** 0 while not known. */
  totalSteps: number;
  /** 1-based; 0 before the first step. */
  epoch: number;
  /** Optimiser steps, those before a resumed checkpoint included. */
  step: number;
  /** Steps that this run did not take itself. */
  resumedSteps: number;
  loss: number | null;
  learningRate: number | null;
  gradientNorm: number | null;
  /** The newest last. */
  lossHistory: { step: number; loss: number }[];
  /** The newest progress lines, the newest last. */
  lines: string[];
  error: string | null;
  /** The adapter, or the checkpoint of a stop. */
  outputPath: string | null;
  acceptedAtMs: number;
  /** From the first step on. */
  firstStepAtMs: number | null;
  endedAtMs: number | null;
}

/** @param record null: no run since the process started */
export function trainingStatus(record: RunRecord | null, nowMs: number) {
  if (record === null) return IDLE;
  const isTraining = isActive(record.state);
  const stepsPerSecond = rateOf(record, nowMs);
  const stepsLeft = record.totalSteps - record.step;
  return {
    is_training: isTraining,
    should_stop: record.state === "stopping",
    current_step: record.step,
    current_loss: record.loss,
    status: record.lines.at(-1) ?? "",
    config: record.config,
    tensor_dir: record.tensorDir,
    loss_history: record.lossHistory,
    tensorboard_url: null,
    tensorboard_logdir: join(record.outputDirectory, "logs"),
    training_log: record.lines.join("\n"),
    start_time: record.acceptedAtMs / 1000,
    current_epoch: record.epoch,
    steps_per_second: stepsPerSecond,
    estimated_time_remaining: isTraining && stepsPerSecond > 0 ? stepsLeft / stepsPerSecond : 0,
    error: record.error,
    state: record.state,
    run_id: record.id,
    adapter_type: record.adapterType,
    total_steps: record.totalSteps,
    total_epochs: record.totalEpochs,
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

const IDLE = {
  is_training: false,
  should_stop: false,
  current_step: 0,
  current_loss: null,
  status: IDLE_LINE,
  config: {},
  tensor_dir: "",
  loss_history: [],
  tensorboard_url: null,
  tensorboard_logdir: null,
  training_log: "",
  start_time: null,
  current_epoch: 0,
  steps_per_second: 0,
  estimated_time_remaining: 0,
  error: null,
  state: "idle",
  run_id: null,
  adapter_type: null,
  total_steps: 0,
  total_epochs: 0,
  learning_rate: null,
  grad_norm: null,
  output_path: null,
} as const;
