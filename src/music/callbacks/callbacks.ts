/**
 * Reports ended tasks to callback URLs. Task records contain their pending callbacks, so callbacks survive a
 * restart. The queue gives each due callback to one process.
 */
import type { Config } from "../../config.js";
import type { Logger } from "../../system/log.js";
import { withTimeLimit } from "../../system/time-limit.js";
import { isCallbackPending } from "../queue/callback-schedule.js";
import { hasEnded } from "../queue/catalog.js";
import { type CallbackRecord, DamagedRecordError, type Task } from "../queue/store.js";
import type { TaskQueue } from "../queue/task-queue.js";
import type { TaskStatusItem } from "../queue/task-status.js";
import { postCallback } from "./post.js";
import { parseCallbackUrl, resolveTarget } from "./target.js";

const POLL_MS = 1_000;
const MAX_AT_ONCE = 4;
/** Time limit of an attempt, from the name lookup to the status of the answer. */
const ATTEMPT_SECONDS = 10;
/** Maximum number of attempts. The delays between them add up to about six hours. */
const MAX_ATTEMPTS = 15;
const FIRST_RETRY_MS = 2_000;
const MAX_RETRY_MS = 60 * 60_000;

type CallbackConfig = Pick<Config, "apiKey" | "apiKeys" | "callbackHosts">;

export class Callbacks {
  readonly #sending = new Map<string, Promise<void>>();
  /** Tasks whose callback was delivered, although their records cannot be written yet. */
  readonly #unrecorded = new Set<string>();
  readonly #stopping = new AbortController();
  #timer: NodeJS.Timeout | undefined;
  #isPolling = false;

  /** @param itemOf returns the status of a task in the format of POST /query_result */
  constructor(
    private readonly queue: TaskQueue,
    private readonly config: CallbackConfig,
    private readonly itemOf: (task: Task) => TaskStatusItem,
    private readonly log: Logger,
  ) {}

  /** @throws RequestError if this server may not call the URL, or the signal's reason */
  async admit(text: string | null, signal: AbortSignal): Promise<void> {
    if (text !== null) await resolveTarget(parseCallbackUrl(text), this.config.callbackHosts, signal);
  }

  start(): void {
    this.#timer = setInterval(() => void this.deliverDue(), POLL_MS).unref();
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    this.#stopping.abort(new Error("the server is stopping"));
    await Promise.all(this.#sending.values());
  }

  /** Sends due callbacks, at most MAX_AT_ONCE at the same time. Never rejects. */
  async deliverDue(): Promise<void> {
    const room = MAX_AT_ONCE - this.#sending.size;
    if (this.#isPolling || room <= 0 || this.#stopping.signal.aborted) return;
    this.#isPolling = true;
    try {
      const due = await this.queue.dueCallbacks(room);
      // A callback may be due again while it is still being sent.
      for (const id of due.filter((each) => !this.#sending.has(each))) {
        const sending = this.#deliver(id)
          .catch((err: unknown) => this.log.debug({ task: id, err }, "a callback is delayed"))
          .finally(() => this.#sending.delete(id));
        this.#sending.set(id, sending);
      }
    } catch (err) {
      this.log.debug({ err }, "could not read due callbacks");
    } finally {
      this.#isPolling = false;
    }
  }

  async #deliver(id: string): Promise<void> {
    const task = await this.queue.get(id).catch((error: unknown) => {
      if (error instanceof DamagedRecordError) return undefined;
      throw error;
    });
    if (task === undefined || !isCallbackPending(task)) return this.queue.scheduleCallback(id, null);
    // The task has not ended yet; the queue returns the callback again later.
    if (!hasEnded(task.state)) return;
    const attempts = (task.callback?.attempts ?? 0) + 1;
    try {
      if (!this.#unrecorded.has(id)) await this.#send(task);
    } catch (error) {
      // The attempt does not count if the server's shutdown interrupted it.
      if (this.#stopping.signal.aborted) return;
      await this.#failed(task, attempts, (error as Error).message);
      return;
    }
    this.#unrecorded.add(id);
    await this.#record(task, { state: "delivered", attempts });
    this.#unrecorded.delete(id);
    await this.queue.scheduleCallback(id, null);
    this.log.info({ task: id, attempts }, "callback delivered");
  }

  async #send(task: Task): Promise<void> {
    const url = parseCallbackUrl(task.request.callbackUrl as string);
    const timestamp = Math.floor(Date.now() / 1000);
    const event = task.state === "succeeded" ? "done" : "failed";
    const body = JSON.stringify({ event, timestamp, ...this.itemOf(task) });
    const message = { taskId: task.id, body, timestamp, key: this.#keyOf(task) };
    const error = () => new Error(`the receiver did not answer within ${ATTEMPT_SECONDS} seconds`);
    const limit = { ms: ATTEMPT_SECONDS * 1000, signal: this.#stopping.signal, error };
    await withTimeLimit(limit, async (signal) => {
      const target = await resolveTarget(url, this.config.callbackHosts, signal);
      await postCallback(target, message, signal);
    });
  }

  /**
   * The API key of the submission, by its position in the settings. The first key if that position has none now, so
   * that a server with keys signs every callback.
   */
  #keyOf({ share: client = "" }: Task): string | null {
    const keys = [this.config.apiKey.trim(), ...this.config.apiKeys];
    const number = Number(/^key (\d+)$/.exec(client)?.[1] ?? 1);
    return keys[number - 1] || keys[0] || null;
  }

  async #failed(task: Task, attempts: number, error: string): Promise<void> {
    const isOver = attempts >= MAX_ATTEMPTS;
    const delayMs = Math.min(FIRST_RETRY_MS * 2 ** (attempts - 1), MAX_RETRY_MS);
    const state = isOver ? "failed" : "pending";
    const nextAtMs = isOver ? undefined : Date.now() + delayMs;
    this.log.warn({ task: task.id, attempts, reason: error, isOver }, "callback failed");
    await this.#record(task, { state, attempts, error, ...(nextAtMs && { nextAtMs }) });
    await this.queue.scheduleCallback(task.id, isOver ? null : delayMs);
  }

  async #record({ id }: Task, callback: CallbackRecord): Promise<void> {
    await this.queue.update(id, (task) =>
      task.callback?.state === "delivered" ? task : { ...task, callback },
    );
  }
}
