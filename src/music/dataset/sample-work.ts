/** Background tasks on the samples of a data set, polled by clients. One task of each kind runs at a time. */
import { randomUUID } from "node:crypto";
import { type PlanarAudio, SAMPLE_RATE } from "../../engine/types.js";
import type { Logger } from "../../system/log.js";
import { DecodeError, decodeAudio } from "../audio/decode.js";
import { HttpError, RequestError, toHttpError } from "../errors.js";
import { type PermittedRoot, UnsafePathError } from "../storage/permitted-root.js";
import type { DataSetSample } from "./data-set.js";

/** Number of finished tasks whose status is kept. */
const KEPT_TASKS = 100;

/** Arguments of a task's work function. `details` are added to the fields of the task's status. */
export interface WorkCall<Details> {
  /** Signal that aborts the work when the server stops. */
  signal: AbortSignal;
  report: (done: number, details?: Partial<Details>) => void;
}

export interface StartedTask<Result> {
  taskId: string;
  total: number;
  finished: Promise<Result>;
}

interface Task<Result, Details> {
  id: string;
  status: "running" | "completed" | "failed";
  done: number;
  total: number;
  details: Details;
  result?: Result;
  error?: string;
}

export abstract class BackgroundTasks<Result extends { message: string }, Details extends object = object> {
  readonly #closing = new AbortController();
  /** Tasks in the order in which they started. */
  readonly #tasks = new Map<string, Task<Result, Details>>();
  /** Resolves when nothing is running. */
  #idle: Promise<unknown> = Promise.resolve();

  /** @param taskName name of the work in messages, for example "Preprocessing" */
  constructor(
    private readonly taskName: string,
    private readonly log: Logger,
  ) {}

  /** @throws RequestError if another task is running */
  protected begin(
    total: number,
    details: Details,
    work: (call: WorkCall<Details>) => Promise<Result>,
  ): StartedTask<Result> {
    if (this.#latest?.status === "running") throw new RequestError(`${this.taskName} already in progress`);
    const task: Task<Result, Details> = { id: randomUUID(), status: "running", done: 0, total, details };
    this.#tasks.set(task.id, task);
    const [oldest] = this.#tasks.keys();
    if (this.#tasks.size > KEPT_TASKS && oldest !== undefined) this.#tasks.delete(oldest);
    const finished = this.#run(task, work);
    // Prevents an unhandled rejection if the caller does not await the result.
    this.#idle = finished.catch(() => {});
    return { taskId: task.id, total, finished };
  }

  /** Status of the task with this id, or of the latest task if `id` is null. @throws HttpError 404 */
  status(id: string | null) {
    const task = id === null ? this.#latest : this.#tasks.get(id);
    if (task === undefined && id !== null) throw new HttpError(404, "Task not found");
    if (task === undefined) return { task_id: null, status: "idle", progress: "", current: 0, total: 0 };
    const { status, done, total, details, result, error } = task;
    return {
      task_id: task.id,
      status,
      progress: this.#progressLine(task),
      current: done,
      total,
      ...details,
      ...(result && { result }),
      ...(error && { error }),
    };
  }

  /** Aborts the running task and waits for its end. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#idle;
  }

  get #latest(): Task<Result, Details> | undefined {
    return [...this.#tasks.values()].at(-1);
  }

  async #run(
    task: Task<Result, Details>,
    work: (call: WorkCall<Details>) => Promise<Result>,
  ): Promise<Result> {
    const { signal } = this.#closing;
    try {
      const report = (done: number, details: Partial<Details> = {}) => {
        task.done = done;
        Object.assign(task.details, details);
      };
      task.result = await work({ signal, report });
      task.done = task.total;
      task.status = "completed";
      return task.result;
    } catch (error) {
      const failure = toHttpError(error);
      if (failure.status >= 500 && !signal.aborted) {
        this.log.error({ err: error }, `${this.taskName.toLowerCase()} failed`);
      }
      task.error = failure.detail;
      task.status = "failed";
      throw failure;
    }
  }

  #progressLine({ status, done, total, result, error }: Task<Result, Details>): string {
    if (status === "running") return `${this.taskName} ${Math.min(done + 1, total)}/${total}`;
    return status === "completed" ? (result?.message ?? "") : `❌ ${error}`;
  }
}

/** Music is cut to this length, as in other trainers. */
const MAX_SECONDS = 240;
const CHANNELS = 2;

/** @throws DecodeError, UnsafePathError, or the signal's reason */
export async function readSampleAudio(
  root: PermittedRoot,
  { audioPath, filename }: DataSetSample,
  signal: AbortSignal,
): Promise<{ audio: PlanarAudio; durationSeconds: number }> {
  const audio = await decodeAudio({
    path: await root.resolve(audioPath),
    name: filename,
    maxSeconds: MAX_SECONDS,
    beyondMaximum: "cut",
    signal,
  });
  return { audio, durationSeconds: Math.floor(audio.length / CHANNELS / SAMPLE_RATE) };
}

export interface SampleFailure {
  filename: string;
  reason: string;
}

/**
 * Error codes that concern only one sample. Other errors, such as a full disk or a missing model, would affect
 * all.
 */
const SAMPLE_CODES = ["BAD_ARGUMENT", "LM_OUTPUT", "NOT_FINITE", "OUT_OF_MEMORY", "PROMPT_TOO_LONG"];

/** Describes the failure of one sample. @throws `error` itself if it would affect all samples */
export function failureOf(error: unknown, filename: string): SampleFailure {
  const { code, message } = error as Error & { code?: string };
  const isSamplesFault =
    error instanceof UnsafePathError ||
    (error instanceof DecodeError ? error.isInputFault : SAMPLE_CODES.includes(code ?? ""));
  if (!isSamplesFault) throw error;
  return { filename, reason: message.split("\n", 1)[0] as string };
}

export function withFailures(message: string, failures: readonly SampleFailure[]): string {
  return withWarnings(
    message,
    failures.map(({ filename, reason }) => `${filename}: ${reason}`),
  );
}

export function withWarnings(message: string, warnings: readonly string[]): string {
  return [message, ...warnings.map((warning) => `⚠️ ${warning}`)].join("\n");
}
