/** Preparations asked for over HTTP: one at a time, in the background, with a status to ask for. */
import { randomUUID } from "node:crypto";
import type { MusicEngine } from "../../engine/types.js";
import type { Logger } from "../../log.js";
import { HttpError, RequestError, toHttpError } from "../errors.js";
import type { PermittedRoot } from "../permitted-root.js";
import type { DataSet } from "./data-set.js";
import {
  type Preparation,
  type PreparationProgress,
  type PreparationRequest,
  prepareDataSet,
} from "./prepare.js";

/** Finished tasks that can still be asked for. */
const KEPT_TASKS = 100;

export interface PreparationResult {
  message: string;
  output_dir: string;
  num_tensors: number;
}

interface Task {
  id: string;
  status: "running" | "completed" | "failed";
  done: number;
  total: number;
  result?: PreparationResult;
  error?: string;
}

export class PreparationTasks {
  readonly #engine: MusicEngine;
  readonly #root: PermittedRoot;
  readonly #log: Logger;
  readonly #closing = new AbortController();
  /** In the order of their starts. */
  readonly #tasks = new Map<string, Task>();
  /** Resolves once nothing runs. */
  #idle: Promise<unknown> = Promise.resolve();

  constructor(engine: MusicEngine, root: PermittedRoot, log: Logger) {
    this.#engine = engine;
    this.#root = root;
    this.#log = log;
  }

  /**
   * Begins to prepare the labeled samples.
   * @throws RequestError where a path lies outside the root, nothing is labeled, or another preparation runs
   */
  async start(
    dataSet: DataSet,
    outputDir: string,
    skipExisting: boolean,
  ): Promise<{ taskId: string; total: number; finished: Promise<PreparationResult> }> {
    const outputDirectory = await this.#root.resolve(outputDir);
    if (this.#engine.slots()[0]?.model == null) throw new HttpError(500, "Model not initialized");
    if (this.#latest?.status === "running") throw new RequestError("Preprocessing already in progress");
    const total = dataSet.samples.filter(({ labeled }) => labeled).length;
    if (total === 0) throw new RequestError("No labeled samples: describe them with a caption first");
    const task: Task = { id: randomUUID(), status: "running", done: 0, total };
    this.#tasks.set(task.id, task);
    this.#forgetOldest();
    const finished = this.#run(task, { dataSet, outputDirectory, skipExisting }, outputDir);
    // Whoever waits hears of a failure; nobody has to.
    this.#idle = finished.catch(() => {});
    return { taskId: task.id, total, finished };
  }

  /**
   * Of the task, or of the latest one.
   * @throws HttpError 404 for an unknown id
   */
  status(id: string | null) {
    const task = id === null ? this.#latest : this.#tasks.get(id);
    if (task === undefined && id !== null) throw new HttpError(404, "Task not found");
    if (task === undefined) return { task_id: null, status: "idle", progress: "", current: 0, total: 0 };
    const { status, done, total, result, error } = task;
    return {
      task_id: task.id,
      status,
      progress: progressLine(task),
      current: done,
      total,
      ...(result && { result }),
      ...(error && { error }),
    };
  }

  /** Cancels what runs and waits for its end. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#idle;
  }

  get #latest(): Task | undefined {
    return [...this.#tasks.values()].at(-1);
  }

  async #run(task: Task, request: PreparationRequest, outputDir: string): Promise<PreparationResult> {
    const { signal } = this.#closing;
    try {
      const onProgress = ({ done }: PreparationProgress) => {
        task.done = done;
      };
      const preparation = await prepareDataSet(this.#engine, this.#root, request, { signal, onProgress });
      task.done = task.total;
      task.result = resultOf(preparation, outputDir);
      task.status = "completed";
      return task.result;
    } catch (error) {
      const failure = toHttpError(error);
      if (failure.status >= 500 && !signal.aborted) {
        this.#log.error({ err: error }, "a data set could not be prepared");
      }
      task.error = failure.detail;
      task.status = "failed";
      throw failure;
    }
  }

  #forgetOldest(): void {
    const [oldest] = this.#tasks.keys();
    if (this.#tasks.size > KEPT_TASKS && oldest !== undefined) this.#tasks.delete(oldest);
  }
}

function progressLine({ status, done, total, result, error }: Task): string {
  if (status === "running") return `Preprocessing ${Math.min(done + 1, total)}/${total}`;
  return status === "completed" ? (result?.message ?? "") : `❌ ${error}`;
}

function resultOf({ files, failures }: Preparation, outputDir: string): PreparationResult {
  const left = failures.map(({ filename, reason }) => `\n⚠️ ${filename}: ${reason}`).join("");
  return {
    message: `✅ Preprocessed ${files.length}/${files.length + failures.length} samples to ${outputDir}${left}`,
    output_dir: outputDir,
    num_tensors: files.length,
  };
}
