/** Prometheus metrics and log lines of tasks. */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";
import type { ModelCatalog } from "../engine/types.js";
import { droppedLogLines, type Logger } from "../system/log.js";
import { TASK_STATES, type Task } from "./queue/store.js";
import type { TaskQueue } from "./queue/task-queue.js";

/** Histogram bucket bounds: from the time for one token to the time for the longest song on a slow machine. */
const SECONDS = [0.01, 0.05, 0.1, 0.5, 1, 2, 5, 10, 30, 60, 120, 300, 600, 1800];

/** Task id and request id (`X-Request-Id`). Every log line about a task contains both. */
interface TaskNames {
  task: string;
  request: string | undefined;
}

export class Telemetry {
  readonly #registry = new Registry();
  /** Current stage of each task, by task id. */
  readonly #stages = new Map<string, { stage: string; startedMs: number }>();
  readonly #stageSeconds: Histogram<"stage">;
  readonly #jobSeconds: Histogram<"task_type">;
  readonly #ended: Counter<"task_type" | "outcome">;
  #hasProcessMetrics = false;

  constructor(
    queue: TaskQueue,
    catalog: ModelCatalog,
    private readonly log: Logger,
  ) {
    const registers = [this.#registry];
    const histogram = <Label extends string>(name: string, help: string, label: Label) =>
      new Histogram({ name, help, labelNames: [label], buckets: SECONDS, registers });
    this.#stageSeconds = histogram("carillon_stage_seconds", "Duration of a task stage", "stage");
    this.#jobSeconds = histogram("carillon_job_seconds", "Duration of a task", "task_type");
    this.#ended = new Counter({
      name: "carillon_tasks_ended_total",
      help: "Tasks ended since the process started",
      labelNames: ["task_type", "outcome"],
      registers,
    });
    new Gauge({
      name: "carillon_tasks",
      help: "Stored tasks by state",
      labelNames: ["state"],
      registers,
      async collect() {
        const { counts } = await queue.statistics();
        for (const state of TASK_STATES) this.set({ state }, counts[state]);
      },
    });
    new Counter({
      name: "carillon_log_lines_dropped_total",
      help: "Log lines that could not be written to stderr, for example on a full disk",
      registers,
      collect() {
        this.reset();
        this.inc(droppedLogLines());
      },
    });
    this.gauge("carillon_queue_length", "Waiting tasks", async () => (await queue.statistics()).waiting);
    this.gauge("carillon_audio_bytes", "Size of all stored songs", async () =>
      (await queue.finished()).reduce((sum, { audioBytes }) => sum + audioBytes, 0),
    );
    new Gauge({
      name: "carillon_gpu_memory_bytes",
      help: "GPU memory, used by all processes or free",
      labelNames: ["device", "state"],
      registers,
      async collect() {
        this.reset();
        const gpus = await catalog.gpus().catch((err: unknown) => {
          log.warn({ err }, "could not read GPU memory");
          return [];
        });
        for (const { device, freeBytes, totalBytes } of gpus) {
          this.set({ device, state: "free" }, freeBytes);
          this.set({ device, state: "used" }, totalBytes - freeBytes);
        }
      },
    });
    queue.events.on("progress", (task, { stage }, request) => this.#enter({ task, request }, stage));
    queue.events.on("ended", (task) => this.#end(task));
  }

  /** Prometheus text format. Process metrics are collected from the first call on. */
  async metrics(): Promise<{ type: string; text: string }> {
    if (!this.#hasProcessMetrics) collectDefaultMetrics({ register: this.#registry });
    this.#hasProcessMetrics = true;
    return { type: this.#registry.contentType, text: await this.#registry.metrics() };
  }

  gauge(name: string, help: string, value: () => Promise<number>): void {
    const registers = [this.#registry];
    new Gauge({
      name,
      help,
      registers,
      async collect() {
        this.set(await value());
      },
    });
  }

  /** Starts timing a stage. Stages that differ only in parentheses, such as "(song 1 of 2)", count as one. */
  #enter(names: TaskNames, text: string): void {
    const stage = text.replace(/ \(.*\)|\.{3}$/g, "");
    if (this.#stages.get(names.task)?.stage === stage) return;
    this.#leave(names);
    this.#stages.set(names.task, { stage, startedMs: performance.now() });
    this.log.debug({ ...names, stage }, "stage begins");
  }

  #leave(names: TaskNames): void {
    const current = this.#stages.get(names.task);
    if (current === undefined) return;
    this.#stages.delete(names.task);
    const { stage, startedMs } = current;
    const seconds = (performance.now() - startedMs) / 1000;
    this.#stageSeconds.observe({ stage }, seconds);
    this.log.debug({ ...names, stage, seconds }, "stage ended");
  }

  #end({ id, request, requestId, state, startedAtMs, endedAtMs = Date.now() }: Task): void {
    const names = { task: id, request: requestId };
    this.#leave(names);
    const labels = { task_type: request.taskType };
    this.#ended.inc({ ...labels, outcome: state });
    const seconds = startedAtMs === undefined ? 0 : (endedAtMs - startedAtMs) / 1000;
    if (startedAtMs !== undefined) this.#jobSeconds.observe(labels, Math.max(seconds, 0));
    this.log.info({ ...names, state, seconds }, "task ended");
  }
}
