/**
 * Long work on the samples of a data set, which clients ask for and then poll: one at a time of each kind, with a status;
 * and what becomes of a sample that cannot be done.
 */
import { randomUUID } from "node:crypto";
import { type PlanarAudio, SAMPLE_RATE } from "../../engine/types.js";
import type { Logger } from "../../log.js";
import { DecodeError, decodeAudio } from "../audio/decode.js";
import { HttpError, RequestError, toHttpError } from "../errors.js";
import { type PermittedRoot, UnsafePathError } from "../permitted-root.js";
import type { DataSetSample } from "./data-set.js";

/** Finished tasks that can still be asked for. */
const KEPT_TASKS = 100;

/** What the work is given. `details` are shown in the status beside what every task has. */
export interface WorkCall<Details> {
  /** Fires when the server stops. */
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
  /** In the order of their starts. */
  readonly #tasks = new Map<string, Task<Result, Details>>();
  /** Resolves once nothing runs. */
  #idle: Promise<unknown> = Promise.resolve();

  /** @param doing what it is called in lines for people, such as "Preprocessing" */
  constructor(
    private readonly doing: string,
    private readonly log: Logger,
  ) {}

  /** @throws RequestError where another one runs */
  protected begin(
    total: number,
    details: Details,
    work: (call: WorkCall<Details>) => Promise<Result>,
  ): StartedTask<Result> {
    if (this.#latest?.status === "running") throw new RequestError(`${this.doing} already in progress`);
    const task: Task<Result, Details> = { id: randomUUID(), status: "running", done: 0, total, details };
    this.#tasks.set(task.id, task);
    const [oldest] = this.#tasks.keys();
    if (this.#tasks.size > KEPT_TASKS && oldest !== undefined) this.#tasks.delete(oldest);
    const finished = this.#run(task, work);
    // Whoever waits hears of a failure; nobody has to.
    this.#idle = finished.catch(() => {});
    return { taskId: task.id, total, finished };
  }

  /**
   * What clients learn of the task, or of the latest one.
   * @throws HttpError 404 for an unknown id
   */
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

  /** Cancels what runs and waits for its end. */
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
        this.log.error({ err: error }, `${this.doing.toLowerCase()} failed`);
      }
      task.error = failure.detail;
      task.status = "failed";
      throw failure;
    }
  }

  #progressLine({ status, done, total, result, error }: Task<Result, Details>): string {
    if (status === "running") return `${this.doing} ${Math.min(done + 1, total)}/${total}`;
    return status === "completed" ? (result?.message ?? "") : `❌ ${error}`;
  }
}

/** Longer music is cut, as everywhere in this ecosystem. */
const MAX_SECONDS = 240;
const CHANNELS = 2;

/** @throws DecodeError, UnsafePathError, or the signal's reason */
export async function sampleAudio(
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

/** What is the sample's own fault. All else, such as a full disk or a model that is not there, would stop every one. */
const SAMPLE_CODES = ["BAD_ARGUMENT", "LM_OUTPUT", "NOT_FINITE", "OUT_OF_MEMORY", "PROMPT_TOO_LONG"];

/** @throws the error itself where it is not the sample's fault */
export function failureOf(error: unknown, filename: string): SampleFailure {
  const { code, message } = error as Error & { code?: string };
  const isSamplesFault =
    error instanceof UnsafePathError ||
    (error instanceof DecodeError ? error.isFilesFault : SAMPLE_CODES.includes(code ?? ""));
  if (!isSamplesFault) throw error;
  return { filename, reason: message.split("\n", 1)[0] as string };
}

/** A line for each failure under the message. */
export function withFailures(message: string, failures: readonly SampleFailure[]): string {
  return [message, ...failures.map(({ filename, reason }) => `⚠️ ${filename}: ${reason}`)].join("\n");
}
