/**
 * Questions that a gateway asks a worker while a client waits. They are not tasks, because the answer is of no use
 * later. BullMQ gives each question to one worker, or to another if that one dies, and returns the answer.
 */
import type { EventEmitter } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { type Job, Queue, QueueEvents, Worker } from "bullmq";
import type { Redis } from "ioredis";
import { v4 as uuid } from "uuid";
import { z } from "zod";
import { EngineError, type EngineErrorCode } from "../../engine/errors.js";
import type { Fleet } from "./fleet.js";
import { parseJson } from "./messages.js";
import { isDataFault } from "./redis.js";
import { noWorker } from "./workers.js";

/** Covers a few seconds of writing and the questions before it. */
const ANSWER_MS = 120_000;
const RESTART_MS = 200;

const answerSchema = z.union([
  z.object({ code: z.unknown().optional(), message: z.string() }),
  z.object({ value: z.unknown() }),
]);
type Answer = { value: unknown } | { code: unknown; message: string };

/** Questions answered by every worker with a language model. */
export const WORDS = "words";

/** Questions about adapters, answered by workers with the model in slot 1. */
export function adapterQuestions(model: string): string {
  return `adapters~${encodeURIComponent(model)}`;
}

export type AnswerHandler = (question: string, data: unknown, signal: AbortSignal) => Promise<unknown>;

export class Calls {
  readonly #asking = new Map<string, { queue: Queue; answers: QueueEvents }>();
  readonly #answering: Worker[] = [];
  readonly #closing = new AbortController();
  #blocking: Redis | undefined;

  constructor(private readonly fleet: Fleet) {}

  /**
   * @throws HttpError 503 without an answer, FleetUnreachableError, the signal's reason, or the worker's error as an
   * EngineError
   */
  async ask<T>(
    whom: string,
    question: string,
    data: object,
    signal = new AbortController().signal,
  ): Promise<T> {
    const { queue, answers } = this.#asked(whom);
    const jobId = uuid();
    const over = AbortSignal.any([signal, AbortSignal.timeout(ANSWER_MS)]);
    const completed = `completed:${jobId}`;
    // `once` of node:events rejects on errors after which listening continues.
    const answered = new Promise<{ returnvalue: unknown }>((resolve, reject) => {
      (answers as EventEmitter).once(completed, resolve);
      const stop = () => reject(signal.aborted ? signal.reason : noWorker("answer in time"));
      if (over.aborted) stop();
      over.addEventListener("abort", stop);
    });
    try {
      const options = { jobId, removeOnComplete: true, removeOnFail: true };
      const [{ returnvalue: answer }] = await Promise.all([
        answered,
        this.fleet.redis.attempt(
          () => queue.add(question, data, options),
          () => queue.remove(jobId),
        ),
      ]);
      const read = answerSchema.safeParse(answer).data;
      if (read === undefined) throw noWorker("give a readable answer");
      if ("value" in read) return read.value as T;
      throw new EngineError(read.code as EngineErrorCode, read.message);
    } finally {
      (answers as EventEmitter).removeAllListeners(completed);
      // No effect if a worker already answers it.
      await queue.remove(jobId).catch(() => {});
    }
  }

  /** Answers questions one at a time until `close`. */
  answer(whom: string, answering: AnswerHandler): void {
    const work = async ({ name, data }: Job): Promise<Answer> => {
      try {
        return { value: await answering(name, data, this.#closing.signal) };
      } catch (error) {
        const { code, message } = error as Error & { code?: unknown };
        this.fleet.log.info({ question: name, reason: message }, "answered a question with an error");
        return { code, message };
      }
    };
    const lockDuration = this.fleet.leaseMs;
    const worker = new Worker(nameOf(whom), work, {
      ...this.#options(),
      lockDuration,
      stalledInterval: lockDuration,
    });
    worker.on("error", (err) => this.fleet.noteQueueError(err));
    this.#answering.push(worker);
  }

  /** Stops the current answer; another worker then gets the question. */
  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.all(this.#answering.map((worker) => worker.close(true).catch(() => {})));
    for (const { queue, answers } of this.#asking.values()) {
      await queue.close().catch(() => {});
      await answers.close().catch(() => {});
    }
    this.#blocking?.disconnect();
  }

  #asked(whom: string) {
    const known = this.#asking.get(whom);
    if (known !== undefined) return known;
    const asked = {
      queue: new Queue(nameOf(whom), { ...this.fleet.bullOptions(), skipMetasUpdate: true }),
      // From the oldest answer in Redis, because an answer may arrive before this listens.
      answers: new QueueEvents(nameOf(whom), { ...this.#options(), lastEventId: "0" }),
    };
    const note = (err: Error) => this.fleet.noteQueueError(err);
    asked.queue.on("error", note);
    asked.answers.on("error", (err) => {
      note(err);
      this.#restartListening(asked.answers, asked.queue.toKey("events"), err);
    });
    this.#asking.set(whom, asked);
    return asked;
  }

  /** BullMQ stops listening at an event that it cannot read. */
  #restartListening(answers: QueueEvents, key: string, err: Error): void {
    if (!(err instanceof SyntaxError) && !isDataFault(err)) return;
    sleep(RESTART_MS, undefined, { signal: this.#closing.signal, ref: false })
      .then(() => this.#removeUnreadableEvents(key))
      .then(() => answers.run())
      .catch((error: Error) => {
        if (!this.#closing.signal.aborted) answers.emit("error", error);
      });
  }

  async #removeUnreadableEvents(key: string): Promise<void> {
    const { redis, quarantine } = this.fleet;
    const events = await redis.attempt(() => redis.xrange(key, "-", "+"));
    const unreadable = events.filter(([, fields]) =>
      ["returnvalue", "data"].some((name) => {
        const text = fields[fields.indexOf(name) + 1];
        return fields.includes(name) && text !== undefined && parseJson(text) === undefined;
      }),
    );
    const entries = unreadable.map(([id, fields]) => [id, fields.join(" ")] as const);
    await quarantine.setEntriesAside(key, entries);
  }

  /** BullMQ duplicates this connection for blocking commands. It waits for Redis instead of failing. */
  #options() {
    if (this.#blocking === undefined) {
      this.#blocking = this.fleet.redis.duplicate({ enableOfflineQueue: true, maxRetriesPerRequest: null });
      delete this.#blocking.options.commandTimeout;
      this.#blocking.on("error", (err) =>
        this.fleet.log.debug({ err }, "the connection for questions failed"),
      );
    }
    return { ...this.fleet.bullOptions(), connection: this.#blocking };
  }
}

function nameOf(whom: string): string {
  return `ask~${whom}`;
}
