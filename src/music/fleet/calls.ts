/**
 * What a gateway asks of a worker while a client waits: it is no task, as nobody wants the answer later. BullMQ gives each
 * question to one worker, to another one where that dies, and brings the answer back.
 */
import { once } from "node:events";
import { type Job, Queue, QueueEvents, Worker } from "bullmq";
import type { Redis } from "ioredis";
import { v4 as uuid } from "uuid";
import { EngineError, type EngineErrorCode } from "../../engine/errors.js";
import type { Fleet } from "./fleet.js";
import { reached } from "./redis.js";
import { noWorker } from "./workers.js";

/** A language model writes for seconds, and others may come first. */
const ANSWER_MS = 120_000;

type Answer = { value: unknown } | { code: unknown; message: string };

/** The questions that every worker with a language model answers. */
export const WORDS = "words";

/** The questions about adapters that workers with the model in slot 1 answer. */
export function aboutAdaptersOf(model: string): string {
  return `adapters~${encodeURIComponent(model)}`;
}

export type Answering = (question: string, data: unknown, signal: AbortSignal) => Promise<unknown>;

export class Calls {
  readonly #asking = new Map<string, { queue: Queue; answers: QueueEvents }>();
  readonly #answering: Worker[] = [];
  readonly #closing = new AbortController();
  #patient: Redis | undefined;

  constructor(private readonly fleet: Fleet) {}

  /**
   * @throws HttpError 503 where nobody answers, FleetUnreachableError, the signal's reason, or what the worker threw: an
   * EngineError with its code and message
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
    const answered = once(answers, `completed:${jobId}`, { signal: over }).catch(() => {
      signal.throwIfAborted();
      throw noWorker("answer in time");
    });
    try {
      const options = { jobId, removeOnComplete: true, removeOnFail: true };
      const [[{ returnvalue: answer }]] = (await Promise.all([
        answered,
        reached(() => queue.add(question, data, options)),
      ])) as [[{ returnvalue: Answer }], unknown];
      if ("value" in answer) return answer.value as T;
      throw new EngineError(answer.code as EngineErrorCode, answer.message);
    } finally {
      // Nobody has begun it, or it ends in vain.
      await queue.remove(jobId).catch(() => {});
    }
  }

  /** Answers, one question at a time, until `close`. */
  answer(whom: string, answering: Answering): void {
    const work = async ({ name, data }: Job): Promise<Answer> => {
      try {
        return { value: await answering(name, data, this.#closing.signal) };
      } catch (error) {
        const { code, message } = error as Error & { code?: unknown };
        this.fleet.log.info({ question: name, reason: message }, "a question was answered with an error");
        return { code, message };
      }
    };
    const lockDuration = this.fleet.leaseMs;
    const worker = new Worker(nameOf(whom), work, {
      ...this.#options(),
      lockDuration,
      stalledInterval: lockDuration,
    });
    worker.on("error", (err) => this.fleet.log.debug({ err }, "questions cannot be heard"));
    this.#answering.push(worker);
  }

  /** Ends what is being answered: another worker then gets it. */
  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.all(this.#answering.map((worker) => worker.close(true).catch(() => {})));
    for (const { queue, answers } of this.#asking.values()) {
      await queue.close().catch(() => {});
      await answers.close().catch(() => {});
    }
    this.#patient?.disconnect();
  }

  #asked(whom: string) {
    const known = this.#asking.get(whom);
    if (known !== undefined) return known;
    const asked = {
      queue: new Queue(nameOf(whom), { ...this.fleet.bullOptions(), skipMetasUpdate: true }),
      // From the first answer that Redis still knows, as the next one may come before this listens.
      answers: new QueueEvents(nameOf(whom), { ...this.#options(), lastEventId: "0" }),
    };
    const unheard = (err: Error) => this.fleet.log.debug({ err }, "answers cannot be heard");
    asked.queue.on("error", unheard);
    asked.answers.on("error", unheard);
    this.#asking.set(whom, asked);
    return asked;
  }

  /** BullMQ makes copies of the connection that wait: for questions, for answers, for Redis to come back. */
  #options() {
    if (this.#patient === undefined) {
      this.#patient = this.fleet.redis.duplicate({ enableOfflineQueue: true, maxRetriesPerRequest: null });
      delete this.#patient.options.commandTimeout;
      this.#patient.on("error", (err) => this.fleet.log.debug({ err }, "no questions can be heard"));
    }
    return { ...this.fleet.bullOptions(), connection: this.#patient };
  }
}

function nameOf(whom: string): string {
  return `ask~${whom}`;
}
