/** Background work that clients start, poll and cancel: labeling, preprocessing, training and model downloads. */
import { randomUUID } from "node:crypto";
import type { Logger } from "../system/log.js";
import { HttpError, RequestError, serverStops, toHttpError } from "./errors.js";

/** Number of runs of each kind whose status is kept. */
const KEPT_RUNS = 100;
/** Error codes of aborted calls of Node and of the engine. */
const ABORTED: readonly unknown[] = ["ABORT_ERR", "CANCELLED"];

/** A checked request: the progress that clients see, and the function that does the work and updates it. */
export interface Work<Progress, Result> {
  progress: Progress;
  run: (progress: Progress, signal: AbortSignal) => Promise<Result>;
}

export class Run<Progress, Result> {
  readonly id = randomUUID();
  readonly startedAtMs = Date.now();
  state: "running" | "completed" | "failed" | "cancelled" = "running";
  endedAtMs: number | null = null;
  result: Result | null = null;
  /** Why the run failed or was cancelled. */
  failure: HttpError | null = null;
  /** Rejects with an HttpError if the run fails or is cancelled. */
  readonly finished: Promise<Result>;

  /** @param signal aborted when the run is cancelled */
  constructor(
    readonly progress: Progress,
    run: Work<Progress, Result>["run"],
    readonly signal: AbortSignal,
    private readonly onEnd: () => void = () => {},
  ) {
    this.finished = run(progress, signal).then(
      (result) => {
        this.result = result;
        this.#end("completed");
        return result;
      },
      (error: Error & { code?: unknown }) => {
        this.failure = toHttpError(error);
        const isAborted = error === signal.reason || ABORTED.includes(error.code);
        this.#end(signal.aborted && isAborted ? "cancelled" : "failed");
        throw this.failure;
      },
    );
    // Prevents an unhandled rejection if the result is not awaited.
    this.finished.catch(() => {});
  }

  #end(state: "completed" | "failed" | "cancelled"): void {
    this.state = state;
    this.endedAtMs = Date.now();
    this.onEnd();
  }
}

/** One kind of work, with at most one run at a time. */
export class BackgroundWork<Progress, Result> {
  /** Runs in the order in which they started. */
  readonly #runs = new Map<string, Run<Progress, Result>>();
  /** Cancels the run in progress, or the run whose request is being checked. */
  #current: AbortController | null = null;
  #isClosed = false;

  /** @param name name of the work in messages, for example "Training" */
  constructor(
    readonly name: string,
    private readonly log: Logger,
  ) {}

  get latest(): Run<Progress, Result> | undefined {
    return [...this.#runs.values()].at(-1);
  }

  /** @throws HttpError 404 */
  find(id: string): Run<Progress, Result> {
    const run = this.#runs.get(id);
    if (run === undefined) throw new HttpError(404, "Task not found");
    return run;
  }

  /**
   * Checks a request and starts its run. Of simultaneous requests, only the first is checked.
   * @throws RequestError while another run is in progress, and the error of `check`
   */
  async start(check: () => Promise<Work<Progress, Result>>): Promise<Run<Progress, Result>> {
    if (this.#current !== null) throw new RequestError(`${this.name} already in progress`);
    const current = new AbortController();
    this.#current = current;
    try {
      const work = await check();
      if (this.#isClosed) throw serverStops();
      const run = new Run(work.progress, work.run, current.signal, () => {
        this.#current = null;
        this.#logEnd(run);
      });
      this.#runs.set(run.id, run);
      const [oldest] = this.#runs.keys();
      if (this.#runs.size > KEPT_RUNS && oldest !== undefined) this.#runs.delete(oldest);
      this.log.info({ run: run.id }, `${this.name.toLowerCase()} started`);
      return run;
    } catch (error) {
      this.#current = null;
      throw error;
    }
  }

  /** Cancels the run in progress, or the run whose request is being checked. @returns whether there is one */
  cancel(reason?: HttpError): boolean {
    this.#current?.abort(reason);
    return this.#current !== null;
  }

  /** Refuses further runs, cancels the current one and waits for its end. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.cancel(serverStops());
    await this.latest?.finished.catch(() => {});
  }

  #logEnd({ id: run, state, failure }: Run<Progress, Result>): void {
    const message = `${this.name.toLowerCase()} ${state}`;
    if (failure === null || state === "cancelled") this.log.info({ run }, message);
    else this.log[failure.status < 500 ? "warn" : "error"]({ run, err: failure.cause ?? failure }, message);
  }
}
