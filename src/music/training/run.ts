/** One training run: what it has told so far, and how it is stopped (reference/training.md 9.4). */
import { v4 as uuid } from "uuid";
import type { AdapterDesign, TrainingCall, TrainingEvent, TrainingResult } from "../../engine/addon.js";
import {
  completedLine,
  failedLine,
  linesOf,
  STARTING_LINE,
  STOPPED_LINE,
  STOPPING_LINE,
} from "./progress-lines.js";
import { isActive, type RunRecord } from "./status.js";

const MAX_LOSSES = 1000;
const MAX_LINES = 15;

export interface RunPlan {
  adapterType: AdapterDesign["kind"];
  /** As the client sent it. */
  tensorDir: string;
  outputDirectory: string;
  /** What the start answers. */
  config: object;
  epochs: number;
  gradientCheckpointing: boolean;
  /** Progress lines to begin with. */
  notices: readonly string[];
}

export class TrainingRun {
  readonly record: RunRecord;
  /** Resolves once the first step is next, or the run has ended before. */
  readonly begun: Promise<void>;
  /** Resolves when the run has ended, however it did. */
  readonly ended: Promise<void>;
  /** Why the run failed. */
  failure: Error | null = null;
  readonly #plan: RunPlan;
  readonly #stopRequest = new AbortController();
  #onFirstStep!: () => void;

  /** Starts `train`. */
  constructor(plan: RunPlan, train: (call: TrainingCall) => Promise<TrainingResult>) {
    this.#plan = plan;
    this.record = newRecord(plan);
    this.#say(STARTING_LINE, ...plan.notices);
    const firstStep = new Promise<void>((resolve) => {
      this.#onFirstStep = resolve;
    });
    const { signal } = this.#stopRequest;
    this.ended = train({ signal, onEvent: (event) => this.#take(event) }).then(
      (result) => this.#finish(result),
      (error: Error) => this.#giveUp(error),
    );
    this.begun = Promise.race([firstStep, this.ended]);
  }

  get isActive(): boolean {
    return isActive(this.record.state);
  }

  /** Asks the run to end before its next micro-batch, with a checkpoint to resume from. */
  stop(): void {
    if (!this.isActive) return;
    this.record.state = "stopping";
    this.#say(STOPPING_LINE);
    this.#stopRequest.abort();
  }

  #take(event: TrainingEvent): void {
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
    this.#say(...linesOf(event, this.#plan));
  }

  #finish({ outcome, path }: TrainingResult): void {
    const { record } = this;
    this.#end(outcome);
    record.outputPath = path;
    this.#say(outcome === "completed" ? completedLine(record.adapterType, path) : STOPPED_LINE);
  }

  #giveUp(error: Error): void {
    if (this.record.state === "stopping" && codeOf(error) === "CANCELLED") {
      // Stopped before there was anything to save.
      this.#end("stopped");
      this.#say(STOPPED_LINE);
      return;
    }
    this.#end("failed");
    this.failure = error;
    this.record.error = error.message.split("\n", 1)[0] as string;
    this.#say(failedLine(this.record.error));
  }

  #end(state: "completed" | "stopped" | "failed"): void {
    this.record.state = state;
    this.record.endedAtMs = Date.now();
  }

  #say(...lines: readonly string[]): void {
    const { record } = this;
    record.lines = [...record.lines, ...lines].slice(-MAX_LINES);
  }
}

function newRecord(plan: RunPlan): RunRecord {
  return {
    id: uuid(),
    state: "starting",
    adapterType: plan.adapterType,
    tensorDir: plan.tensorDir,
    outputDirectory: plan.outputDirectory,
    config: plan.config,
    totalEpochs: plan.epochs,
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

function codeOf(error: Error): unknown {
  return (error as { code?: unknown }).code;
}

function finiteOrNull(value: number): number | null {
  return Number.isFinite(value) ? value : null;
}
